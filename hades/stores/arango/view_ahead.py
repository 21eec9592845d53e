"""Questions of a turn that bring more than is asked for now, so that fewer are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aql import load
from hades.ports import graph as port
from hades.ports.graph import KINDS, Hits, Kind, NameMatches, Numbers
from hades.snapshot.names import outermost
from hades.stores.arango import view_facts as facts
from hades.stores.arango.searching import names_in, place_names
from hades.stores.arango.view import ArangoView
from hades.text.identifiers import with_identifiers
from schemas.catalogue import ANALYZER, NAME_ANALYZER, collection_named

LONGEST_SOURCE = 8_000  # characters of a document that travels with its passages
MENTIONS = 64  # entities of a passage whose names travel with it

_SEARCHED = {"entities": Kind.ENTITY, "funcs": Kind.FUNC, "chunks": Kind.CHUNK}


@dataclass(frozen=True)
class TextHits:
    """Entities that a text names with what is known of them, and nodes that share words with it."""

    names: NameMatches
    facts: dict[int, port.NodeFacts]
    words: dict[Kind, Hits]
    writing: bool


@dataclass(frozen=True)
class FetchedPassage:
    """A passage with its vector, its document where that is short, and the names of the entities it mentions."""

    passage: port.Passage
    vector: list[float] | None
    source: port.SourceFacts | None
    named: list[tuple[int, list[str]]]
    writing: bool


def find_text(live: ArangoView, text: str, limit: int) -> TextHits:
    """Search names and words of a text in one question."""
    binds = {
        "names": names_in(text),
        "name_analyzer": NAME_ANALYZER,
        "columns": facts.NODE_COLUMNS,
        "text": with_identifiers(text),
        "analyzer": ANALYZER,
        "wait": live.store.wait_for_view,
        "limit": limit,
    }
    found = live.ask(load("view/find_text"), binds, "searching names and words")[0]
    places = place_names(text, [(one, spelled) for one, spelled, _ in found["named"]])
    numbers = live.node_ids.add([one for _, _, one in places])
    spans = outermost([start for start, _, _ in places], [end for _, end, _ in places], range(len(places)))
    held = {int(live.node_ids.add([one])[0]): facts.node(one, fields) for one, _, fields in found["named"]}
    names = NameMatches(numbers[spans.numbers], spans.starts, spans.ends, fetched=len(found["named"]))
    words = {kind: _hits(live, kind, found[name]) for name, kind in _SEARCHED.items()}
    return TextHits(names, held, words, found["writing"])


def read_passages(live: ArangoView, numbers: Numbers, model: str) -> list[FetchedPassage]:
    """Read passages with what is asked of them next."""
    ids = live.ids(numbers)
    live.check_readable(ids)
    binds = {
        "ids": ids,
        "columns": facts.PASSAGE_COLUMNS,
        "model": model,
        "fields": vector_fields(),
        "longest": LONGEST_SOURCE,
        "mentions": MENTIONS,
    }
    found = live.ask(load("view/read_passages"), binds, "reading passages")
    return [
        FetchedPassage(
            facts.passage(one, row),
            row["vector"],
            None if row["source"] is None else facts.source(row["source"]),
            _named(live, row["named"]),
            row["writing"],
        )
        for one, row in zip(ids, found, strict=True)
    ]


def read_facts(
    live: ArangoView, nodes: Sequence[int], edges: Sequence[int]
) -> tuple[list[port.NodeFacts], list[port.EdgeFacts], bool]:
    """Read nodes and edges in one question; with whether a write of several units was under way."""
    node_ids = live.node_ids.names(np.array(nodes, np.int64))
    edge_ids = live.edge_ids.names(np.array(edges, np.int64))
    binds = {
        "nodes": node_ids,
        "node_columns": facts.NODE_COLUMNS,
        "edges": edge_ids,
        "edge_columns": facts.EDGE_COLUMNS,
    }
    found = live.ask(load("view/list_facts"), binds, "reading paths")[0]
    return (
        [facts.node(one, row) for one, row in zip(node_ids, found["nodes"], strict=True)],
        [facts.edge(one, row) for one, row in zip(edge_ids, found["edges"], strict=True)],
        found["writing"],
    )


def vector_fields() -> dict[str, str]:
    """The column of the vector in each collection of nodes that has one."""
    declared = {kind.value: collection_named(kind.value) for kind in KINDS}
    return {name: one.vector_field for name, one in declared.items() if one is not None and one.vector_field}


def _named(live: ArangoView, rows: Sequence[Any]) -> list[tuple[int, list[str]]]:
    numbers = live.node_ids.add([one for one, _ in rows]).tolist()
    return [(number, [name for name in names if name]) for number, (_, names) in zip(numbers, rows, strict=True)]


def _hits(live: ArangoView, kind: Kind, rows: Sequence[Any]) -> Hits:
    numbers = live.node_ids.add([f"{kind}/{key}" for key, _ in rows])
    return Hits(numbers, np.array([score for _, score in rows], np.float32))
