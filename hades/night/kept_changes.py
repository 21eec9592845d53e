"""What documents said and no longer say, from the kept history of a home and the git history of its
folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from hades.errors import StoreError
from hades.ingest.manifest import known
from hades.ingest.sources.git import PageVersion, first_commit, read_pages
from hades.night.history import Move, changes_of, moves_of, plain
from hades.ports.services import TextChange
from hades.ports.store import GraphStore, Term, scan_rows
from hades.text.dates import as_moment
from hades.text.sentences import sentences_of
from schemas.ids import node_id

Commits = dict[tuple[str, str], str]


class KeptChanges:
    """See `ChangeSearch`. Before the first night, git tells what the pages of the folders said."""

    def __init__(self, home: Path, open_store: Callable[[], GraphStore]) -> None:
        self._home, self._open_store = home, open_store

    def find(
        self,
        start: datetime | None,
        end: datetime,
        *,
        may_tell: Callable[[str, str], bool],
        goes_on: Callable[[], bool],
    ) -> Iterator[TextChange]:
        nights = _kept_nights(self._home)
        first_night = _moment(nights[0]) if nights else end
        earlier = [_moment(move) for move in nights if start and _moment(move) <= start]
        commits: Commits = {}

        before_nights = []
        for folder in self._folders():
            # a commit is older than the night that read it
            for version in read_pages(folder, max(earlier, default=start), end):
                if not goes_on():
                    break
                if not may_tell(version.name, f"{version.gone}\n{version.came}"):
                    continue

                change = _compare(version)
                for sentence in change.commits:
                    commits[change.name, sentence] = version.commit

                if version.at <= first_night and not (start and version.at <= start):
                    before_nights.append(change)

        before_nights.reverse()
        before_nights.sort(key=lambda change: change.at)
        yield from self._name_documents(before_nights)

        for former, move in pairwise(nights):
            if goes_on() and _moment(move) <= end and not (start and _moment(move) <= start):
                for change in self._changes_of(former, move, commits):
                    if may_tell(change.name, "\n".join((*change.gone, *change.came))):
                        yield change

    def kept_since(self, start: datetime | None) -> datetime | None:
        moments = []
        for move in _kept_nights(self._home)[:1]:
            moments.append(_moment(move))

        if start and moments and moments[0] <= start:
            return moments[0]

        moments += filter(None, map(first_commit, self._folders()))
        return min(moments, default=None)

    def _changes_of(
        self,
        former: Move,
        move: Move,
        commits: Commits,
    ) -> Iterator[TextChange]:
        for row in changes_of(self._home, move):
            sentences = (*row.gone, *row.came)
            yield TextChange(
                row.document,
                row.name,
                row.gone,
                row.came,
                at=_moment(move),
                former_at=_moment(former),
                snapshot=move.snapshot,
                former_snapshot=former.snapshot,
                commits={text: commits.get((row.name, text), "") for text in sentences},
            )

    def _folders(self) -> list[Path]:
        """The folders that are read on this machine."""
        specs = []
        with suppress(StoreError), closing(self._open_store()) as store:
            specs = known(store)

        roots = []
        for spec in specs:
            if spec.path:
                roots.append(Path(spec.path).resolve())

        return list({root if root.is_dir() else root.parent: None for root in roots})

    def _name_documents(self, changes: Sequence[TextChange]) -> Iterator[TextChange]:
        """The changes of the pages that are in the store, with their ids; of others git may hold
        what was never read, or what is forgotten.
        """
        names = sorted({change.name for change in changes})
        ids: dict[str, str] = {}

        if names:
            with suppress(StoreError), closing(self._open_store()) as store:
                where = [Term("origin", "in", names)]
                for row in scan_rows(
                    store,
                    "documents",
                    where=where,
                    columns=["_key", "origin"],
                ):
                    ids[row["origin"]] = node_id("documents", row["_key"])

        for change in changes:
            if change.name in ids:
                yield replace(change, document=ids[change.name])


def _kept_nights(home: Path) -> list[Move]:
    """The newest moves whose sentences are all kept, after the one that they begin from."""
    nights: list[Move] = []
    for move in reversed(moves_of(home)):
        nights.insert(0, move)
        if not move.has_texts:
            break

    return nights


def _moment(move: Move) -> datetime:
    moment = as_moment(move.moment or move.at, "moment")
    assert moment is not None
    return moment


def _compare(version: PageVersion) -> TextChange:
    """The sentences that a commit took from a page and brought into it."""
    old = dict.fromkeys(map(plain, sentences_of(version.gone)))
    new = dict.fromkeys(map(plain, sentences_of(version.came)))

    gone = []
    for sentence in old:
        if sentence not in new:
            gone.append(sentence)

    came = []
    for sentence in new:
        if sentence not in old:
            came.append(sentence)

    commits = dict.fromkeys((*gone, *came), version.commit)
    return TextChange(
        "",
        version.name,
        gone,
        came,
        version.at,
        commits=commits,
    )
