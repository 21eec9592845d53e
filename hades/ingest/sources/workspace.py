"""Code workspaces: source files with their symbols, and the prose that lies beside them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from hades.ingest.parse_cache import ParseCache
from hades.ingest.source_document import Material, RejectedInput, SourceTools
from hades.ingest.sources.confined import ConfinedPool
from hades.ingest.sources.file_languages import language_of
from hades.ingest.sources.file_material import PARSER, UNPARSED, FileReader
from hades.ingest.sources.history_documents import history_documents
from hades.ingest.sources.history_rules import HistoryRules
from hades.ingest.sources.parallel_reading import in_order, reading_workers
from hades.ingest.sources.reading import MAX_TEXT_BYTES, SourceError, Unusable, read_bytes, read_text, show
from hades.ingest.sources.walk import FileEntry, walk
from schemas.source_kinds import SourceKind
from schemas.sources import SourceSpec


def open_source(spec: SourceSpec, tools: SourceTools) -> WorkspaceSource:
    """The workspace of a description; parsed files and read commits are kept in the scratch folder."""
    history = replace(tools.history, cache=tools.scratch) if spec.history else None
    return WorkspaceSource(
        Path(spec.path), history=history, exclude=spec.exclude, scratch=tools.scratch, workers=tools.workers
    )


class WorkspaceSource:
    """Code and documentation below a folder, or in the named packages of it; other files are passed over.

    `scratch` is a folder that keeps what was parsed, so that the next reading parses only what changed.
    """

    kind = SourceKind.WORKSPACE

    def __init__(
        self,
        root: Path,
        packages: Sequence[str] = (),
        history: HistoryRules | None = None,
        exclude: Sequence[str] = (),
        scratch: Path | None = None,
        workers: int = 0,
    ) -> None:
        if not root.is_dir():
            raise SourceError(f"{root} is not a folder; expected the root of a code workspace")
        self._root = root.resolve()
        self._starts = _starts(self._root, packages) if packages else ("",)
        self.corpus = self._root.name
        self.place = str(self._root)
        self._exclude = tuple(exclude)
        self._workers = reading_workers(workers)
        self._history = history if not packages else None
        self.mirrors = not packages  # what is outside the named packages is not gone
        is_package = cache(lambda folder: (self._root / folder / "__init__.py").is_file())
        name = hashlib.sha256(os.fsencode(self._root)).hexdigest()[:24]
        self._cache = ParseCache(None if scratch is None else scratch / f"parsed-{name}.jsonl")
        self._reader = FileReader(self._root.name, is_package, _go_mod(self._root), self._cache)

        self._left_out: set[str] = set()  # paths

    @property
    def records_path(self) -> Path:
        """The folder of the files."""
        return self._root

    def digest_beside(self) -> str:
        """What documents depend on beside their file."""
        return self._reader.digest

    def leave_out(self, known: Mapping[bytes, str]) -> list[bytes]:
        """See `RecordSource.leave_out`; a file is known by its path, its module and its bytes."""
        files = self._files() if known else ()
        found = {one.relative: record for one in files if (record := self._find_record(one, known)) is not None}
        self._left_out = set(found)
        return list(found.values())

    def estimate(self) -> int | None:
        """Files that will be read."""
        return sum(1 for found in self._files() if found.problem is None)

    def read(self) -> Iterator[Material | RejectedInput]:
        """Files in the order of their paths, then commits, newest first."""
        with ConfinedPool(PARSER, self._workers) as parsers:
            files = (one for one in self._files() if one.relative not in self._left_out)
            yield from in_order(partial(self._outcome, parsers), files, self._workers)
        self._cache.save()
        if self._history is not None:
            yield from history_documents(self._root, self._history)

    def _files(self) -> Iterator[FileEntry]:
        for found in walk(str(self._root), self._starts, exclude=self._exclude):
            if found.problem is not None or language_of(found.relative) is not None:
                yield found

    def _find_record(self, found: FileEntry, known: Mapping[bytes, str]) -> bytes | None:
        """The record of a file whose document is known; None where it must be read."""
        if found.problem is not None:
            return None
        try:
            record = self._reader.record_of(found.relative, read_bytes(found.path, MAX_TEXT_BYTES))
        except Unusable:
            return None
        if record.digest not in known:
            return None
        self._reader.hold(record)
        return record.digest

    def _outcome(self, parsers: ConfinedPool, found: FileEntry) -> Material | RejectedInput:
        try:
            if found.problem is not None:
                raise found.problem
            data = read_bytes(found.path, MAX_TEXT_BYTES)
            material = self._reader.material(found.relative, data, parsers)
            if UNPARSED in material.metadata:
                return material  # a parser that ran out of time is tried again
            return replace(material, record=self._reader.record_of(found.relative, data).digest)
        except Unusable as problem:
            uri = show(found.relative)
            return RejectedInput(SourceKind.WORKSPACE, uri, problem.reason, problem.detail, problem.size)


def _starts(root: Path, packages: Sequence[str]) -> tuple[str, ...]:
    """Folders and files of named packages, in order, none of them inside another."""
    found: set[str] = set()
    for package in packages:
        path = package.strip("/") if "/" in package else package.replace(".", "/")
        candidates = [one for one in (path, f"{path}.py", package) if one and (root / one).exists()]
        if not candidates or ".." in path.split("/"):
            raise SourceError(f"{root} has no package {package!r}; expected a folder or a module below it")
        found.update(candidates)
    return tuple(sorted(one for one in found if not any(one.startswith(f"{other}/") for other in found)))


def _go_mod(root: Path) -> str:
    """The file that names the Go module of this workspace, which its files import each other by."""
    try:
        return read_text(os.fspath(root / "go.mod"), 1 << 20)
    except Unusable:
        return ""
