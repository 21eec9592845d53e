"""Edges through time: nothing about one is overwritten, each change of mind is another row.

A row says what was believed of an edge from `recorded_at` until `retracted_at`: that it was true from `valid_from`
until `valid_until`. Of the rows of one edge at most one is believed at any moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from hades.memory.history import rows as records
from hades.memory.history.audit import Act
from hades.memory.history.names import (
    EDGES,
    NEWEST,
    MemoryRefused,
    UnknownMemory,
    aware,
    check_text,
    edge_id,
    legal,
    revision_key,
)
from hades.memory.history.states import INSTANT
from hades.ports.store import RowStore
from schemas.intervals import Mask
from schemas.memory import MemoryEdge, MemoryEdgeKind, MemoryRelation

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
_MANY = 100_000
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


def draw(rows: RowStore, new: NewEdge, act: Act, *, action: str = "link") -> MemoryEdge:
    """Believe an edge from now on. The same edge again is the same edge; other words for it are a new belief."""
    start = aware("valid_from", new.valid_from) if new.valid_from else _standing(rows, new, act.at) or act.at
    beliefs = beliefs_of(rows, edge_id(new.source, new.relation, new.target, start))
    edge = _first_belief(new, start, act)
    current = beliefs[-1] if beliefs else None
    if current is not None and current.retracted_at is None:
        if _meaning(current) == _meaning(edge):
            return current
        return revise(rows, current, act, action=action, **_meaning(edge))
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
    if follower:
        _refuse_cycle(rows, current.id, follower)
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
        return revise(rows, current, act, action="restore", **_meaning(belief), superseded_by=belief.superseded_by)
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


def successor(rows: RowStore, edge: str, as_of: datetime) -> MemoryEdge | None:
    """The edge at the end of the chain of supersessions when it is active then, else none."""
    current = believe(rows, edge)
    for _ in range(_MOST_STEPS):
        if current.superseded_by is None:
            return current if current.is_active(as_of) else None
        current = believe(rows, current.superseded_by)
    raise MemoryRefused(f"edge {edge} was superseded more than {_MOST_STEPS} times over; run `hades memory check`")


_MOST_STEPS = 10_000


def _refuse_cycle(rows: RowStore, edge: str, follower: str) -> None:
    seen = [edge]
    step: str | None = follower
    while step is not None:
        if step in seen:
            chain = " -> ".join([*seen, step])
            raise MemoryRefused(f"edge {edge} cannot be superseded by {follower}: {chain} goes in a circle")
        seen.append(step)
        step = believe(rows, step).superseded_by


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


def _meaning(edge: MemoryEdge) -> dict[str, Any]:
    """What an edge says, apart from who believed it when."""
    names = ("kind", "strength", "valid_from", "valid_until", "bidirectional", "description", "metadata")
    return {name: getattr(edge, name) for name in names}


def _standing(rows: RowStore, new: NewEdge, now: datetime) -> datetime | None:
    """Since when the same edge is true already, where no beginning was given."""
    mask = Mask(as_of=now, known_at=NEWEST)
    found = rows.neighbours([new.source], edges=EDGES, types=[new.relation], fanout=_MANY, mask=mask)
    keys = found.filter(pc.equal(found.column("neighbour"), new.target)).column("edge").to_pylist()
    return records.read(rows.get(EDGES, keys[:1]), MemoryEdge)[0].valid_from if keys else None


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
