"""Files that readers see whole, files of lines, locks that a dead process lets go, and the hash of
a file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO


def write_whole(
    path: Path,
    content: bytes | str,
    rights: int = 0o666,
) -> Path:
    """Replace a file in one step: readers see the old one or the new one, also when the writer is
    killed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")

    try:
        handle = os.open(
            partial,
            os.O_WRONLY | os.O_CREAT | os.O_EXCL,
            rights,
        )
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode("utf-8", "replace") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())

        return partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def append_line(
    path: Path,
    record: Mapping[str, object],
    rights: int = 0o666,
) -> Path:
    """Add an object to a file of JSON lines in one write, so that processes that share the file
    never mix theirs.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(
        path,
        "ab",
        buffering=0,
        opener=partial(os.open, mode=rights),
    ) as file:
        file.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    return path


_FULL_BYTES = 1 << 20


def explain_full_disk(folder: Path) -> str | None:
    """That the disk under a folder of the home is full, with the next step; None where it is
    not.
    """
    free = shutil.disk_usage(folder).free
    if free >= _FULL_BYTES:
        return None

    return (
        f"the disk of HADES_HOME is full ({free:,} bytes free at {folder}); free some space "
        "there, for example by `hades discard` of a snapshot that `hades snapshots` lists, and "
        "run this again"
    )


OWNER_ONLY = 0o700
BEYOND_OWNER = 0o077


def make_private_folder(folder: Path) -> Path:
    """Make a folder that its owner alone may enter; one that is there keeps its rights."""
    if not folder.exists():
        make_private_folder(folder.parent)
        folder.mkdir(mode=OWNER_ONLY, exist_ok=True)

    return folder


def keep_files_private(home: Path) -> None:
    """Let this process write for its user alone, unless the home was opened to a group."""
    is_shared = home.is_dir() and home.stat().st_mode & BEYOND_OWNER
    if not is_shared:
        os.umask(BEYOND_OWNER)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Wait for a lock and hold it. The system lets go of it when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class FileLock:
    """A lock that is tried, not waited for, and says who holds it. The system lets go of it when
    the process dies.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None

    def claim(self, who: str) -> str | None:
        """Take it: None, or the sentence of the process that holds it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = self._path.open("a+", encoding="utf-8")

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with file:
                file.seek(0)
                return file.read() or "another command"  # it has not written its name yet

        file.truncate(0)
        file.write(who)
        file.flush()
        self._file = file
        return None

    def close(self) -> None:
        """Let go of it."""
        if self._file is not None:
            self._file.close()


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
