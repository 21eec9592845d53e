"""The state of a topic as an answer: what holds, why it holds, and what held before and no longer does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from hades.memory.history.current import state_at
from hades.memory.history.edges_around import edges_around
from hades.memory.history.names import UnknownMemory, key_of
from hades.memory.history.states import INSTANT, by_keys
from hades.ports.store import Direction, RowStore
from hades.text.keywords import day
from schemas.intervals import Mask
from schemas.memory import MemoryEdge, MemoryState


@dataclass(frozen=True)
class Reason:
    """An edge as an answer shows it."""

    id: str
    type: str
    target: str
    description: str
    active: bool
    valid_from: str
    valid_until: str | None
    superseded_by: str | None


@dataclass(frozen=True)
class Account:
    """An answer about a topic at one moment; the sentences are made of what was said, nothing is added."""

    topic: str
    state_id: str
    version: int
    current_answer: str
    reasoning: str
    historical_context: str
    edges: list[Reason]
    obsolete_edges: list[Reason]

    def as_dict(self) -> dict[str, Any]:
        """The answer as JSON."""
        return asdict(self)


def account_of(rows: RowStore, topic: str, as_of: datetime, known_at: datetime) -> Account:
    """What a reader is told of a topic as it was at one moment and known at another."""
    state = state_at(rows, topic, as_of, known_at)
    if state is None:
        raise UnknownMemory(f"nothing was known of {topic!r} at {day(as_of)}; ask for a later moment")
    seen = edges_around(rows, state.topic, Mask(known_at=known_at), direction=Direction.OUT)
    active = [edge for edge in seen if edge.is_active(as_of)]
    ended = [edge for edge in seen if edge.valid_until is not None and edge.valid_until <= as_of]
    ends = {one.key: one for one in by_keys(rows, sorted({key_of(edge.target) for edge in [*active, *ended]}))}
    return Account(
        topic=state.topic,
        state_id=state.key,
        version=state.version,
        current_answer=f"{state.content} (since {day(state.valid_from)})",
        reasoning="; ".join(_because(edge, ends) for edge in active) or "no reason is on record",
        historical_context="; ".join(_formerly(edge, ends) for edge in ended) or _before(rows, state, known_at),
        edges=[_reason(edge, ends, True) for edge in active],
        obsolete_edges=[_reason(edge, ends, False) for edge in ended],
    )


def _before(rows: RowStore, state: MemoryState, known_at: datetime) -> str:
    """What held until this version began."""
    former = state_at(rows, state.topic, state.valid_from - INSTANT, known_at) if state.valid_from else None
    if former is None:
        return "nothing earlier is on record"
    return f"{former.content} (version {former.version}, until {day(state.valid_from)})"


def _because(edge: MemoryEdge, ends: Mapping[str, MemoryState]) -> str:
    target = ends.get(key_of(edge.target))
    said = edge.description or (target.content if target else "")
    return f"{_words(edge)} {_name(edge, ends)}" + (f": {said}" if said else "")


def _formerly(edge: MemoryEdge, ends: Mapping[str, MemoryState]) -> str:
    when = f"from {day(edge.valid_from)} until {day(edge.valid_until)}"
    return f"was {_words(edge)} {_name(edge, ends)} {when}, which is no longer true"


def _reason(edge: MemoryEdge, ends: Mapping[str, MemoryState], active: bool) -> Reason:
    target = ends.get(key_of(edge.target))
    return Reason(
        id=edge.id,
        type=edge.relationship_type,
        target=target.topic if target else edge.target,
        description=edge.description,
        active=active,
        valid_from=day(edge.valid_from),
        valid_until=day(edge.valid_until) if edge.valid_until else None,
        superseded_by=edge.superseded_by,
    )


def _words(edge: MemoryEdge) -> str:
    return edge.relationship_type.replace("_", " ")


def _name(edge: MemoryEdge, ends: Mapping[str, MemoryState]) -> str:
    target = ends.get(key_of(edge.target))
    return target.topic if target else edge.target
