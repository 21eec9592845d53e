"""What each published graph changed in the texts, kept small for years; names of snapshots: tags,
dates, ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from hades.errors import SnapshotError
from hades.files import write_whole
from hades.ingest.forget import words_of
from hades.night.columns import kind_numbers
from hades.night.context import BuildContext
from hades.night.release.branch import snapshot_of_branch
from hades.night.standing import GraphChanges
from hades.ports.graph import Kind, Passage
from hades.ports.services import utc_now
from hades.settings.load import branches
from hades.snapshot import manifest
from hades.snapshot.manifest import RETIRED, root_of, served
from hades.snapshot.open import open_folder, snapshots
from hades.snapshot.view import GraphView
from hades.text.sentences import sentences_of
from schemas.ids import iso

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


@contextmanager
def keep_history(context: BuildContext, act: str = "publish", moment: str = "") -> Iterator[None]:
    """Keep what changes when another snapshot serves after the body than at the last move; pages
    that served before their graph are no move.
    """
    home = context.home
    moves = _files(home)
    before = _move_of(moves[-1]).snapshot if moves else served(home)
    yield
    after = served(home)
    if after == before or not context.history_bytes:
        return
    move = Move(iso(utc_now()), after, before, moment, act, settings=context.shaping_settings)
    root = root_of(home)
    with closing(open_folder(root / after)) as new_view:
        changes: Sequence[DocumentChange] = ()
        counts = _sizes(new_view)
        with suppress(SnapshotError), closing(open_folder(root / before)) as old_view:
            changes = read_changes(old_view, new_view)
            counts = _count_changes(changes, old_view, new_view)
            if (root / before / RETIRED).exists():  # it holds what was forgotten
                changes = [replace(row, gone=()) for row in changes if row.change != "removed"]
    _write(home / FOLDER, replace(move, counts=counts, has_texts=bool(before)), changes)
    bound_history(home, context.history_bytes)


def read_changes(old_view: GraphView, new_view: GraphView) -> list[DocumentChange]:
    """What differs between two graphs in the sentences of each document, by its name."""
    compared = GraphChanges(old_view, new_view)
    gone, came = map(_sentences_by_document, compared.passages)
    changes = []
    for document, change in compared.documents.items():
        old, new = gone.get(document, {}), came.get(document, {})
        lost = tuple(sentence for sentence in old if sentence not in new)
        gained = tuple(sentence for sentence in new if sentence not in old)
        changes.append(DocumentChange(document, compared.names[document], change, lost, gained))
    return sorted(changes, key=lambda row: row.name)


def plain(sentence: str) -> str:
    """A sentence with single blanks, as it is compared."""
    return " ".join(sentence.split())


def _sentences_by_document(passages: Sequence[Passage]) -> dict[str, dict[str, None]]:
    """The sentences of passages, each once, by document in the order of the text."""
    texts: dict[str, dict[str, None]] = {}
    for passage in sorted(passages, key=lambda passage: (passage.document_id, passage.span)):
        sentences = dict.fromkeys(map(plain, sentences_of(passage.text)))
        texts.setdefault(passage.document_id, {}).update(sentences)
    return texts


def _sizes(view: GraphView) -> dict[str, dict[str, int]]:
    entities = view.info.nodes.get(Kind.ENTITY.value, 0)
    relations = view.info.edges.get("relations", 0)
    return {"entities": {"now": entities}, "relations": {"now": relations}}


def _count_changes(
    changes: Sequence[DocumentChange], old_view: GraphView, new_view: GraphView
) -> dict[str, dict[str, int]]:
    old_sizes, new_sizes = _sizes(old_view), _sizes(new_view)
    documents = dict.fromkeys(("added", "changed", "removed"), 0)
    for row in changes:
        documents[row.change] += 1
    old, new = _entity_ids(old_view), _entity_ids(new_view)
    entities = {"added": len(new - old), "removed": len(old - new), **new_sizes["entities"]}
    net = new_sizes["relations"]["now"] - old_sizes["relations"]["now"]
    return {
        "documents": documents,
        "entities": entities,
        "relations": {"net": net, **new_sizes["relations"]},
    }


def _entity_ids(view: GraphView) -> set[str]:
    return set(view.ids(kind_numbers(view.info.nodes, Kind.ENTITY.value)))


def _write(folder: Path, move: Move, changes: Sequence[DocumentChange]) -> Path:
    """A file of JSON lines: the move, then a line for each document."""
    name = f"{re.sub(r'[^0-9]', '', move.at)}-{move.snapshot}.jsonl"
    rows = [{**asdict(move), "file": name}, *map(asdict, changes)]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    return write_whole(folder / name, "\n".join(lines) + "\n")


def _files(home: Path) -> list[Path]:
    """The files of the history, oldest first."""
    return sorted((home / FOLDER).glob("*.jsonl"))


def size_of_history(home: Path) -> dict[str, Any]:
    """How many bytes the history has, how many moves, and since when sentences are kept."""
    files = _files(home)
    since = next((move.day for move in _read_moves(home) if move.has_texts), "")
    bytes_kept = sum(path.stat().st_size for path in files)
    return {"moves": len(files), "bytes": bytes_kept, "texts_since": since}


def bound_history(home: Path, limit: int) -> None:
    """Drop the oldest sentences, then the oldest moves, until the history fits."""
    files = _files(home)
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
                _write(path.parent, replace(_move_of(path), has_texts=False), ())
                total += path.stat().st_size


def _move_of(path: Path) -> Move:
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
    return DocumentChange(**{**row, "gone": tuple(row["gone"]), "came": tuple(row["came"])})


def _read_moves(home: Path) -> list[Move]:
    """The moves that were written down, oldest first."""
    return [_move_of(path) for path in _files(home)]


def moves_of(home: Path) -> list[Move]:
    """Every move that is known, oldest first; of what served before moves were written down, the
    snapshots that are still there.
    """
    moves = _read_moves(home)
    root = root_of(home)
    pointer = manifest.read_or_none(root, manifest.CURRENT)
    if pointer is None:
        return moves
    known = set(chain.from_iterable((move.snapshot, move.before) for move in moves))
    known -= {move.before for move in moves[:1]}
    days = {entry.snapshot: entry.created_at or "" for entry in snapshots(home)}
    earlier = [
        Move(days[snapshot], snapshot, moment=days[snapshot])
        for snapshot in reversed((pointer.snapshot, *pointer.before))
        if snapshot in days and snapshot not in known
    ]
    return earlier + moves


def built_after_served(home: Path) -> str:
    """The snapshot that the store was built to, where a person went back from it; empty where it
    serves, or nothing is known.
    """
    built = [move.snapshot for move in _read_moves(home) if move.act not in WENT_BACK]
    return built[-1] if built and built[-1] != served(home) else ""


def past_documents(home: Path, names: Sequence[str]) -> dict[str, str]:
    """The ids of documents that the history has changes of, by their names."""
    rows = chain.from_iterable(changes_of(home, move) for move in _read_moves(home))
    return {row.name: row.document for row in rows if row.name in names}


def forget_history(home: Path, documents: Sequence[str], words: AbstractSet[str]) -> None:
    """Take documents (ids) out of the history: what is kept of them, also from when they had other
    names, and every sentence with one of the words.
    """
    gone = {*documents}
    contents = [(move, changes_of(home, move)) for move in _read_moves(home)]
    for _, changes in reversed(contents):
        _follow_names(changes, gone)
    forgotten: set[str] = set()
    for row in chain.from_iterable(changes for _, changes in contents):
        if row.document in gone:
            forgotten.update(row.gone, row.came)
    is_forgotten = partial(_tells, forgotten, words)
    for move, changes in contents:
        rows = []
        for row in changes:
            if row.document not in gone and words.isdisjoint(words_of(row.name)):
                lost = tuple(text for text in row.gone if not is_forgotten(text))
                gained = tuple(text for text in row.came if not is_forgotten(text))
                rows.append(replace(row, gone=lost, came=gained))
        if rows != changes:
            _write(home / FOLDER, move, rows)


def _tells(forgotten: AbstractSet[str], words: AbstractSet[str], sentence: str) -> bool:
    return sentence in forgotten or not words.isdisjoint(words_of(sentence))


def _follow_names(changes: Sequence[DocumentChange], gone: set[str]) -> None:
    """Add the documents that went in the same move in which a forgotten one came with their
    sentences.
    """
    came: set[str] = set()
    for row in changes:
        if row.document in gone and row.change == "added":
            came.update(row.came)
    for row in changes:
        if row.change == "removed" and is_renamed(row.gone, came):
            gone.add(row.document)


def former_of(row: DocumentChange, rows: Sequence[DocumentChange]) -> DocumentChange | None:
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
    contents = [changes_of(home, move) for move in _read_moves(home)]
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
    present = manifest.folders(root) if root.is_dir() else set()
    tags = manifest.pins(root)
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
    alike = [snapshot for snapshot in present if snapshot.startswith(name)]
    if len(name) >= _SHORTEST_PREFIX and len(alike) == 1:
        return alike[0]
    problem = (
        f"{len(alike)} snapshots begin with" if alike else "there is no snapshot, tag or branch"
    )
    raise SnapshotError(f"{problem} {name[:80]} in {root}; `hades log` shows days, ids and tags")


def _served_on(home: Path, day: str, present: AbstractSet[str]) -> str:
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
    manifest.pin(home, name, snapshot)


def remove_tag(home: Path, name: str) -> None:
    """Let go of a tag; its snapshot may be pruned again."""
    if name not in manifest.pins(root_of(home)):
        raise SnapshotError(f"there is no tag {name}; `hades tag --list` shows them")
    manifest.pin(home, name, None)
