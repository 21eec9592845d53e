"""What one published graph says and another does not: by document its sentences, by entity or topic
its relations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.night.standing import GraphChanges
from hades.ports.graph import Passage
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
    changes: GraphChanges,
    edges: pa.Table,
    by: By,
    only: str,
) -> JsonObject:
    """What the new graph says that the old one did not, and what it says no longer.

    `edges` are those of both graphs, joined. `only` limits it to documents, entities or topics with
    this in their name.
    """
    if by == "document":
        no_longer, now = map(_sentences, changes.passages)
    else:
        now = list(
            _relations(
                changes.after,
                edges,
                "weight_before",
                by,
            )
        )
        no_longer = list(
            _relations(
                changes.before,
                edges,
                "weight_after",
                by,
            )
        )

    both = set(now).intersection(no_longer)  # a passage was cut otherwise and says the same
    return {
        "by": by,
        "now": _grouped(now, both, only),
        "no_longer": _grouped(no_longer, both, only),
    }


def _grouped(
    statements: Iterable[_Statement],
    both: set[_Statement],
    only: str,
) -> JsonObject:
    """The statements that only one graph makes below what they are of, that with the most first."""
    groups: dict[str, list[str]] = {}
    for statement in statements:
        if statement not in both and only.casefold() in statement.group.casefold():
            groups.setdefault(statement.group, []).append(statement.text)

    shown = []
    for name in sorted(groups, key=lambda name: (-len(groups[name]), name))[:GROUPS]:
        texts = groups[name]
        shown.append(
            {
                "name": name,
                "count": len(texts),
                "statements": texts[:STATEMENTS],
            }
        )

    return {
        "count": len(set(chain.from_iterable(groups.values()))),
        "groups": shown,
    }


def _sentences(passages: Sequence[Passage]) -> list[_Statement]:
    """The sentences of passages, each once."""
    statements: dict[_Statement, None] = {}
    for passage in passages:
        for start, end in sentences(passage.text):
            line = _in_a_line(passage.text[start:end])
            statements[_Statement(passage.document, line)] = None

    return list(statements)


def _relations(
    view: GraphView,
    edges: pa.Table,
    lacking: str,
    by: By,
) -> Iterable[_Statement]:
    """The relations between entities that only this graph has, below both of their ends or below
    the topic of the first.
    """
    between = pc.and_(
        pc.starts_with(edges["source"], "entities/"),
        pc.starts_with(edges["target"], "entities/"),
    )
    own_edges = edges.filter(pc.and_(between, pc.is_null(edges[lacking])))
    own_edges = own_edges.sort_by([(name, "ascending") for name in ("source", "target", "type")])
    sources, targets = own_edges["source"].to_pylist(), own_edges["target"].to_pylist()
    names = _names_of(view, {*sources, *targets})
    topics = _topics_of(view, sources) if by == "topic" else []
    kinds = own_edges["type"].to_pylist()

    for number, (source, kind, target) in enumerate(zip(sources, kinds, targets, strict=True)):
        ends = names[source], names[target]
        text = f"{ends[0]} —{kind}→ {ends[1]}"
        for group in [topics[number]] if by == "topic" else dict.fromkeys(ends):
            yield _Statement(group, text)


def _names_of(view: GraphView, ids: Collection[str]) -> dict[str, str]:
    facts = view.nodes(view.number(sorted(ids))) if ids else []
    return {node.id: _in_a_line(node.name or node.id) for node in facts}


def _topics_of(view: GraphView, ids: Sequence[str]) -> list[str]:
    """The name of the topic of each entity."""
    if ids:
        topics = view.clusters_of(view.number(ids))
    else:
        topics = np.zeros(0, np.int64)

    known = sorted(set(topics[topics >= 0].tolist()))
    if known:
        facts = view.nodes(np.array(known, dtype=np.int64))
    else:
        facts = []

    names = dict(zip(known, (node.name for node in facts), strict=True))
    return [names.get(topic, _NO_TOPIC) for topic in topics.tolist()]


def _in_a_line(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= _EXCERPT:
        return line
    return f"{line[: _EXCERPT - 1].rstrip()}…"
