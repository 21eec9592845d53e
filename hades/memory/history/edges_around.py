"""The edges of a topic or a state as a reader at a moment sees them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from hades.memory.history import rows as records
from hades.memory.history.current import named
from hades.memory.history.names import EDGES, NEWEST, STATES, is_state_key, key_of, state_id, state_key
from hades.memory.history.states import pointer_to
from hades.ports.store import Direction, RowStore
from schemas.intervals import Mask
from schemas.memory import MemoryEdge, MemoryRelation

_ALL = 1_000_000  # edges of one state; a cap, not a hint
_RUN = 1_000  # states asked at a time


def edges_around(
    rows: RowStore,
    name: str,
    mask: Mask,
    *,
    direction: Direction = Direction.ANY,
    types: Sequence[str] | None = None,
    whole_topic: bool = False,
) -> list[MemoryEdge]:
    """The edges at a state, or at any version of a topic, that the mask lets through, oldest first.

    `whole_topic` lets a state stand for its topic. Of a topic, the edges between its own versions come only when they
    are asked for: its trace says the same.
    """
    nodes = nodes_of(rows, named(rows, name, NEWEST).topic if whole_topic else name)
    keys: set[str] = set()
    for start in range(0, len(nodes), _RUN):
        found = rows.neighbours(
            nodes[start : start + _RUN], edges=EDGES, direction=Direction.ANY, types=types, fanout=_ALL, mask=mask
        )
        keys.update(found.column("edge").to_pylist())
    edges = records.read(rows.get(EDGES, sorted(keys)), MemoryEdge) if keys else []
    if types is None and len(nodes) > 1:
        edges = [edge for edge in edges if edge.relationship_type != MemoryRelation.EVOLVES_TO]
    ours = set(nodes)
    kept = [as_known(edge, mask.known_at) for edge in edges if _leads(edge, ours, direction)]
    return sorted(kept, key=lambda edge: (edge.valid_from or edge.timestamp, edge.timestamp, edge.key))


def nodes_of(rows: RowStore, name: str) -> list[str]:
    """The `_id`s a name stands for: one state, or all versions of a topic."""
    key = key_of(name) if name.startswith(f"{STATES}/") else name
    if is_state_key(key):
        return [state_id(named(rows, key, NEWEST).key)]
    pointer = pointer_to(rows, name)
    if pointer is None:
        return [state_id(named(rows, name, NEWEST).key)]  # says that there is no such topic
    return [state_id(state_key(pointer.topic, version)) for version in range(1, pointer.version + 1)]


def as_known(edge: MemoryEdge, known_at: datetime | None) -> MemoryEdge:
    """The row as it read then: that it would be retracted later was not known."""
    if known_at is None or edge.retracted_at is None or edge.retracted_at <= known_at:
        return edge
    return edge.model_copy(update={"retracted_at": None})


def _leads(edge: MemoryEdge, nodes: set[str], direction: Direction) -> bool:
    """Whether the edge goes the way that is asked for; one that holds both ways goes both ways."""
    if direction is Direction.ANY or edge.bidirectional:
        return True
    return (edge.source if direction is Direction.OUT else edge.target) in nodes
