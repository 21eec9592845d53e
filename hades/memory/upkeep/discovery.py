"""Edges between related states that nobody drew: found by similarity, with what they share and how sure it is.

Each topic that changed since the last time is searched for by its own words. A topic that is near enough gets an edge
`relates_to` whose strength is its confidence and whose metadata say that it was discovered, by what and which words are
shared. An edge that a person drew, or closed, between the two topics is respected.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from hades.memory.history import rows as records
from hades.memory.history.edges import NewEdge, draw_many
from hades.memory.history.names import AUDIT, NEWEST, key_of, state_id, topic_key, topic_of_key
from hades.memory.history.transactions import in_unit
from hades.memory.recall.search import MemoryMatch
from hades.memory.recall.strength import BY_SIMILARITY
from hades.memory.service import Memory
from hades.ports.store import Direction, RowStore, Term
from hades.text.keywords import words_of
from schemas.intervals import Mask
from schemas.memory import MemoryAudit, MemoryEdgeKind, MemoryRelation, MemoryState

DISCOVERED = "discover"
CLEAR = 0.55  # similarity from which two topics are related
_NEIGHBOURS = 3  # edges from one topic
_LOOKED_AT = 10
_SHOWN_WORDS = 8
_LEFT_OUT = ("summary/", "source/")


@dataclass(frozen=True)
class DiscoveryReport:
    """How many topics were looked at and which edges were drawn."""

    topics: int
    edges: tuple[str, ...]
    left: int  # topics that changed and have to wait for the next time

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self)


def discover_edges(memory: Memory, *, limit: int = 1_000, who: str = "") -> DiscoveryReport:
    """Join topics that changed since the last time to those they are near to; at most `limit` topics."""
    since = _last_time(memory.store)
    changed = [state for state in _current(memory) if since is None or state.timestamp > since]
    changed.sort(key=lambda state: (state.timestamp, state.key))
    looked_at = changed[:limit]
    proposed: dict[tuple[str, str], NewEdge] = {}
    for state in looked_at:
        for match, confidence in _near(memory, state):
            ends = tuple(sorted((topic_of_key(state.key), topic_of_key(match.state.key))))
            proposed.setdefault((ends[0], ends[1]), _edge(state, match, confidence, memory))
    moment = looked_at[-1].timestamp if looked_at else None

    def work(rows: RowStore) -> list[str]:
        act = memory.act(who, "discovered by similarity")
        drawn = draw_many(rows, list(proposed.values()), act)
        if moment is not None:
            act.note(DISCOVERED, looked_at[-1].key, {"until": moment.isoformat()})
        act.keep(rows)
        return [edge.id for edge in drawn]

    edges = in_unit(memory.store, work) if looked_at else []
    return DiscoveryReport(len(looked_at), tuple(edges), len(changed) - len(looked_at))


def _last_time(rows: RowStore) -> datetime | None:
    """When the newest state was said that was looked at before."""
    notes = [
        one
        for batch in rows.scan(AUDIT, where=[Term("action", "==", DISCOVERED)])
        for one in records.read(batch, MemoryAudit)
    ]
    return max((datetime.fromisoformat(one.detail["until"]) for one in notes), default=None)


def _current(memory: Memory) -> list[MemoryState]:
    topics = [topic for topic in memory.topics() if not topic.startswith(_LEFT_OUT)]
    return memory.reader().current([topic_key(topic) for topic in topics])


def _near(memory: Memory, state: MemoryState) -> list[tuple[MemoryMatch, float]]:
    """Other topics by the share of their similarity in that of the state with itself."""
    found = memory.search(f"{state.topic} {state.content}", limit=_LOOKED_AT, rules=BY_SIMILARITY)
    itself = next((one.similarity for one in found if one.state.topic == state.topic), 1.0)
    taken = _neighbours(memory, state)
    near = []
    for one in found:
        confidence = min(1.0, one.similarity / itself) if itself else 0.0
        is_other = one.state.topic != state.topic and not one.state.topic.startswith(_LEFT_OUT)
        if is_other and confidence >= CLEAR and topic_of_key(one.state.key) not in taken:
            near.append((one, round(confidence, 4)))
    return near[:_NEIGHBOURS]


def _neighbours(memory: Memory, state: MemoryState) -> set[str]:
    """Topics that an edge joins to this one, or once did."""
    seen = Mask(known_at=NEWEST)
    edges = memory.edges(state.topic, mask=seen, direction=Direction.ANY, everything=True)
    return {topic_of_key(key_of(end)) for edge in edges for end in (edge.source, edge.target)}


def _edge(state: MemoryState, match: MemoryMatch, confidence: float, memory: Memory) -> NewEdge:
    shared = sorted(_words(state) & _words(match.state))[:_SHOWN_WORDS]
    model = memory.embedder.model.tag if memory.embedder is not None else "words"
    return NewEdge(
        state_id(state.key),
        state_id(match.state.key),
        MemoryRelation.RELATES_TO,
        MemoryEdgeKind.CROSS_TOPIC,
        confidence,
        description=f"both speak of {', '.join(shared)}" if shared else "near in meaning",
        metadata={"discovered_by": model, "confidence": confidence, "shared_words": shared},
    )


def _words(state: MemoryState) -> set[str]:
    return set(words_of(f"{state.topic} {state.content}".replace("_", " ").replace("/", " ")))
