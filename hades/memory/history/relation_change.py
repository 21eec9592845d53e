"""When one relation of a topic gave way to another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hades.memory.history.edges import believe
from hades.memory.history.edges_around import edges_around
from hades.ports.store import Direction, RowStore
from schemas.intervals import Mask
from schemas.memory import MemoryEdge


@dataclass(frozen=True)
class EdgeChange:
    """The moment an edge ended and the one that took its place began."""

    at: datetime
    ended: MemoryEdge
    began: MemoryEdge


def find_edge_change(rows: RowStore, topic: str, from_rel: str, to_rel: str, known_at: datetime) -> EdgeChange | None:
    """The last time that `from_rel` gave way to `to_rel`, or None when it never did.

    A supersession says which edge took which place; without one, the first `to_rel` that began when or after a
    `from_rel` ended.
    """
    seen = edges_around(
        rows, topic, Mask(known_at=known_at), direction=Direction.OUT, types=list(dict.fromkeys([from_rel, to_rel]))
    )
    ended = [edge for edge in seen if edge.relationship_type == from_rel and edge.valid_until is not None]
    began = {edge.id: edge for edge in seen if edge.relationship_type == to_rel}
    for edge in sorted(ended, key=lambda edge: (edge.valid_until or edge.timestamp, edge.key), reverse=True):
        follower = _follower(rows, edge, began)
        if follower is not None and edge.valid_until is not None:
            return EdgeChange(max(edge.valid_until, follower.valid_from or edge.valid_until), edge, follower)
    return None


def _follower(rows: RowStore, edge: MemoryEdge, began: dict[str, MemoryEdge]) -> MemoryEdge | None:
    step = edge.superseded_by
    while step is not None:
        if step in began:
            return began[step]
        step = believe(rows, step).superseded_by
    if edge.superseded_by is not None:
        return None
    later = [
        one
        for one in began.values()
        if one.id != edge.id and one.valid_from is not None and edge.valid_until is not None
        if one.valid_from >= edge.valid_until
    ]
    return min(later, key=lambda one: (one.valid_from or one.timestamp, one.key), default=None)
