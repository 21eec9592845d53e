"""Files that come in through a service: checked before a byte is written, then read like a folder
of documents.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import time
import unicodedata
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Any

from hades.errors import HadesError
from hades.files import write_whole
from hades.ingest.formats.epub import open_archive
from hades.ingest.formats.registry import FormatProblem
from hades.ingest.sources.documents import why_not_read
from hades.settings.tree import Settings
from hades.wiring import hold_build, open_hades

MAX_FILES = 500
MAX_FILE_BYTES = 32 * 1024 * 1024
MAX_BYTES = 256 * 1024 * 1024
FOLDER = "uploads"
INCOMING = "uploads.incoming"
STATUS = "uploads.json"
MANIFEST = "manifest.json"
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}")
_PATH_CHARACTERS = 400
_ABANDONED_SECONDS = 3600.0


class UploadRefused(HadesError):
    """Files that are not taken in; nothing of them is kept."""


class UnknownUpload(HadesError):
    """An upload that was not begun, was refused or is finished."""

    http_status = 404


class Uploads:
    """The uploads of a home. One reads at a time, in a thread of its own; what came meanwhile is
    read after it.
    """

    def __init__(self, settings: Settings, folders: Sequence[Path] = ()) -> None:
        self._settings = settings
        self._home = settings.home
        self._allowed = tuple(folder.resolve() for folder in folders)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="hades-uploads")
        self._is_closing = False

    def begin(self, files: Mapping[str, int]) -> str:
        """The id of a new upload of these files, by path with their sizes; everything is checked
        first.
        """
        if not files or len(files) > MAX_FILES:
            raise UploadRefused(
                f"{len(files):,} files were given; send 1 to {MAX_FILES} at a time, or `hades "
                "watch`"
            )

        for path, size in files.items():
            check_path(path)
            if size < 0 or size > MAX_FILE_BYTES:
                raise UploadRefused(
                    f"{path} has {size:,} bytes; a file may have {MAX_FILE_BYTES:,} at most"
                )

        if len({unicodedata.normalize("NFC", path).casefold() for path in files}) < len(files):
            raise UploadRefused("two files have the same path; send each path once")

        if (total := sum(files.values())) > MAX_BYTES:
            raise UploadRefused(
                f"the files have {total:,} bytes together; send {MAX_BYTES:,} at most"
            )

        incoming = self._home / INCOMING
        upload = secrets.token_hex(16)
        _remove_abandoned(incoming)
        folder = incoming / upload
        folder.mkdir(parents=True)
        (folder / MANIFEST).write_text(json.dumps(dict(files)), "utf-8")
        return upload

    def put(self, upload: str, path: str, content: bytes) -> None:
        """One of the files; content that is not what was announced ends the upload."""
        folder, files = self._find_upload(upload)
        try:
            if files.get(path) != len(content):
                raise UploadRefused(
                    f"{path} with {len(content):,} bytes was not announced; announce every file "
                    "first"
                )

            if content.startswith(b"PK"):
                open_archive(content).close()  # what the parsers refuse to unpack need not be kept
        except (UploadRefused, FormatProblem) as error:
            shutil.rmtree(folder)
            if isinstance(error, FormatProblem):
                problem = f"{path}: {error.detail}"
            else:
                problem = str(error)

            raise UploadRefused(problem) from None

        target = folder / "files" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def finish(self, upload: str) -> int:
        """Move the files to the folder of uploads and begin to read it; how many there are."""
        folder, files = self._find_upload(upload)
        targets = {path: self._home / FOLDER / path for path in files}

        try:
            for path, target in targets.items():
                if not (folder / "files" / path).is_file():
                    raise UploadRefused(
                        f"{path} was announced and not sent; begin again, nothing was kept"
                    )

                parents = (parent for parent in target.parents if parent.is_relative_to(self._home))
                if target.is_dir() or any(parent.is_file() for parent in parents):
                    problem = (
                        "is a folder where an earlier upload has a file, or a file for a folder"
                    )
                    raise UploadRefused(f"{path} {problem}")

            for path, target in targets.items():
                target.parent.mkdir(parents=True, exist_ok=True)
                (folder / "files" / path).replace(target)
        finally:
            shutil.rmtree(folder)

        self._start_reading(self._home / FOLDER)
        return len(files)

    def read_folder(self, path: str) -> None:
        """Begin to read a folder of this machine, where the service allows it."""
        try:
            folder = Path(path).resolve()
            is_folder = folder.is_dir()
        except (OSError, ValueError) as error:  # no file system takes this text as a path
            raise UploadRefused(f"{path[:80]!r} is not a path: {error}") from None

        if not any(folder.is_relative_to(allowed) for allowed in self._allowed):
            raise UploadRefused(
                "this folder may not be read; start the service with --allow-folder for it"
            )

        if not is_folder:
            raise UploadRefused(f"{path} is not a folder")

        self._start_reading(folder)

    def status(self) -> dict[str, Any]:
        """How far reading is: `state` is idle, reading, ready or failed."""
        try:
            progress: dict[str, Any] = json.loads((self._home / STATUS).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            progress = {"state": "idle"}

        return {
            **progress,
            "folders": [str(folder) for folder in self._allowed],
        }

    def close(self) -> None:
        """Stop at the next step of reading; the next upload goes on from there."""
        self._is_closing = True
        self._reader.shutdown(cancel_futures=True)

    def _find_upload(self, upload: str) -> tuple[Path, dict[str, int]]:
        folder = self._home / INCOMING / upload
        if not _UPLOAD_ID.fullmatch(upload) or not (folder / MANIFEST).is_file():
            raise UnknownUpload("there is no such upload; begin one with POST /v1/uploads")
        return folder, json.loads((folder / MANIFEST).read_text("utf-8"))

    def _start_reading(self, folder: Path) -> None:
        self._write_status("reading", stage="waiting")
        self._reader.submit(self._read_uploads, folder)

    def _read_uploads(self, folder: Path) -> None:
        def report_stage(stage: str, done: int, total: int | None) -> None:
            if self._is_closing:
                raise HadesError("the service stopped while it read; send a file again to go on")
            self._write_status(
                "reading",
                stage=stage,
                done=done,
                total=total,
            )

        try:
            with (
                hold_build("upload", self._settings),
                open_hades(self._settings, progress=report_stage) as hades,
            ):
                report = hades.refresh_folder(folder, "documents")

            self._write_status(
                "ready",
                documents=report["documents"],
                snapshot=report["snapshot"],
            )
        # the caller has its answer already: the state of the upload says it
        except HadesError as error:
            self._write_status("failed", problem=str(error))

    def _write_status(self, state: str, **details: Any) -> None:
        write_whole(self._home / STATUS, json.dumps({"state": state, **details}))


def _remove_abandoned(incoming: Path) -> None:
    """Remove uploads that were begun long ago and never finished."""
    if not incoming.is_dir():
        return

    for folder in incoming.iterdir():
        if time.time() - folder.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)


def check_path(path: str) -> None:
    """Refuse a path that leads elsewhere, that a file system may read otherwise, or of a type that
    is not read.
    """
    parts = path.split("/")
    if len(path) > _PATH_CHARACTERS or any(not part or part.startswith(".") for part in parts):
        raise UploadRefused(
            f"{path[:80]!r} is no path below a folder; use names without leading dots, such as "
            "a/b.md"
        )

    if any(unicodedata.category(char).startswith("C") or char in '\\:*?"<>|' for char in path):
        raise UploadRefused(
            f"{path[:80]!r} has characters that file systems read differently; rename it"
        )

    if any(len(part.encode()) > 255 for part in parts):
        raise UploadRefused(f"{path[:80]!r} has a name of more than 255 bytes; rename it")
    if problem := why_not_read(PurePosixPath(path).suffix.lower()):
        raise UploadRefused(f"{path}: {problem}")
