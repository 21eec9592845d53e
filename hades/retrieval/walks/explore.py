"""Walking the graph by hand: a node, what surrounds it, and the piece of graph around a few nodes, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from hades.errors import HadesError
from hades.ports.graph import KINDS, EdgeFacts, Kind, NodeFacts
from hades.ports.store import Direction, GraphStore
from hades.ports.view import GraphView
from hades.retrieval.turn.metered_view import MeteredView
from hades.telemetry.turn import Caps, Turn
from schemas.intervals import Mask, iso

MAX_WORK = 200_000
MAX_MS = 2000
_TOPIC_COLUMNS = ["_key", "level", "name", "parent", "summary", "size", "drift"]
_WITH_TEXT = frozenset({Kind.CHUNK, Kind.FUNC, Kind.FILE})


class UnknownNode(HadesError):
    """An id that the graph does not have."""

    http_status = 404


@dataclass(frozen=True)
class Reach:
    """The limits of a walk: hops, edges followed from each node, nodes and edges in the result."""

    hops: int = 1
    fanout: int = 16
    nodes: int = 100
    edges: int = 400
    direction: Direction = Direction.ANY
    types: tuple[str, ...] | None = None


def node_shown(view: GraphView, identifier: str) -> dict[str, Any]:
    """Everything the graph says about one node: facts, degrees, its topic, its text where it has one."""
    number = _numbers(view, [identifier])
    facts = view.nodes(number)[0]
    kind = KINDS[int(view.kinds(number)[0])]
    topic = int(view.clusters_of(number)[0])
    shown = {
        **as_json(facts),
        "degree": {
            "out": int(view.degree(number, direction=Direction.OUT)[0]),
            "in": int(view.degree(number, direction=Direction.IN)[0]),
        },
        "topic": view.ids(np.array([topic], np.int64))[0] if topic >= 0 else None,
        "snapshot": view.info.snapshot,
    }
    if kind in _WITH_TEXT:
        passage = view.passages(number)[0]
        shown |= {"text": passage.text, "title": passage.title, "headings": list(passage.headings)}
    return shown


def subgraph(view: GraphView, identifiers: Sequence[str], reach: Reach, mask: Mask = Mask()) -> dict[str, Any]:
    """The nodes and edges within reach, heaviest first; `capped` says that there was more."""
    turn = Turn(Caps(reach.nodes + reach.edges, MAX_WORK, MAX_MS))
    metered = MeteredView(view, turn)
    start = _numbers(view, identifiers)
    depth = dict.fromkeys(start.tolist(), 0)
    handles: dict[int, None] = {}
    frontier, capped = start, False
    for hop in range(1, reach.hops + 1):
        if not len(frontier) or turn.expired():
            break
        found = metered.expand(frontier, direction=reach.direction, types=reach.types, fanout=reach.fanout, mask=mask)
        capped = capped or found.capped
        fresh: list[int] = []
        for target, edge in zip(found.target.tolist(), found.edge.tolist(), strict=True):
            if target not in depth and len(depth) < reach.nodes:
                depth[target] = hop
                fresh.append(target)
            if target in depth and len(handles) < reach.edges:
                handles[edge] = None
            else:
                capped = True
        frontier = np.array(fresh, np.int64)
    nodes = metered.nodes(np.array(list(depth), np.int64))
    edges = metered.edges(np.array(list(handles), np.int64))
    return {
        "snapshot": view.info.snapshot,
        "nodes": [{**as_json(facts), "depth": hop} for facts, hop in zip(nodes, depth.values(), strict=False)],
        "edges": [edge_as_json(edge) for edge in edges],
        "capped": capped or turn.expired() or len(nodes) < len(depth),
        "spent": {"reads": turn.reads_spent, "work": turn.work_spent, "ms": round(turn.ms, 3)},
    }


def topics_shown(store: GraphStore, view: GraphView, limit: int) -> dict[str, Any]:
    """Super-topics and topics that the view has, largest first."""
    rows = [row for batch in store.scan("clusters", columns=_TOPIC_COLUMNS) for row in batch.to_pylist()]
    numbers = view.number([f"clusters/{row['_key']}" for row in rows])
    topics = [
        {"id": f"clusters/{row.pop('_key')}", **row, "parent": f"clusters/{row['parent']}" if row["parent"] else None}
        for row, number in zip(rows, numbers.tolist(), strict=True)
        if number >= 0
    ]
    topics.sort(key=lambda topic: (-topic["level"], -topic["size"], topic["id"]))
    return {"snapshot": view.info.snapshot, "topics": topics[:limit], "total": len(topics)}


def as_json(facts: NodeFacts) -> dict[str, Any]:
    """A node as callers see it."""
    return {
        "id": facts.id,
        "kind": str(facts.kind),
        "name": facts.name,
        "type": facts.type,
        "summary": facts.summary,
        "document": facts.document,
        "span": None if facts.span is None else list(facts.span),
        "domain": facts.domain,
    }


def edge_as_json(edge: EdgeFacts) -> dict[str, Any]:
    """An edge as callers see it, with where it was read and both its intervals."""
    return {
        "id": edge.id,
        "from": edge.source,
        "to": edge.target,
        "type": edge.type,
        "label": edge.label,
        "weight": edge.weight,
        "snippet": edge.snippet,
        "document": edge.document,
        "span": None if edge.span is None else list(edge.span),
        "valid_from": _moment(edge.valid_from),
        "valid_until": _moment(edge.valid_until),
        "recorded_at": _moment(edge.recorded_at),
        "retracted_at": _moment(edge.retracted_at),
    }


def _numbers(view: GraphView, identifiers: Sequence[str]) -> np.ndarray[Any, np.dtype[np.int64]]:
    asked = list(dict.fromkeys(identifiers))
    numbers = view.number(asked)
    for identifier, number in zip(asked, numbers.tolist(), strict=True):
        if number < 0:
            raise UnknownNode(
                f"{identifier!r} is not a node of snapshot {view.info.snapshot}; give an id such as entities/name"
            )
    return numbers


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)
