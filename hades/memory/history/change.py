"""A fact changed: a new version says so, edges that it made untrue end, and edges for what is true now begin.

Safe by default. Without stated facts, an edge ends only when the inversion table knows its relation and the change
names what it points at; everything else stays, and the report says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hades.memory.history.audit import Act
from hades.memory.history.current import named
from hades.memory.history.edges import NewEdge, draw, end
from hades.memory.history.edges_around import edges_around
from hades.memory.history.inversions import find_inverse, inverse_of
from hades.memory.history.names import NEWEST, key_of, state_id
from hades.memory.history.states import NewState, append, by_keys
from hades.ports.store import Direction, RowStore
from hades.text.keywords import names_topic
from schemas.intervals import Mask
from schemas.memory import MemoryEdge, MemoryRelation, MemoryState


@dataclass(frozen=True)
class Fact:
    """What is true now: the changed topic stands in this relation to a topic or state.

    `replaces` names the edge it takes the place of, by id or by relation; without it, an edge whose relation inverts
    into this one ends.
    """

    relation: str
    target: str
    replaces: str | None = None
    description: str = ""
    strength: float = 1.0


@dataclass(frozen=True)
class Change:
    """What a change did, and why each edge that it might have touched was or was not."""

    new_state: MemoryState
    previous_state_id: str
    new_edges: list[MemoryEdge] = field(default_factory=list)
    obsolete_edges: list[MemoryEdge] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    act: str = ""


def change_fact(
    rows: RowStore, old: MemoryState, said: str, new: NewState, facts: Sequence[Fact], act: Act, at: datetime | None
) -> Change:
    """Write the new version and bring the topic's outgoing edges to what is true now."""
    written = append(rows, [new], act)[0]
    moment = at or written.valid_from or act.at
    active = [
        edge
        for edge in edges_around(rows, old.topic, Mask(moment, NEWEST), direction=Direction.OUT)
        if edge.relationship_type != MemoryRelation.EVOLVES_TO
    ]
    done = Change(written, old.key, act=act.key)
    for fact in facts:
        drawn = draw(rows, _edge(rows, written, fact, said, moment), act, action="fact")
        done.new_edges.append(drawn)
        for edge in [edge for edge in active if edge.id != drawn.id and _is_replaced(edge, fact)]:
            active.remove(edge)
            done.obsolete_edges.append(end(rows, edge.id, act, at=moment, superseded_by=drawn.id))
            done.reasons.append(f"{_show(rows, edge)} ended: the stated {fact.relation} takes its place")
    for edge in active:
        if facts:
            done.reasons.append(f"{_show(rows, edge)} stays: no stated fact takes its place")
        else:
            _follow(rows, edge, written, said, act, moment, done)
    return done


def _follow(
    rows: RowStore, edge: MemoryEdge, written: MemoryState, said: str, act: Act, moment: datetime, done: Change
) -> None:
    """What the change alone, without stated facts, means for an edge."""
    shown, target = _show(rows, edge), _topic(rows, edge.target)
    if inverse_of(edge.relationship_type) is None:
        done.reasons.append(f"{shown} stays: {find_inverse(edge.relationship_type)[1]}")
        return
    if not names_topic(said, target):
        done.reasons.append(f"{shown} stays: the change does not name {target}")
        return
    inverse, why = find_inverse(edge.relationship_type)
    drawn = None
    if inverse is not None:
        drawn = draw(rows, _edge(rows, written, Fact(inverse, target), said, moment), act, action="fact")
        done.new_edges.append(drawn)
    done.obsolete_edges.append(end(rows, edge.id, act, at=moment, superseded_by=drawn.id if drawn else None))
    done.reasons.append(f"{shown} ended: the change names {target}; {why}")


def _edge(rows: RowStore, written: MemoryState, fact: Fact, said: str, moment: datetime) -> NewEdge:
    target = named(rows, fact.target, written.timestamp)
    return NewEdge(
        state_id(written.key),
        state_id(target.key),
        fact.relation,
        strength=fact.strength,
        valid_from=moment,
        description=fact.description or said,
    )


def _is_replaced(edge: MemoryEdge, fact: Fact) -> bool:
    if fact.replaces is not None:
        return fact.replaces in (edge.id, edge.key, edge.relationship_type)
    return inverse_of(edge.relationship_type) == fact.relation


def _topic(rows: RowStore, identifier: str) -> str:
    found = by_keys(rows, [key_of(identifier)])
    return found[0].topic if found else identifier


def _show(rows: RowStore, edge: MemoryEdge) -> str:
    return f"{edge.relationship_type} {_topic(rows, edge.target)}"
