"""What one published graph says and another does not: by document its sentences, by entity or topic
its relations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.graph import Kind
from hades.snapshot.view import GraphView
from hades.text.sentences import sentences
from schemas.record import JsonObject

By = Literal["document", "entity", "topic"]
GROUPS, STATEMENTS = 20, 8  # that are named
_EXCERPT = 300
_NO_TOPIC = "no topic"


class _Statement(NamedTuple):
    """Something that a graph says: where it stands, and in which words."""

    group: str
    text: str


def compare_said(
    old_view: GraphView, new_view: GraphView, edges: pa.Table, by: By, only: str
) -> JsonObject:
    """What the new graph says that the old one did not, and what it says no longer.

    `edges` are those of both graphs, joined. `only` limits it to documents, entities or topics with
    this in their name.
    """
    if by == "document":
        old, new = _chunks(old_view), _chunks(new_view)
        now = _passages(new_view, new, old)
        no_longer = _passages(old_view, old, new)
    else:
        now = list(_relations(new_view, edges, "weight_before", by))
        no_longer = list(_relations(old_view, edges, "weight_after", by))
    both = set(now).intersection(no_longer)  # a passage was cut otherwise and says the same
    new_statements = [statement for statement in now if statement not in both]
    lost_statements = [statement for statement in no_longer if statement not in both]
    return {
        "by": by,
        "now": _grouped(new_statements, only),
        "no_longer": _grouped(lost_statements, only),
    }


def _grouped(statements: Iterable[_Statement], only: str) -> JsonObject:
    """The statements below what they are of, that with the most first."""
    groups: dict[str, list[str]] = {}
    for statement in statements:
        if only.casefold() in statement.group.casefold():
            groups.setdefault(statement.group, []).append(statement.text)
    ordered = sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    return {
        "count": len(set(chain.from_iterable(groups.values()))),
        "groups": [
            {"name": name, "count": len(texts), "statements": texts[:STATEMENTS]}
            for name, texts in ordered[:GROUPS]
        ],
    }


def _chunks(view: GraphView) -> dict[str, int]:
    """The number of every passage by its id."""
    start = 0
    for kind, count in view.info.nodes.items():
        if kind == Kind.CHUNK.value:
            numbers = np.arange(start, start + count, dtype=np.int64)
            return dict(zip(view.ids(numbers), numbers.tolist(), strict=True))
        start += count
    return {}


def _passages(
    view: GraphView, numbers: dict[str, int], other_numbers: dict[str, int]
) -> list[_Statement]:
    """The sentences of the passages that only this graph has, each once."""
    own_numbers = sorted(numbers[passage] for passage in numbers.keys() - other_numbers.keys())
    statements: dict[_Statement, None] = {}
    for passage in view.passages(np.array(own_numbers, dtype=np.int64)):
        for start, end in sentences(passage.text):
            line = _in_a_line(passage.text[start:end])
            statements[_Statement(passage.document, line)] = None
    return list(statements)


def _relations(view: GraphView, edges: pa.Table, lacking: str, by: By) -> Iterable[_Statement]:
    """The relations between entities that only this graph has, below both of their ends or below
    the topic of the first.
    """
    between = pc.and_(
        pc.starts_with(edges["source"], "entities/"), pc.starts_with(edges["target"], "entities/")
    )
    own_edges = edges.filter(pc.and_(between, pc.is_null(edges[lacking])))
    own_edges = own_edges.sort_by(
        [("source", "ascending"), ("target", "ascending"), ("type", "ascending")]
    )
    names = _names_of(view, pc.unique(pa.chunked_array([*_both_ends(own_edges)])).to_pylist())
    topics = _topics_of(view, own_edges["source"].to_pylist()) if by == "topic" else []
    for number, row in enumerate(own_edges.select(["source", "type", "target"]).to_pylist()):
        source, target = names[row["source"]], names[row["target"]]
        text = f"{source} —{row['type']}→ {target}"
        groups = [topics[number]] if by == "topic" else dict.fromkeys((source, target))
        yield from (_Statement(group, text) for group in groups)


def _both_ends(edges: pa.Table) -> list[pa.Array]:
    return [*edges["source"].chunks, *edges["target"].chunks] or [pa.array([], pa.string())]


def _names_of(view: GraphView, ids: Sequence[str]) -> dict[str, str]:
    facts = view.nodes(view.number(ids)) if ids else []
    return {node.id: _in_a_line(node.name or node.id) for node in facts}


def _topics_of(view: GraphView, ids: Sequence[str]) -> list[str]:
    """The name of the topic of each entity."""
    topics = view.clusters_of(view.number(ids)) if ids else np.zeros(0, np.int64)
    known = sorted(set(topics[topics >= 0].tolist()))
    facts = view.nodes(np.array(known, dtype=np.int64)) if known else []
    names = dict(zip(known, (node.name for node in facts), strict=True))
    return [names.get(topic, _NO_TOPIC) for topic in topics.tolist()]


def _in_a_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else f"{line[: _EXCERPT - 1].rstrip()}…"
