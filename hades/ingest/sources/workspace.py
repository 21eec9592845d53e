"""Folder of code with its commits."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from hades.ingest.formats.registry import FORMATS
from hades.ingest.parsers.facts import Section
from hades.ingest.sources.code_files import CODE_SUFFIXES, PARSER, FileReader, language_of
from hades.ingest.sources.confined import ConfinedPool, in_order, reading_workers
from hades.ingest.sources.documents import prose_language
from hades.ingest.sources.files import (
    MAX_TEXT_BYTES,
    FileEntry,
    SourceError,
    Unusable,
    read_bytes,
    read_text,
    show,
    walk,
)
from hades.ingest.sources.git import Commit, find_git_dir, name_as_newest, read_history
from hades.ingest.sources.material import CommitFacts, Material, RejectedInput, SourceTools
from hades.settings.tree import HistorySettings
from schemas.nodes import CHANGED_FILES, ChunkKind
from schemas.sources import SourceKind, SourceSpec

# Commits as documents: the message and the files it changed.


_LISTED_FILES = 30
KEPT_FILES = 200


_History = list[tuple[Commit, tuple[str, ...]]]


def _read_history(root: Path, rules: HistorySettings) -> _History:
    """The commits of the repository whose root is this folder, newest first, with the paths their files have today."""
    git_dir = find_git_dir(root)
    if git_dir is None:
        return []
    commits = read_history(
        git_dir, max_commits=rules.max_commits, max_age_days=rules.max_age_days, keep_emails=rules.keep_emails
    )
    return list(name_as_newest(commits))


def _added(history: _History) -> dict[str, datetime]:
    """When each file that the history saw appear was added first."""
    return {
        path: commit.at
        for commit, now in history
        for change, path in zip(commit.changes, now, strict=True)
        if change.status == "A"
    }


def _material(commit: Commit, now: Sequence[str]) -> Material:
    """The document of a commit; `now` are the paths that its files have today, which edges are made from."""
    paths = [change.path for change in commit.changes]
    more = f" and {len(paths) - _LISTED_FILES} more" if len(paths) > _LISTED_FILES else ""
    listed = f"{CHANGED_FILES}{', '.join(paths[:_LISTED_FILES])}{more}" if paths else ""
    text = f"{commit.message or commit.id[:12]}{listed}".encode("utf-8", "replace").decode()
    touched = tuple((path, change.names) for change, path in zip(commit.changes, now, strict=True))
    heading = text.partition("\n")[0].strip()[:200] or commit.id[:12]
    return Material(
        origin=f"commit:{commit.id}",
        source=SourceKind.WORKSPACE,
        text=text,
        mime="text/x-git-commit",
        created=commit.at,
        sections=(Section(0, len(text), ChunkKind.COMMIT, (heading,)),),
        commit=CommitFacts(commit.id, commit.author, touched[:KEPT_FILES]),
        metadata={"author": commit.author},
    )


# Code workspaces: source files with their symbols, and the prose that lies beside them.


def open_source(spec: SourceSpec, tools: SourceTools) -> WorkspaceSource:
    """The workspace of a description."""
    history = tools.history if spec.history else None
    return WorkspaceSource(Path(spec.path), history=history, exclude=spec.exclude, workers=tools.workers)


class WorkspaceSource:
    """Code and documentation below a folder; other files are passed over.

    `parsed` is for a commit that was checked out: it keeps documents by content, so that what did not change since
    another commit is not parsed again, and ignore files say nothing of what is tracked.
    """

    kind = SourceKind.WORKSPACE
    mirrors = True

    def __init__(
        self,
        root: Path,
        history: HistorySettings | None = None,
        exclude: Sequence[str] = (),
        workers: int = 0,
        parsed: dict[str, Material] | None = None,
    ) -> None:
        if not root.is_dir():
            raise SourceError(f"{root} is not a folder; expected the root of a code workspace")
        self._root = root.resolve()
        self.corpus = self._root.name
        self.place = str(self._root)
        self._exclude = tuple(exclude)
        self._workers = reading_workers(workers)
        self._history, self._parsed = history, parsed
        is_package = cache(lambda folder: (self._root / folder / "__init__.py").is_file())
        self._reader = FileReader(self._root.name, is_package, _go_mod(self._root))

    def estimate(self) -> int | None:
        """Files that will be read."""
        return sum(1 for found in self._files() if found.problem is None)

    def read(self) -> Iterator[Material | RejectedInput]:
        """Files in the order of their paths, dated by the commit that added them; then commits, newest first."""
        history = _read_history(self._root, self._history) if self._history is not None else []
        added = _added(history)
        with ConfinedPool(PARSER, self._workers) as parsers:
            for outcome in in_order(partial(self._outcome, parsers), self._files(), self._workers):
                if isinstance(outcome, Material) and outcome.created is None and outcome.origin in added:
                    yield replace(outcome, created=added[outcome.origin])
                else:
                    yield outcome
        yield from (_material(commit, now) for commit, now in history)

    def _files(self) -> Iterator[FileEntry]:
        for found in walk(str(self._root), respect_ignores=self._parsed is None, exclude=self._exclude):
            if found.problem is not None or language_of(found.relative) is not None:
                yield found

    def _outcome(self, parsers: ConfinedPool, found: FileEntry) -> Material | RejectedInput:
        try:
            if found.problem is not None:
                raise found.problem
            data = read_bytes(found.path, MAX_TEXT_BYTES)
            if self._parsed is None:
                return self._reader.material(found.relative, data, parsers)
            key = f"{hashlib.sha256(data).hexdigest()} {self._reader.module(found.relative)} {found.relative}"
            if key not in self._parsed:
                self._parsed[key] = self._reader.material(found.relative, data, parsers)
            return self._parsed[key]
        except Unusable as problem:
            uri = show(found.relative)
            return RejectedInput(SourceKind.WORKSPACE, uri, problem.reason, problem.detail, problem.size)


def holds_mostly_code(root: Path) -> bool:
    """Whether a folder has at least as many files of code as pages, and no document that only `documents` reads."""
    suffixes = Counter(os.path.splitext(found.relative)[1].lower() for found in walk(os.fspath(root)))
    pages = sum(count for suffix, count in suffixes.items() if suffix and prose_language(f"a{suffix}"))
    code = sum(suffixes[suffix] for suffix in CODE_SUFFIXES)
    return code >= max(1, pages) and suffixes.keys().isdisjoint(FORMATS)


def _go_mod(root: Path) -> str:
    """The file that names the Go module of this workspace, which its files import each other by."""
    try:
        return read_text(os.fspath(root / "go.mod"), 1 << 20)
    except Unusable:
        return ""
