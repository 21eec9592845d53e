"""Edges through time: nothing about one is overwritten, each change of mind is another row.

A row says what was believed of an edge from `recorded_at` until `retracted_at`: that it was true
from `valid_from` until `valid_until`. Of the rows of one edge at most one is believed at any
moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from hades.memory.history.rows import (
    EDGES,
    NEWEST,
    MemoryRefused,
    UnknownMemory,
    aware,
    check_share,
    check_text,
    edge_id,
    fetch,
    legal,
    put,
    read,
    revision_key,
    scan,
    state_id,
)
from hades.memory.history.states import INSTANT, Act, keys_of, named
from hades.ports.store import Direction, RowStore, Term
from schemas.ids import Mask, is_visible
from schemas.memory import MemoryEdge, MemoryEdgeKind, MemoryRelation
from schemas.record import JsonObject

_CAUSAL = (
    "causes",
    "caused_by",
    "rejected_because",
    "viable_after_fix",
    "blocked_by",
    "enabled_by",
)
_KINDS: dict[str, MemoryEdgeKind] = {
    "evolves_to": MemoryEdgeKind.TEMPORAL,
    **dict.fromkeys(_CAUSAL, MemoryEdgeKind.CAUSAL),
    **dict.fromkeys(
        ("references", "supports", "contradicts"),
        MemoryEdgeKind.REFERENCE,
    ),
}
_MEANING = {
    "kind",
    "strength",
    "valid_from",
    "valid_until",
    "superseded_by",
    "bidirectional",
    "description",
    "metadata",
}
_RUN = 16  # beliefs read at a time; few edges change more than twice


@dataclass(frozen=True)
class NewEdge:
    """An edge to be drawn between two states, given by their `_id`s."""

    source: str
    target: str
    relationship_type: str
    kind: MemoryEdgeKind | None = None
    strength: float = 1.0
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    description: str = ""
    bidirectional: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)


def redrawn(edge: MemoryEdge, **changes: Any) -> NewEdge:
    """What an edge says, to be drawn between other states or for another time."""
    values = edge.model_dump(include={edge_field.name for edge_field in fields(NewEdge)})
    return NewEdge(
        **{
            **values,
            "valid_from": None,
            **changes,
        }
    )


def draw(
    rows: RowStore,
    new: NewEdge,
    act: Act,
    *,
    action: str = "link",
) -> MemoryEdge:
    """Believe an edge from now on. The same edge again is the same edge; other words for it are a
    new belief.
    """
    if new.valid_from:
        start = aware("valid_from", new.valid_from)
    else:
        start = _true_since(rows, new, act.at) or act.at

    edge = _first_belief(new, start, act)
    beliefs = beliefs_of(rows, edge.id)
    last = beliefs[-1] if beliefs else None

    if last is not None and last.retracted_at is None and meaning_of(last) == meaning_of(edge):
        return last

    return supersede(rows, last, edge, act, action)


def draw_many(
    rows: RowStore,
    new: Sequence[NewEdge],
    act: Act,
) -> list[MemoryEdge]:
    """Believe many edges from now on; those nobody drew before are written together."""
    edges = []
    for new_edge in new:
        start = aware("valid_from", new_edge.valid_from or act.at)
        edges.append(_first_belief(new_edge, start, act))

    known = fetch(
        rows,
        MemoryEdge,
        [edge.key for edge in edges],
    )
    fresh = {edge.key: edge for edge in edges if edge.key not in known}
    put(rows, fresh.values())

    for edge in fresh.values():
        act.note(
            "link",
            edge.id,
            {"before": None, "after": edge.key},
        )

    drawn = []
    for edge, new_edge in zip(edges, new, strict=True):
        drawn.append(fresh.get(edge.key) or draw(rows, new_edge, act))

    return drawn


def end(
    rows: RowStore,
    edge: str,
    act: Act,
    *,
    at: datetime | None = None,
    superseded_by: str | None = None,
) -> MemoryEdge:
    """Believe from now on that an edge stopped being true: `at` a moment, else now, where it had
    not ended before. What was believed before stays to be asked for.
    """
    current = believe(rows, edge)
    until = aware("at", at) if at else min(act.at, current.valid_until or act.at)

    if current.valid_from is not None and until < current.valid_from:
        raise MemoryRefused(
            f"edge {current.id} became true at {current.valid_from}, so it cannot end at {until}; "
            "give a later moment"
        )

    follower = believe(rows, superseded_by).id if superseded_by else current.superseded_by
    if follower and any(successor.id == current.id for successor in _successors(rows, follower)):
        raise MemoryRefused(
            f"edge {current.id} cannot be superseded by {follower}: that goes in a circle"
        )

    if (current.valid_until, current.superseded_by) == (until, follower):
        return current

    closed = current.model_copy(
        update={
            "valid_until": until,
            "superseded_by": follower,
        }
    )
    return supersede(rows, current, closed, act, "close")


def supersede(
    rows: RowStore,
    last: MemoryEdge | None,
    following: MemoryEdge | None,
    act: Act,
    action: str,
) -> MemoryEdge:
    """Let a belief about an edge follow the last one, or, where it is None, believe that the edge
    never was.

    What is believed still is retracted at the same moment, which is later than any before.
    """
    at = act.at
    written = []

    if last is not None:
        at = max(at, last.retracted_at or (last.recorded_at or last.timestamp) + INSTANT)
        if last.retracted_at is None:
            written.append(last.model_copy(update={"retracted_at": at}))

    if following is not None:
        changes: JsonObject = {
            "recorded_at": at,
            "retracted_at": None,
        }
        if last is not None:
            changes |= {
                "key": revision_key(last.id, last.revision + 1),
                "timestamp": last.timestamp,
            }

        written.append(following.model_copy(update=changes))

    put(rows, written)
    keys = {
        "before": last.key if last and last.retracted_at is None else None,
        "after": written[-1].key if following else None,
    }
    act.note(action, written[-1].id, keys)
    return written[-1]


def beliefs_of(rows: RowStore, edge: str) -> list[MemoryEdge]:
    """Every row of an edge, oldest first; any of its keys or its id names it."""
    name = legal("edge", edge.removeprefix(f"{EDGES}/"))
    identity = name.rpartition("_")[0] or name
    beliefs: list[MemoryEdge] = []

    while True:
        numbers = range(len(beliefs) + 1, len(beliefs) + _RUN + 1)
        keys = [revision_key(identity, number) for number in numbers]
        batch = read(rows.get(EDGES, keys), MemoryEdge)
        beliefs += batch

        if len(batch) < _RUN:
            return beliefs


def believe(rows: RowStore, edge: str) -> MemoryEdge:
    """What is believed of an edge now."""
    beliefs = beliefs_of(rows, edge)
    if not beliefs or beliefs[-1].retracted_at is not None:
        raise UnknownMemory(
            f"memory holds no edge {edge!r}; `hades memory edges TOPIC --json` prints their ids"
        )

    return beliefs[-1]


def _successors(rows: RowStore, edge: str) -> Iterator[MemoryEdge]:
    """An edge, the one that took its place, and so on."""
    visited: set[str] = set()
    step: str | None = edge

    while step is not None:
        current = believe(rows, step)
        if current.id in visited:
            raise MemoryRefused(
                f"edge {edge} cannot be superseded so: {' -> '.join([*visited, current.id])} "
                "goes in a circle"
            )

        visited.add(current.id)
        yield current
        step = current.superseded_by


def _first_belief(
    new: NewEdge,
    start: datetime,
    act: Act,
) -> MemoryEdge:
    check_share(
        "strength",
        new.strength,
        f" of the edge {new.relationship_type}",
    )
    check_text("the description", new.description)
    if new.valid_until:
        until = aware("valid_until", new.valid_until)
    else:
        until = None

    if until is not None and until < start:
        raise MemoryRefused(
            f"the edge {new.relationship_type} would be true from {start} until {until}, which is "
            "before it; swap the two"
        )

    identity = edge_id(
        new.source,
        new.relationship_type,
        new.target,
        start,
    )
    values = {
        "key": revision_key(identity, 1),
        "kind": new.kind or _KINDS.get(new.relationship_type, MemoryEdgeKind.CROSS_TOPIC),
        "timestamp": act.at,
        "valid_from": start,
        "valid_until": until,
        "recorded_at": act.at,
        "metadata": dict(new.metadata),
    }
    return MemoryEdge(**{**vars(new), **values})


def meaning_of(edge: MemoryEdge) -> JsonObject:
    """What an edge says, apart from who believed it when."""
    return edge.model_dump(include=_MEANING)


def _true_since(
    rows: RowStore,
    new: NewEdge,
    now: datetime,
) -> datetime | None:
    """Since when the same edge is true already, where no beginning was given."""
    mask = Mask(as_of=now, known_at=NEWEST)
    same = edges_around(
        rows,
        new.source,
        mask,
        direction=Direction.OUT,
        types=[new.relationship_type],
    )
    return next((edge.valid_from for edge in same if edge.target == new.target), None)


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

    `whole_topic` lets a state stand for its topic. Of a topic, the edges between its own versions
    come only when they are asked for: its trace says the same.
    """
    if whole_topic:
        name = named(rows, name, NEWEST).topic

    nodes = [state_id(key) for key in keys_of(rows, name)]
    edges = edges_at(rows, nodes, mask, types)
    if types is None and len(nodes) > 1:
        edges = [edge for edge in edges if edge.relationship_type != MemoryRelation.EVOLVES_TO]

    ours = set(nodes)
    chosen = []
    for edge in edges:
        if _has_direction(edge, ours, direction):
            chosen.append(as_known(edge, mask.known_at))

    return sorted(
        chosen,
        key=lambda edge: (edge.valid_from or edge.timestamp, edge.timestamp, edge.key),
    )


