"""Keep what each published graph changed in the texts, and let it forget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from hades.errors import SnapshotError
from hades.ingest.forget import words_of
from hades.night.columns import kind_numbers
from hades.night.context import BuildContext
from hades.night.history import (
    FOLDER,
    DocumentChange,
    Move,
    bound_history,
    changes_of,
    history_files,
    is_renamed,
    move_of,
    plain,
    read_moves,
    write_move,
)
from hades.night.standing import GraphChanges
from hades.ports.graph import Kind, Passage
from hades.ports.services import utc_now
from hades.snapshot.open import open_folder
from hades.snapshot.pointer import RETIRED, root_of, served
from hades.snapshot.view import GraphView
from hades.text.sentences import sentences_of
from schemas.ids import iso


@contextmanager
def keep_history(
    context: BuildContext,
    act: str = "publish",
    moment: str = "",
) -> Iterator[None]:
    """Keep what changes when another snapshot serves after the body than at the last move; pages
    that served before their graph are no move.
    """
    home = context.home
    moves = history_files(home)

    if moves:
        before = move_of(moves[-1]).snapshot
    else:
        before = served(home)

    yield
    after = served(home)
    if after == before or not context.history_bytes:
        return

    move = Move(
        iso(utc_now()),
        after,
        before,
        moment,
        act,
        settings=context.shaping_settings,
    )
    root = root_of(home)
    with closing(open_folder(root / after)) as new_view:
        changes: Sequence[DocumentChange] = ()
        counts = _sizes(new_view)
        with suppress(SnapshotError), closing(open_folder(root / before)) as old_view:
            changes = read_changes(old_view, new_view)
            counts = _count_changes(changes, old_view, new_view)
            if (root / before / RETIRED).exists():  # it holds what was forgotten
                changes = [replace(row, gone=()) for row in changes if row.change != "removed"]

    write_move(
        home / FOLDER,
        replace(
            move,
            counts=counts,
            has_texts=bool(before),
        ),
        changes,
    )
    bound_history(home, context.history_bytes)


def read_changes(old_view: GraphView, new_view: GraphView) -> list[DocumentChange]:
    """What differs between two graphs in the sentences of each document, by its name."""
    compared = GraphChanges(old_view, new_view)
    gone, came = map(_sentences_by_document, compared.passages)

    changes = []
    for document, change in compared.documents.items():
        old = gone.get(document, {})
        new = came.get(document, {})
        lost = tuple(sentence for sentence in old if sentence not in new)
        gained = tuple(sentence for sentence in new if sentence not in old)
        changes.append(
            DocumentChange(
                document,
                compared.names[document],
                change,
                lost,
                gained,
            )
        )

    return sorted(changes, key=lambda row: row.name)


def _sentences_by_document(passages: Sequence[Passage]) -> dict[str, dict[str, None]]:
    """The sentences of passages, each once, by document in the order of the text."""
    texts: dict[str, dict[str, None]] = {}
    for passage in sorted(
        passages,
        key=lambda passage: (passage.document_id, passage.span),
    ):
        sentences = dict.fromkeys(map(plain, sentences_of(passage.text)))
        texts.setdefault(passage.document_id, {}).update(sentences)

    return texts


def _sizes(view: GraphView) -> dict[str, dict[str, int]]:
    entities = view.info.nodes.get(Kind.ENTITY.value, 0)
    relations = view.info.edges.get("relations", 0)
    return {
        "entities": {"now": entities},
        "relations": {"now": relations},
    }


def _count_changes(
    changes: Sequence[DocumentChange],
    old_view: GraphView,
    new_view: GraphView,
) -> dict[str, dict[str, int]]:
    old_sizes = _sizes(old_view)
    new_sizes = _sizes(new_view)
    documents = dict.fromkeys(("added", "changed", "removed"), 0)

    for row in changes:
        documents[row.change] += 1

    old = _entity_ids(old_view)
    new = _entity_ids(new_view)
    entities = {
        "added": len(new - old),
        "removed": len(old - new),
        **new_sizes["entities"],
    }
    net = new_sizes["relations"]["now"] - old_sizes["relations"]["now"]
    return {
        "documents": documents,
        "entities": entities,
        "relations": {"net": net, **new_sizes["relations"]},
    }


def _entity_ids(view: GraphView) -> set[str]:
    return set(view.ids(kind_numbers(view.info.nodes, Kind.ENTITY.value)))


def forget_history(
    home: Path,
    documents: Sequence[str],
    words: AbstractSet[str],
) -> None:
    """Take documents (ids) out of the history: what is kept of them, also from when they had other
    names, and every sentence with one of the words.
    """
    gone = {*documents}
    contents = [(move, changes_of(home, move)) for move in read_moves(home)]

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
                rows.append(
                    replace(
                        row,
                        gone=lost,
                        came=gained,
                    )
                )

        if rows != changes:
            write_move(home / FOLDER, move, rows)


def _tells(
    forgotten: AbstractSet[str],
    words: AbstractSet[str],
    sentence: str,
) -> bool:
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
