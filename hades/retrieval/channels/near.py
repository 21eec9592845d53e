"""Where a question is asked from: documents and nodes that the asker already stands at, as nodes of the view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from hades.errors import HadesError
from hades.ports.graph import Kind, SourceFacts
from hades.retrieval.ranking.relevance import MENTIONS
from schemas.ids import content_key
from schemas.source_kinds import SourceKind

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.turn.metered_view import MeteredView

_OUT: Final = cast("Direction", "outbound")
_DOCUMENTS = "documents/"
_BY_ORIGIN = (SourceKind.ARXIV, SourceKind.PASSAGES)  # sources whose ids alone make the key of a document
_OPENING = 240  # characters of a document by which its pieces are searched
_PIECES = 6  # pieces looked at


class UnknownPlace(HadesError):
    """A question asked from something that the graph does not hold."""


def nodes_near(view: MeteredView, ids: Sequence[str]) -> tuple[int, ...]:
    """The nodes that a question is asked from, each once, in the order given.

    An id is that of a node (`entities/...`), of a document (`documents/...`), or the one that a paper or passage came
    in with. A document stands for the entity that bears its title and for its opening pieces. What the budget does not
    allow to look up is left out, with the meter's reason.
    """
    numbers = dict(zip(ids, view.number(list(ids)).tolist(), strict=True)) if ids else {}
    found: list[int] = []
    for one, number in numbers.items():
        nodes = [number] if number >= 0 else _of_document(view, one)
        if not nodes and view.turn.reads_left > 0:
            raise UnknownPlace(
                f"{one!r} is neither a node nor a document of snapshot {view.info.snapshot}; "
                f"give an id such as entities/NAME, documents/KEY, or the id that a paper or passage came in with"
            )
        found += nodes
    return tuple(dict.fromkeys(found))


def _of_document(view: MeteredView, one: str) -> list[int]:
    wanted = [one] if one.startswith(_DOCUMENTS) else [_DOCUMENTS + content_key("d", kind, one) for kind in _BY_ORIGIN]
    source = next((source for source in view.sources(wanted) if source is not None), None)
    if source is None:
        return []
    hits = view.lexical(f"{source.title} {source.text[:_OPENING]}", kind=Kind.CHUNK, limit=_PIECES)
    passages = zip(hits.numbers.tolist(), view.passages(hits.numbers), strict=False)
    pieces = sorted((passage.span, number) for number, passage in passages if passage.document_id == source.id)
    chunks = [number for _, number in pieces]
    return [*_find_title_entity(view, source, chunks), *chunks]


def _find_title_entity(view: MeteredView, source: SourceFacts, chunks: list[int]) -> list[int]:
    """The entity among those that its pieces mention whose name is the document's title."""
    title = _fold(source.title)
    named = np.unique(view.match_names(source.title).numbers) if title else np.empty(0, np.int64)
    mentioned = view.expand(np.array(chunks, np.int64), direction=_OUT, types=[MENTIONS]).target
    numbers = named[np.isin(named, mentioned)]
    facts = zip(numbers.tolist(), view.nodes(numbers), strict=False)
    return [number for number, node in facts if _fold(node.name) == title]


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()