def edges_at(
    rows: RowStore,
    nodes: Sequence[str],
    mask: Mask = Mask(),
    types: Sequence[str] | None = None,
) -> list[MemoryEdge]:
    """The edges that begin or end at one of these states, by `_id`, and that the mask lets through,
    by key.
    """
    if types is None:
        chosen = []
    else:
        chosen = [Term("relationship_type", "in", list(types))]

    edges: dict[str, MemoryEdge] = {}
    for end in ("_from", "_to"):
        for edge in scan(
            rows,
            MemoryEdge,
            [Term(end, "in", list(nodes)), *chosen],
        ):
            times = edge.valid_from, edge.valid_until, edge.recorded_at, edge.retracted_at
            if is_visible(mask, *times):
                edges[edge.key] = edge

    return [edges[key] for key in sorted(edges)]


def as_known(edge: MemoryEdge, known_at: datetime | None) -> MemoryEdge:
    """The row as it read then: that it would be retracted later was not known."""
    if known_at is None or edge.retracted_at is None or edge.retracted_at <= known_at:
        return edge
    return edge.model_copy(update={"retracted_at": None})


def _has_direction(
    edge: MemoryEdge,
    nodes: set[str],
    direction: Direction,
) -> bool:
    """Whether the edge goes the way that is asked for; one that holds both ways goes both ways."""
    if direction is Direction.ANY or edge.bidirectional:
        return True
    return (edge.source if direction is Direction.OUT else edge.target) in nodes


