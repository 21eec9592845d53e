"""Commits as documents: the message and the files it changed; read once, then only what is new."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from hades.ingest.source_document import CommitFacts, Material, Section
from hades.ingest.sources.git_command import find_git_dir, is_ancestor, resolve_commit
from hades.ingest.sources.git_history import (
    Commit,
    FileChange,
    Hunk,
    name_as_newest,
    read_history,
)
from hades.ingest.sources.history_rules import HistoryRules
from schemas.chunks import CHANGED_FILES, ChunkKind
from schemas.source_kinds import SourceKind

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
