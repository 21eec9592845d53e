"""What each published graph changed in the texts, kept small for years; names of snapshots: tags,
dates, ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

from hades.errors import SnapshotError
from hades.files import write_whole
from hades.night.release.branch import snapshot_of_branch
from hades.settings.load import branches
from hades.snapshot import pointer
from hades.snapshot.pointer import root_of, served, snapshots

FOLDER = "history"
CURRENT = "current"
WENT_BACK = ("rollback", "promote")  # acts that let a snapshot serve without building one
SAME_PAGE = 0.5  # share of its sentences that a page takes along when it gets another name
_SHORTEST_PREFIX = 4
_ID = r"g[0-9a-f]{3,24}"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class DocumentChange:
    """The sentences that a document lost and got; `name` is its id as it came in."""

    document: str
    name: str
    change: str
    gone: tuple[str, ...] = ()
    came: tuple[str, ...] = ()


@dataclass(frozen=True)
class Move:
    """Another snapshot began to serve. `counts` say how many documents and entities came, changed
    and went, and what the graph holds since; `settings` are those that shape a graph.

    `moment` is the night's own; `at` is when it happened. `has_texts`: the sentences are still
    kept.
    """

    at: str
    snapshot: str
    before: str = ""
    moment: str = ""
    act: str = "publish"
    counts: Mapping[str, Mapping[str, int]] | None = None
    settings: Mapping[str, Any] | None = None
    has_texts: bool = False
    file: str = ""

    @property
    def day(self) -> str:
        """The day of the night."""
        return (self.moment or self.at)[:10]


def plain(sentence: str) -> str:
    """A sentence with single blanks, as it is compared."""
    return " ".join(sentence.split())


def write_move(
    folder: Path,
    move: Move,
    changes: Sequence[DocumentChange],
) -> Path:
    """A file of JSON lines: the move, then a line for each document."""
    name = f"{re.sub(r'[^0-9]', '', move.at)}-{move.snapshot}.jsonl"
    rows = [{**asdict(move), "file": name}, *map(asdict, changes)]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    return write_whole(folder / name, "\n".join(lines) + "\n")


def history_files(home: Path) -> list[Path]:
    """The files of the history, oldest first."""
    return sorted((home / FOLDER).glob("*.jsonl"))


def size_of_history(home: Path) -> dict[str, Any]:
    """How many bytes the history has, how many moves, and since when sentences are kept."""
    files = history_files(home)
    since = next((move.day for move in read_moves(home) if move.has_texts), "")
    bytes_kept = sum(path.stat().st_size for path in files)
    return {
        "moves": len(files),
        "bytes": bytes_kept,
        "texts_since": since,
    }


def bound_history(home: Path, limit: int) -> None:
    """Drop the oldest sentences, then the oldest moves, until the history fits."""
    files = history_files(home)
    total = sum(path.stat().st_size for path in files)

    for is_last_resort in (False, True):
        for path in files:
            if total <= limit:
                return
            if not path.exists():
                continue

            total -= path.stat().st_size
            if is_last_resort:
                path.unlink()
            else:
                write_move(
                    path.parent,
                    replace(move_of(path), has_texts=False),
                    (),
                )
                total += path.stat().st_size


def move_of(path: Path) -> Move:
    with path.open(encoding="utf-8") as lines:
        return Move(**json.loads(next(lines)))


def changes_of(home: Path, move: Move) -> list[DocumentChange]:
    """What a move changed in the texts; nothing where that is no longer kept."""
    path = home / FOLDER / move.file
    if not move.has_texts or not path.is_file():
        return []

    rows = path.read_text("utf-8").splitlines()[1:]
    return [_change_of(row) for row in rows]


def _change_of(line: str) -> DocumentChange:
    row = json.loads(line)
    return DocumentChange(
        **{
            **row,
            "gone": tuple(row["gone"]),
            "came": tuple(row["came"]),
        }
    )


def read_moves(home: Path) -> list[Move]:
    """The moves that were written down, oldest first."""
    return [move_of(path) for path in history_files(home)]


def moves_of(home: Path) -> list[Move]:
    """Every move that is known, oldest first; of what served before moves were written down, the
    snapshots that are still there.
    """
    moves = read_moves(home)
    root = root_of(home)
    serving = pointer.read_or_none(root, pointer.CURRENT)

    if serving is None:
        return moves

    known = set(chain.from_iterable((move.snapshot, move.before) for move in moves))
    known -= {move.before for move in moves[:1]}

    days = {}
    for entry in snapshots(home):
        days[entry.snapshot] = entry.created_at or ""

    earlier = []
    for snapshot in reversed((serving.snapshot, *serving.before)):
        if snapshot in days and snapshot not in known:
            earlier.append(
                Move(
                    days[snapshot],
                    snapshot,
                    moment=days[snapshot],
                )
            )

    return earlier + moves


def built_after_served(home: Path) -> str:
    """The snapshot that the store was built to, where a person went back from it; empty where it
    serves, or nothing is known.
    """
    built = []
    for move in read_moves(home):
        if move.act not in WENT_BACK:
            built.append(move.snapshot)

    if built and built[-1] != served(home):
        return built[-1]

    return ""


def past_documents(home: Path, names: Sequence[str]) -> dict[str, str]:
    """The ids of documents that the history has changes of, by their names."""
    rows = chain.from_iterable(changes_of(home, move) for move in read_moves(home))
    return {row.name: row.document for row in rows if row.name in names}


def former_of(
    row: DocumentChange,
    rows: Sequence[DocumentChange],
) -> DocumentChange | None:
    """The page that went when this one came with its sentences: it got another name."""
    if row.change != "added":
        return None

    came = set(row.came)
    for former in rows:
        if former.change == "removed" and is_renamed(former.gone, came):
            return former

    return None


def other_names(home: Path, names: Sequence[str]) -> list[str]:
    """The names with those that the same pages had before and after."""
    known = {*names}
    contents = [changes_of(home, move) for move in read_moves(home)]

    for changes in (*reversed(contents), *contents):
        for row in changes:
            former = former_of(row, changes)
            if former is not None and not known.isdisjoint((row.name, former.name)):
                known.update((row.name, former.name))

    return sorted(known)


def is_renamed(gone: Sequence[str], came: AbstractSet[str]) -> bool:
    """Whether a page that came has most of the sentences of one that went."""
    shared = sum(sentence in came for sentence in gone)
    return bool(gone) and shared >= SAME_PAGE * len(gone)


def resolve_snapshot(home: Path, name: str) -> str:
    """The id of the snapshot that a name stands for: `current`, a tag, a branch, an id or the
    beginning of one, or a day, which stands for what served at its end.
    """
    root = root_of(home)
    present = pointer.folders(root) if root.is_dir() else set()
    tags = pointer.pins(root)

    if name == CURRENT:
        if not served(home):
            raise SnapshotError("nothing is published yet; run `hades build`")
        return served(home)

    if name in present or name in tags:
        return tags.get(name, name)
    if (in_branch := snapshot_of_branch(home, name)) is not None:
        return in_branch
    if _DAY.fullmatch(name):
        return _served_on(home, name, present)

    alike = []
    for snapshot in present:
        if snapshot.startswith(name):
            alike.append(snapshot)

    if len(name) >= _SHORTEST_PREFIX and len(alike) == 1:
        return alike[0]

    if alike:
        problem = f"{len(alike)} snapshots begin with"
    else:
        problem = "there is no snapshot, tag or branch"

    raise SnapshotError(f"{problem} {name[:80]} in {root}; `hades log` shows days, ids and tags")


def _served_on(
    home: Path,
    day: str,
    present: AbstractSet[str],
) -> str:
    """What served at the end of a day, or an error that says from which day on snapshots are
    kept.
    """
    try:
        date.fromisoformat(day)
    except ValueError:
        raise SnapshotError(f"{day} is no day; write it as 2026-01-31") from None

    moves = moves_of(home)
    until = [move for move in moves if move.day <= day]
    if until and until[-1].snapshot in present:
        return until[-1].snapshot

    first_day = next((move.day for move in moves if move.snapshot in present), "none")
    raise SnapshotError(
        f"what served on {day} is not kept; the oldest snapshot that is kept served on "
        f"{first_day}; `hades tag NAME` keeps one for good"
    )


def check_name(name: str, taken: Collection[str]) -> None:
    """Refuse a name of a tag or branch that would mean another snapshot too."""
    if name in (CURRENT, *taken) or _DAY.fullmatch(name) or re.fullmatch(_ID, name):
        raise SnapshotError(
            f"{name!r} is a tag or a branch, or reads as a day, an id or what serves; take "
            "another name"
        )


def set_tag(home: Path, name: str, snapshot: str) -> None:
    """Keep a snapshot under a name that means nothing else."""
    check_name(name, branches(home))
    pointer.pin(home, name, snapshot)


def remove_tag(home: Path, name: str) -> None:
    """Let go of a tag; its snapshot may be pruned again."""
    if name not in pointer.pins(root_of(home)):
        raise SnapshotError(f"there is no tag {name}; `hades tag --list` shows them")
    pointer.pin(home, name, None)
