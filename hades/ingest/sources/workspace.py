"""Folder of code with its commits."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

import orjson

from hades.ingest.sources.code_files import PARSER, UNPARSED, FileReader, ParseCache, language_of
from hades.ingest.sources.confined import ConfinedPool, in_order, reading_workers
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
from hades.ingest.sources.git import (
    Commit,
    FileChange,
    Hunk,
    find_git_dir,
    is_ancestor,
    name_as_newest,
    read_history,
    resolve_commit,
)
from hades.ingest.sources.material import CommitFacts, HistoryRules, Material, RejectedInput, Section, SourceTools
from schemas.nodes import CHANGED_FILES, ChunkKind
from schemas.sources import SourceKind, SourceSpec

# Commits as documents: the message and the files it changed; read once, then only what is new.


_CACHE_VERSION = 1
_LISTED_FILES = 30
KEPT_FILES = 200


def history_documents(root: Path, rules: HistoryRules) -> Iterator[Material]:
    """The commits of the repository whose root is this folder, newest first; none where there is no repository."""
    git_dir = find_git_dir(root)
    if git_dir is not None:
        for commit, paths in name_as_newest(_commits(git_dir, rules)):
            yield _material(commit, paths)


def _commits(git_dir: Path, rules: HistoryRules) -> list[Commit]:
    newest = resolve_commit(git_dir)
    if newest is None:
        return []
    file = _cache_file(git_dir, rules)
    known, kept = _load(file) if file else ("", [])
    if known == newest:
        return kept
    follows = bool(known) and is_ancestor(git_dir, known, newest)
    commits = read_history(
        git_dir,
        newest,
        max_commits=rules.max_commits,
        max_age_days=rules.max_age_days,
        known=known if follows else None,
        keep_emails=rules.keep_emails,
    )
    if follows:
        commits = _limit_commits([*commits, *kept], rules)
    if file:
        _save(file, newest, commits)
    return commits


def _limit_commits(commits: list[Commit], rules: HistoryRules) -> list[Commit]:
    """What one reading of the whole history would give: newest first, within number and age."""
    ordered = sorted(commits, key=lambda one: one.at, reverse=True)[: rules.max_commits]
    oldest = ordered[0].at - timedelta(days=rules.max_age_days) if ordered else None
    return [one for one in ordered if oldest is None or one.at >= oldest]


def _material(commit: Commit, now: Sequence[str]) -> Material:
    """The document of a commit; `now` are the paths that its files have today, which edges are made from."""
    paths = [change.path for change in commit.changes]
    more = f" and {len(paths) - _LISTED_FILES} more" if len(paths) > _LISTED_FILES else ""
    listed = f"{CHANGED_FILES}{', '.join(paths[:_LISTED_FILES])}{more}" if paths else ""
    text = f"{commit.message or commit.id[:12]}{listed}".encode("utf-8", "replace").decode()
    heading = text.partition("\n")[0].strip()[:200] or commit.id[:12]
    return Material(
        origin=f"commit:{commit.id}",
        source=SourceKind.WORKSPACE,
        text=text,
        mime="text/x-git-commit",
        created=commit.at,
        sections=(Section(0, len(text), ChunkKind.COMMIT, (heading,)),),
        commit=CommitFacts(commit.id, commit.author, tuple(_find_touched(commit, now))),
        metadata={"author": commit.author},
    )


def _find_touched(commit: Commit, now: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for change, path in list(zip(commit.changes, now, strict=True))[:KEPT_FILES]:
        yield path, tuple(dict.fromkeys(name for hunk in change.hunks for name in hunk.names))


def _cache_file(git_dir: Path, rules: HistoryRules) -> Path | None:
    if rules.cache is None:
        return None
    told = repr((os.fspath(git_dir), rules.max_commits, rules.max_age_days, rules.keep_emails, _CACHE_VERSION))
    return rules.cache / f"history-{hashlib.sha256(told.encode()).hexdigest()[:24]}.json"


def _load(file: Path) -> tuple[str, list[Commit]]:
    """The newest commit that was read and all of them; nothing when the file is absent or damaged."""
    try:
        body = orjson.loads(file.read_bytes())
        return body["newest"], [_commit(row) for row in body["commits"]]
    except (OSError, ValueError, KeyError, TypeError):
        return "", []


def _save(file: Path, newest: str, commits: list[Commit]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_bytes(orjson.dumps({"newest": newest, "commits": [asdict(one) for one in commits]}, default=str))
    partial.replace(file)


def _commit(row: dict[str, Any]) -> Commit:
    changes = [
        FileChange(
            one["path"],
            one["status"],
            one["old_path"],
            tuple(Hunk(hunk["first"], hunk["last"], tuple(hunk["names"])) for hunk in one["hunks"]),
        )
        for one in row["changes"]
    ]
    moment = datetime.fromisoformat(row["at"])
    return Commit(row["id"], tuple(row["parents"]), moment, row["author"], row["message"], tuple(changes))


# Code workspaces: source files with their symbols, and the prose that lies beside them.


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