# When an edge ended and the one that took its place began.
EdgeChange = tuple[datetime, MemoryEdge, MemoryEdge]


def find_edge_change(
    rows: RowStore,
    topic: str,
    from_rel: str,
    to_rel: str,
    known_at: datetime,
) -> EdgeChange | None:
    """The last time that `from_rel` gave way to `to_rel`, or None when it never did.

    A supersession says which edge took which place; without one, the first `to_rel` that began when
    or after a `from_rel` ended.
    """
    mask = Mask(known_at=known_at)
    types = list({from_rel, to_rel})
    ended: list[tuple[datetime, str, MemoryEdge]] = []

    began: dict[str, MemoryEdge] = {}
    for edge in edges_around(
        rows,
        topic,
        mask,
        direction=Direction.OUT,
        types=types,
    ):
        if edge.relationship_type == to_rel:
            began[edge.id] = edge
        if edge.relationship_type == from_rel and edge.valid_until is not None:
            ended.append((edge.valid_until, edge.key, edge))

    for until, _, edge in sorted(
        ended,
        key=lambda entry: entry[:2],
        reverse=True,
    ):
        follower = _find_follower(rows, edge, began)
        if follower is not None:
            return max(until, follower.valid_from or until), edge, follower

    return None


def _find_follower(
    rows: RowStore,
    edge: MemoryEdge,
    began: dict[str, MemoryEdge],
) -> MemoryEdge | None:
    if edge.superseded_by is not None:
        for successor in _successors(rows, edge.superseded_by):
            if successor.id in began:
                return began[successor.id]

        return None

    later: list[tuple[datetime, str, MemoryEdge]] = []
    for candidate in began.values():
        start = candidate.valid_from
        until = edge.valid_until
        if candidate.id != edge.id and start and until and start >= until:
            later.append((start, candidate.key, candidate))

    if later:
        return min(later, key=lambda entry: entry[:2])[-1]

    return None


INVERSIONS: Mapping[str, str] = {
    MemoryRelation.REJECTED_BECAUSE: MemoryRelation.VIABLE_AFTER_FIX,
    MemoryRelation.BLOCKED_BY: MemoryRelation.ENABLED_BY,
    MemoryRelation.CONTRADICTS: MemoryRelation.SUPPORTS,
}


def find_inverse(relation: str) -> tuple[str | None, str]:
    """The relation that follows when the reason of one is gone, or None, and why; what is not
    listed has none.
    """
    inverse = INVERSIONS.get(relation)
    if inverse is None:
        return None, f"{relation} has no inversion; state the new fact to have an edge for it"

    if relation == MemoryRelation.CONTRADICTS:
        # That it is gone does not mean that there is support.
        why = f"that {relation} ended does not imply {inverse}"
        return None, f"{why}; state the new fact to have an edge for it"

    return inverse, f"{relation} ended, so {inverse}"
