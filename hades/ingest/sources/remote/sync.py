"""Bring the mirror of a source in step with it: list, check the contract, read what changed, then
change everything at once. Whatever fails before leaves the mirror as it was.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from pathspec import GitIgnoreSpec

from hades.files import make_private_folder
from hades.ingest.manifest import MAX_LISTED
from hades.ingest.sources.documents import why_not_read
from hades.ingest.sources.files import SKIPPED_FOLDERS
from hades.ingest.sources.remote.connector import (
    Connector,
    Reading,
    RemoteDocument,
    SyncError,
)
from hades.ingest.sources.remote.ledger import Copy, Ledger
from hades.ingest.stated_rights import FILE as RIGHTS_FILE
from hades.ingest.stated_rights import read_rules, readers_by
from hades.ports.services import ProgressReport
from hades.snapshot.rights_file import PUBLIC, Readers
from schemas.sources import RemoteSource

_ALWAYS_MAY_GO = 5  # a small source loses a large share with every document
_NAMED = 5
_LONGEST_PART = 180
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\:*?\"<>|]")


@dataclass
class SyncReport:
    """What one sync found and read."""

    name: str
    listed: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    read: int = 0  # contents that were asked for
    bytes: int = 0
    left_out: int = 0  # of formats that are not read, or by include and exclude
    set_aside: list[dict[str, str]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    problem: str = ""
    paths: set[str] = field(default_factory=set)  # of the mirror that are new, changed or gone

    @property
    def has_changes(self) -> bool:
        """Whether the mirror is another than before."""
        return bool(self.new or self.changed or self.removed)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        figures = {
            **vars(self),
            "reasons": dict(self.reasons),
            "seconds": round(self.seconds, 3),
        }
        del figures["paths"]
        return figures


@dataclass
class Sync:
    """One sync of one source: what it works with, and what it found so far."""

    source: RemoteSource
    connector: Connector
    ledger: Ledger
    mirror: Path
    staged: Path
    accept: bool
    progress: ProgressReport
    now: datetime
    brings_contents: bool = False  # the listing does, as that of rows

    def run(self) -> SyncReport:
        """List, check, read, check again, change."""
        began = time.perf_counter()
        self.report = SyncReport(self.ledger.name)
        self.copies = self.ledger.copies()
        listed = self._list()
        self._check_fields()
        self._check_counts(len(listed), self.copies.keys() - listed.keys())

        unknown = []
        for document in listed.values():
            if not self._is_known(document):
                unknown.append(document)

        readings = list(self._read(unknown))
        unread = set()
        for reading in readings:
            if reading.is_gone or reading.problem:
                unread.add(reading.document.id)

        gone = self.copies.keys() - (listed.keys() - unread)
        lost = set()
        for reading in readings:
            if reading.is_gone:
                lost.add(reading.document.id)

        self._check_counts(len(listed) - len(lost), gone)
        changed = self._place(readings, gone)
        self.report.removed = len(gone)
        self.report.paths.update(self.copies[identifier].path for identifier in gone)
        self.report.paths.update(copy.path for copy in changed)
        old_copies = (self.copies.get(copy.id) for copy in changed)
        self.report.paths.update(copy.path for copy in old_copies if copy is not None)
        self.report.unchanged = len(self.copies) - len(gone) - self.report.changed
        self.report.seconds = time.perf_counter() - began
        state = replace(
            self.ledger.state(),
            documents=len(self.copies) - len(gone) + self.report.new,
            last_sync=self.now,
            last_success=self.now,
            failures=0,
            problem="",
            seconds=round(self.report.seconds, 3),
            bytes=self.report.bytes,
            columns=self.connector.columns,
            is_read=self.ledger.state().is_read and not self.report.has_changes,
        )
        copies = {
            **self.copies,
            **{copy.id: copy for copy in changed},
        }

        rights = {}
        for identifier, readers in self.readers.items():
            if identifier in copies and readers != PUBLIC:
                rights[copies[identifier].path] = readers

        self.ledger.write(state, changed, gone, rights)
        self._sweep()
        return self.report

    def _list(self) -> dict[str, RemoteDocument]:
        """What is to be kept in step, by id."""
        included = GitIgnoreSpec.from_lines(self.source.include or ["*"])
        excluded = GitIgnoreSpec.from_lines(self.source.exclude)
        listed: dict[str, RemoteDocument] = {}
        repeated: dict[str, None] = {}
        self.readers: dict[str, Readers] = {}
        rules = read_rules(
            self.source.rights,
            Path(),
            self.ledger.name,
        )

        for document in self.connector.list_documents():
            name = document.name
            if PurePosixPath(name).name == RIGHTS_FILE and not rules:
                raise SyncError(
                    f"it holds {name}, which counts in folders of this machine only; state who may "
                    f"read its documents by `hades sources add --name {self.ledger.name} --rights`"
                )

            is_chosen = included.match_file(name) and not excluded.match_file(name)
            if not is_chosen or _is_never_read(name):
                self.report.left_out += 1
            elif document.id in listed:
                repeated[document.id] = None
            else:
                listed[document.id] = self._set_down(document)
                stated = document.readers
                by_name = readers_by(rules, Path(name))
                self.readers[document.id] = by_name if stated is None else stated
                self.progress("list", len(listed), None)

        if repeated:
            raise SyncError(
                f"{len(repeated)} ids stand for more than one document "
                f"({_some(repeated)}), and one of each would be lost; name a key column whose "
                "values are unique"
            )

        self.report.listed = len(listed)
        return listed

    def _set_down(self, document: RemoteDocument) -> RemoteDocument:
        """A document without the content that its listing brought along, which waits in a staged
        file: rows of a large table are never in memory together.
        """
        if document.content is None:
            return document

        if not self.brings_contents:  # what an earlier sync left there is listed again
            shutil.rmtree(self.staged, ignore_errors=True)
            self.brings_contents = True

        if not self._is_known(document):
            self._stage(document, document.content)
            self.report.read += 1

        return replace(document, content=None)

    def _stage(self, document: RemoteDocument, content: bytes) -> None:
        """Put a content where it waits, whole or not at all."""
        make_private_folder(self.staged)
        self.report.bytes += len(content)
        partial = self._staged(document).with_suffix(".partial")
        partial.write_bytes(content)
        partial.rename(self._staged(document))

    def _check_fields(self) -> None:
        """Stop where a required column, or one that was there, is missing."""
        columns = set(self.connector.columns)
        required = (*self.source.required, *self.source.readers)
        missing = [name for name in required if name not in columns]

        if missing:
            raise SyncError(
                f"the column {missing[0]!r}, which is required, is not among "
                f"{', '.join(sorted(columns)) or 'no columns'}; nothing was changed"
            )

        vanished = [name for name in self.ledger.state().columns if name not in columns]
        if vanished and not self.accept:
            raise SyncError(
                f"{len(vanished)} columns that were there are gone ({_some(vanished)}); nothing "
                f"was changed. If that is right, run `hades sources sync {self.ledger.name} "
                "--accept`"
            )

    def _check_counts(self, listed: int, gone: Iterable[str]) -> None:
        """Stop a sync that would empty the corpus, or a large share of it."""
        if self.accept:
            return

        remedy = (
            f"nothing was changed. If that is right, run `hades sources sync {self.ledger.name} "
            "--accept`"
        )
        if listed < self.source.min_documents:
            raise SyncError(
                f"it gives {listed:,} documents, at least {self.source.min_documents:,} are "
                f"expected (min_documents); {remedy}"
            )

        lost = sorted(gone)
        if len(lost) > max(_ALWAYS_MAY_GO, self.source.max_gone * len(self.copies)):
            raise SyncError(
                f"{len(lost):,} of {len(self.copies):,} documents are gone ({_some(lost)}), at "
                f"most {self.source.max_gone:.0%} may go at once (max_gone); {remedy}"
            )

    def _is_known(self, document: RemoteDocument) -> bool:
        """Whether the copy in the mirror is of this version."""
        copy = self.copies.get(document.id)
        if copy is None or not document.version or copy.version != document.version:
            return False

        return self._is_there(copy)

    def _is_there(self, copy: Copy) -> bool:
        """Whether the mirror holds the copy."""
        return os.path.isfile(f"{self.mirror}{os.sep}{copy.path}")

    def _read(self, documents: list[RemoteDocument]) -> Iterator[Reading]:
        """Read documents into the staged files; what an earlier sync staged and did not finish is
        taken from there.
        """
        waiting = []
        for document in documents:
            if document.version and self._staged(document).is_file():
                yield Reading(document)
            else:
                waiting.append(document)

        versions = {}
        for document in waiting:
            copy = self.copies.get(document.id)
            if copy is not None and self._is_there(copy):
                versions[copy.id] = copy.version

        for number, reading in enumerate(self.connector.read_documents(waiting, versions), 1):
            self.report.read += 1
            self.progress("read", number, len(waiting))
            if reading.problem is not None:
                self._set_aside(reading)
            elif reading.content is not None:
                self._stage(reading.document, reading.content)

            yield replace(reading, content=None)

    def _set_aside(self, reading: Reading) -> None:
        problem = reading.problem
        assert problem is not None
        reason = str(problem.reason)
        self.report.reasons[reason] += 1

        if len(self.report.set_aside) < MAX_LISTED:
            row = {
                "uri": reading.document.address,
                "reason": reason,
                "detail": problem.detail,
            }
            self.report.set_aside.append(row)

    def _staged(self, document: RemoteDocument) -> Path:
        """Where the content of a version waits."""
        text = f"{document.id}\n{document.version}".encode("utf-8", "surrogatepass")
        return self.staged / hashlib.sha256(text).hexdigest()

    def _place(self, readings: list[Reading], gone: Iterable[str]) -> list[Copy]:
        """Move what was read into the mirror; the copies that are new or of another version."""
        gone = set(gone)
        names = PathNames(copy.path for copy in self.copies.values() if copy.id not in gone)

        changed: list[Copy] = []
        for reading in readings:
            document = reading.document
            if reading.is_gone or reading.problem is not None:
                continue

            known = self.copies.get(document.id)
            staged = self._staged(document)
            if not staged.is_file():  # not sent again, because it is as it was
                if known is not None and known.version != document.version:
                    changed.append(known._replace(version=document.version))
                continue

            content = staged.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            if known is not None and _suffix(known.path) == _suffix(document.name):
                path = known.path
            else:
                path = names.add(document.name, document.id)

            target = self.mirror / path
            is_same = known is not None and known.sha256 == digest and target.is_file()
            if not is_same:
                make_private_folder(target.parent)
                os.replace(staged, target)

            self.report.new += known is None
            self.report.changed += known is not None and not is_same
            if document.modified is None:
                modified = None
            else:
                modified = document.modified.isoformat()

            changed.append(
                Copy(
                    document.id,
                    path,
                    document.version,
                    digest,
                    document.address,
                    modified,
                )
            )

        return changed

    def _sweep(self) -> None:
        """Remove files that are no copy of anything, also of a sync that was killed."""
        paths = {copy.path for copy in self.ledger.copies().values()}
        root = f"{self.mirror}{os.sep}"

        for folder, _, files in os.walk(self.mirror, topdown=False):
            for name in files:
                path = os.path.join(folder, name)
                if path.removeprefix(root) not in paths:
                    os.unlink(path)

            if folder != str(self.mirror) and not os.listdir(folder):
                os.rmdir(folder)

        shutil.rmtree(self.staged, ignore_errors=True)


class PathNames:
    """Paths of the mirror: safe, bounded, and none of them a folder of another."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        for path in paths:
            self._take(path)

    def _take(self, path: str) -> None:
        self._files.add(path)
        folder = path.rpartition("/")[0]
        while folder and folder not in self._folders:
            self._folders.add(folder)
            folder = folder.rpartition("/")[0]

    def add(self, name: str, identifier: str) -> str:
        """A free path for a document, the same for the same name where it is free."""
        parts = []
        for part in name.split("/"):
            if part not in ("", "."):
                parts.append(_safe_part(part))

        path = PurePosixPath(*parts or ["document"])
        if self._is_taken(path):
            mark = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            flat = PurePosixPath("-".join(path.parts)[-_LONGEST_PART:])
            path = flat.with_name(f"{flat.stem}-{mark}{flat.suffix}")

        self._take(str(path))
        return str(path)

    def _is_taken(self, path: PurePosixPath) -> bool:
        if str(path) in self._files or str(path) in self._folders:
            return True
        return any(str(parent) in self._files for parent in path.parents)


def _safe_part(part: str) -> str:
    """A part of a path that every file system takes, and that no reader passes over."""
    cleaned = _UNSAFE.sub("_", part)
    if cleaned.startswith(".") or cleaned in SKIPPED_FOLDERS:
        cleaned = f"_{cleaned}"
    if len(cleaned.encode()) <= _LONGEST_PART:
        return cleaned

    suffix = _suffix(cleaned)[:10]
    mark = hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{cleaned.encode()[: _LONGEST_PART - 20].decode('utf-8', 'ignore')}-{mark}{suffix}"


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()


def _is_never_read(name: str) -> bool:
    """Whether no reader takes files of this name; a page says its format only when it is read."""
    return bool(why_not_read(_suffix(name)))


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = ", ..." if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more


def describe_syncs(reports: Sequence[Mapping[str, Any]]) -> str:
    """How many sources were synced, and the problems of the others."""
    problems = []
    for report in reports:
        if report["problem"]:
            problems.append(report["problem"])

    return "; ".join([f"{len(reports) - len(problems)} sources in step", *problems])


def require_synced(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The reports; raises where a source could not be synced, after all of them were tried."""
    if any(report["problem"] for report in reports):
        raise SyncError(describe_syncs(reports))
    return {"synced": list(reports)}
