"""Edges through time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from hades.memory.history import rows as records
from hades.memory.history.rows import (
    EDGES,
    NEWEST,
    STATES,
    MemoryRefused,
    UnknownMemory,
    aware,
    check_text,
    edge_id,
    is_state_key,
    legal,
    revision_key,
    state_id,
    version_keys,
)
from hades.memory.history.states import INSTANT, Act, named, pointer_to
from hades.ports.store import Direction, RowStore
from schemas.ids import Mask
from schemas.memory import MemoryEdge, MemoryEdgeKind, MemoryRelation

# Edges through time: nothing about one is overwritten, each change of mind is another row. A row says what was
# believed of an edge from `recorded_at` until `retracted_at`: that it was true from `valid_from` until
# `valid_until`. Of the rows of one edge at most one is believed at any moment.


_KINDS: dict[str, MemoryEdgeKind] = {
    MemoryRelation.EVOLVES_TO: MemoryEdgeKind.TEMPORAL,
    MemoryRelation.CAUSES: MemoryEdgeKind.CAUSAL,
    MemoryRelation.CAUSED_BY: MemoryEdgeKind.CAUSAL,
    MemoryRelation.REJECTED_BECAUSE: MemoryEdgeKind.CAUSAL,
    MemoryRelation.VIABLE_AFTER_FIX: MemoryEdgeKind.CAUSAL,
    MemoryRelation.BLOCKED_BY: MemoryEdgeKind.CAUSAL,
    MemoryRelation.ENABLED_BY: MemoryEdgeKind.CAUSAL,
    MemoryRelation.REFERENCES: MemoryEdgeKind.REFERENCE,
    MemoryRelation.SUPPORTS: MemoryEdgeKind.REFERENCE,
    MemoryRelation.CONTRADICTS: MemoryEdgeKind.REFERENCE,
}
_MEANING = (
    *("kind", "strength", "valid_from", "valid_until", "superseded_by", "bidirectional", "description", "metadata"),
)
_RUN = 16  # beliefs read at a time; few edges change more than twice


@dataclass(frozen=True)
class NewEdge:
    """An edge to be drawn between two states, given by their `_id`s."""

    source: str
    target: str
    relation: str
    kind: MemoryEdgeKind | None = None
    strength: float = 1.0
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    description: str = ""
    bidirectional: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


def redrawn(edge: MemoryEdge, source: str, target: str, **changes: Any) -> NewEdge:
    """What an edge says, to be drawn between other states or for another time."""
    names = ("kind", "strength", "valid_until", "description", "bidirectional", "metadata")
    told = {name: getattr(edge, name) for name in names}
    return NewEdge(source, target, edge.relationship_type, **{**told, **changes})


def draw(rows: RowStore, new: NewEdge, act: Act, *, action: str = "link") -> MemoryEdge:
    """Believe an edge from now on. The same edge again is the same edge; other words for it are a new belief."""
    start = aware("valid_from", new.valid_from) if new.valid_from else _standing(rows, new, act.at) or act.at
    beliefs = beliefs_of(rows, edge_id(new.source, new.relation, new.target, start))
    edge = _first_belief(new, start, act)
    current = beliefs[-1] if beliefs else None
    if current is not None and current.retracted_at is None:
        if meaning_of(current) == meaning_of(edge):
            return current
        return revise(rows, current, act, action=action, **meaning_of(edge))
    return _write(rows, None, _after(beliefs, edge), act, action)


def draw_many(rows: RowStore, new: Sequence[NewEdge], act: Act) -> list[MemoryEdge]:
    """Believe many edges from now on; those nobody drew before are written together."""
    edges = [_first_belief(one, aware("valid_from", one.valid_from) if one.valid_from else act.at, act) for one in new]
    known = records.fetch(rows, EDGES, [edge.key for edge in edges], MemoryEdge)
    fresh = {edge.key: edge for edge in edges if edge.key not in known}
    records.put(rows, EDGES, fresh.values())
    for edge in fresh.values():
        act.note("link", edge.id, {"before": None, "after": edge.key})
    return [
        fresh[edge.key] if edge.key in fresh else draw(rows, one, act) for edge, one in zip(edges, new, strict=True)
    ]


def end(
    rows: RowStore, edge: str, act: Act, *, at: datetime | None = None, superseded_by: str | None = None
) -> MemoryEdge:
    """Believe from now on that an edge stopped being true; what was believed before stays to be asked for."""
    current = believe(rows, edge)
    until = aware("at", at) if at else current.valid_until or act.at
    if current.valid_from is not None and until < current.valid_from:
        raise MemoryRefused(
            f"edge {current.id} became true at {current.valid_from}, so it cannot end at {until}; give a later moment"
        )
    follower = believe(rows, superseded_by).id if superseded_by else current.superseded_by
    if follower and current.id in (one.id for one in _chain(rows, follower)):
        raise MemoryRefused(f"edge {current.id} cannot be superseded by {follower}: that goes in a circle")
    if (current.valid_until, current.superseded_by) == (until, follower):
        return current
    return revise(rows, current, act, action="close", valid_until=until, superseded_by=follower)


def revise(rows: RowStore, current: MemoryEdge, act: Act, *, action: str, **changes: Any) -> MemoryEdge:
    """Another belief about an edge in place of the current one."""
    after = current.model_copy(
        update={
            **changes,
            "key": revision_key(current.id, current.revision + 1),
            "recorded_at": act.at,
            "retracted_at": None,
        }
    )
    return _write(rows, current, after, act, action)


def withdraw(rows: RowStore, current: MemoryEdge, act: Act) -> None:
    """Believe from now on that an edge never was; nothing takes the place of the belief."""
    gone = current.model_copy(update={"retracted_at": max(act.at, _record(current) + INSTANT)})
    records.put(rows, EDGES, [gone])
    act.note("withdraw", current.id, {"before": current.key, "after": None})


def restore(rows: RowStore, belief: MemoryEdge, act: Act) -> MemoryEdge:
    """Believe again what an earlier row says."""
    beliefs = beliefs_of(rows, belief.id)
    current = beliefs[-1]
    if current.retracted_at is None:
        return revise(rows, current, act, action="restore", **meaning_of(belief))
    again = _after(beliefs, belief.model_copy(update={"recorded_at": act.at, "retracted_at": None}))
    return _write(rows, None, again, act, "restore")


def beliefs_of(rows: RowStore, edge: str) -> list[MemoryEdge]:
    """Every row of an edge, oldest first; any of its keys or its id names it."""
    identity = _identity(edge)
    found: list[MemoryEdge] = []
    while True:
        wanted = [revision_key(identity, len(found) + number) for number in range(1, _RUN + 1)]
        some = records.read(rows.get(EDGES, wanted), MemoryEdge)
        found += some
        if len(some) < _RUN:
            return found


def believe(rows: RowStore, edge: str) -> MemoryEdge:
    """What is believed of an edge now."""
    beliefs = beliefs_of(rows, edge)
    if not beliefs or beliefs[-1].retracted_at is not None:
        raise UnknownMemory(f"memory holds no edge {edge!r}; `hades memory edges TOPIC --json` prints their ids")
    return beliefs[-1]


def _chain(rows: RowStore, edge: str) -> Iterator[MemoryEdge]:
    """An edge, the one that took its place, and so on."""
    seen: set[str] = set()
    step: str | None = edge
    while step is not None:
        current = believe(rows, step)
        if current.id in seen:
            raise MemoryRefused(
                f"edge {edge} cannot be superseded so: {' -> '.join([*seen, current.id])} goes in a circle"
            )
        seen.add(current.id)
        yield current
        step = current.superseded_by


def _first_belief(new: NewEdge, start: datetime, act: Act) -> MemoryEdge:
    if not 0.0 <= new.strength <= 1.0:
        raise MemoryRefused(f"strength {new.strength} of the edge {new.relation} is not between 0 and 1; give a share")
    check_text("the description", new.description)
    return MemoryEdge(
        key=revision_key(edge_id(new.source, new.relation, new.target, start), 1),
        source=new.source,
        target=new.target,
        relationship_type=new.relation,
        kind=new.kind or _KINDS.get(new.relation, MemoryEdgeKind.CROSS_TOPIC),
        strength=new.strength,
        timestamp=act.at,
        valid_from=start,
        valid_until=_end(new, start),
        recorded_at=act.at,
        bidirectional=new.bidirectional,
        description=new.description,
        metadata=dict(new.metadata),
    )


def _write(rows: RowStore, before: MemoryEdge | None, after: MemoryEdge, act: Act, action: str) -> MemoryEdge:
    """Retract one belief and record the next at the same moment, later than any before."""
    written = [after]
    if before is not None:
        at = max(act.at, _record(before) + INSTANT)
        after = after.model_copy(update={"recorded_at": at})
        written = [before.model_copy(update={"retracted_at": at}), after]
    records.put(rows, EDGES, written)
    act.note(action, after.id, {"before": before.key if before else None, "after": after.key})
    return after


def _after(beliefs: Sequence[MemoryEdge], edge: MemoryEdge) -> MemoryEdge:
    """The next belief after ones that were all withdrawn, later than they."""
    if not beliefs:
        return edge
    at = max([_record(edge), *(belief.retracted_at for belief in beliefs if belief.retracted_at)])
    changes = {"key": revision_key(edge.id, len(beliefs) + 1), "recorded_at": at, "timestamp": beliefs[0].timestamp}
    return edge.model_copy(update=changes)


def meaning_of(edge: MemoryEdge) -> dict[str, Any]:
    """What an edge says, apart from who believed it when."""
    return {name: getattr(edge, name) for name in _MEANING}


def _standing(rows: RowStore, new: NewEdge, now: datetime) -> datetime | None:
    """Since when the same edge is true already, where no beginning was given."""
    mask = Mask(as_of=now, known_at=NEWEST)
    same = edges_around(rows, new.source, mask, direction=Direction.OUT, types=[new.relation])
    return next((edge.valid_from for edge in same if edge.target == new.target), None)


def _end(new: NewEdge, start: datetime) -> datetime | None:
    if new.valid_until is None:
        return None
    until = aware("valid_until", new.valid_until)
    if until < start:
        raise MemoryRefused(
            f"the edge {new.relation} would be true from {start} until {until}, which is before it; swap the two"
        )
    return until


def _record(edge: MemoryEdge) -> datetime:
    assert edge.recorded_at is not None
    return edge.recorded_at


def _identity(edge: str) -> str:
    name = legal("edge", edge.removeprefix(f"{EDGES}/"))
    return name.rpartition("_")[0] or name


# The edges of a topic or a state as a reader at a moment sees them.


_ALL = 1_000_000  # edges of one state; a cap, not a hint
_AROUND_RUN = 1_000  # states asked at a time


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
    nodes = _nodes_of(rows, named(rows, name, NEWEST).topic if whole_topic else name)
    keys: set[str] = set()
    for start in range(0, len(nodes), _AROUND_RUN):
        found = rows.neighbours(
            nodes[start : start + _AROUND_RUN],
            edges=EDGES,
            direction=Direction.ANY,
            types=types,
            fanout=_ALL,
            mask=mask,
        )
        keys.update(found.column("edge").to_pylist())
    edges = records.read(rows.get(EDGES, sorted(keys)), MemoryEdge) if keys else []
    if types is None and len(nodes) > 1:
        edges = [edge for edge in edges if edge.relationship_type != MemoryRelation.EVOLVES_TO]
    ours = set(nodes)
    kept = [as_known(edge, mask.known_at) for edge in edges if _leads(edge, ours, direction)]
    return sorted(kept, key=lambda edge: (edge.valid_from or edge.timestamp, edge.timestamp, edge.key))


def _nodes_of(rows: RowStore, name: str) -> list[str]:
    """The `_id`s a name stands for: one state, or all versions of a topic."""
    is_topic = not is_state_key(name.removeprefix(f"{STATES}/"))
    pointer = pointer_to(rows, name) if is_topic else None
    if pointer is None:  # a state, or a name that memory does not hold, which `named` refuses
        return [state_id(named(rows, name, NEWEST).key)]
    return [state_id(key) for key in version_keys(pointer.topic, pointer.version)]


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


# When one relation of a topic gave way to another.


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
    if edge.superseded_by is not None:
        return next((began[one.id] for one in _chain(rows, edge.superseded_by) if one.id in began), None)
    until = edge.valid_until
    later = [
        one for one in began.values() if one.id != edge.id and until and one.valid_from and one.valid_from >= until
    ]
    return min(later, key=lambda one: (one.valid_from or one.timestamp, one.key), default=None)


# What a relation turns into when its reason is gone. The table is closed: what is not in it turns into nothing.


INVERSIONS = MappingProxyType(
    {
        str(MemoryRelation.REJECTED_BECAUSE): str(MemoryRelation.VIABLE_AFTER_FIX),
        str(MemoryRelation.BLOCKED_BY): str(MemoryRelation.ENABLED_BY),
        str(MemoryRelation.CONTRADICTS): str(MemoryRelation.SUPPORTS),
    }
)
# That a contradiction is gone does not mean that there is support: this one must be said.
STATED_ONLY = frozenset({str(MemoryRelation.CONTRADICTS)})


def find_inverse(relation: str) -> tuple[str | None, str]:
    """The relation that follows from the change alone, or None, and why."""
    inverse = INVERSIONS.get(relation)
    if inverse is None:
        return None, f"{relation} has no inversion; state the new fact to have an edge for it"
    if relation in STATED_ONLY:
        return None, f"that {relation} ended does not imply {inverse}; state the new fact to have an edge for it"
    return inverse, f"{relation} ended, so {inverse}"
