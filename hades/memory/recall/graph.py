"""From what a question finds on to what it is joined to; the account of a topic.

Topics are walked, not versions: an edge drawn from an older version still belongs to its topic. Strength is that of the
strongest way there, the product of its edges; it ranks what was reached. How much may be read is said beforehand, and
what was left out leaves a reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from hades.memory.history.edges import edges_around
from hades.memory.history.rows import MemoryRefused, UnknownMemory, key_of, state_id, topic_of_key, version_keys
from hades.memory.history.states import INSTANT, by_keys, state_at
from hades.memory.recall.index import MemoryQuery, Reader
from hades.memory.recall.search import CANDIDATES, FOR_CONTEXT, MemoryMatch, Step, Walk, rank, search_asked
from hades.ports.services import Vectors
from hades.ports.store import Direction, RowStore
from hades.telemetry.turn import Caps, Turn
from hades.text.sentences import day
from schemas.ids import Mask
from schemas.memory import MemoryEdge, MemoryState

MATCHES = 10
STEPS_BACK = 3
_DEPTH, _NODES_PER_HOP, _WEAKEST = 3, 5, 0.5  # of a subgraph: hops, versions a hop, strength of an edge
CAPS = Caps(docs_max=2_000, work_max=50_000, latency_ms=float("inf"))


@dataclass(frozen=True)
class RelatedState:
    """A version that was reached, by which edges, and what its topic has become since."""

    state: MemoryState
    strength: float
    way: tuple[MemoryEdge, ...]  # from the match to the state
    near: str  # the topic at the near end of the last edge
    since: MemoryState | None = None  # the version that holds, where it is another one


@dataclass(frozen=True)
class MatchWithContext(MemoryMatch):
    """One match with what it is joined to and what led to it."""

    related_states: list[RelatedState]
    historical_context: list[MemoryState]  # up to three versions before, oldest first


@dataclass(frozen=True)
class Enhancement:
    """All matches, best first, and what the walk read and left out."""

    matches: list[MatchWithContext]
    reasons: list[str]
    reads: int
    work: int


@dataclass(frozen=True)
class Subgraph:
    """The versions worth reading for a question, best first, and the edges that led to them."""

    nodes: list[tuple[MemoryState, float]]
    edges: list[MemoryEdge]
    weaker: int  # edges that were too weak to follow; `graph_enhanced_retrieval` follows them
    reasons: list[str] = field(default_factory=list)


def enhance(
    reader: Reader, found: Sequence[MemoryMatch], depth: int, *, newest: int | None = None, caps: Caps = CAPS
) -> Enhancement:
    """What was found, with everything that true edges join to it within `depth`, strongest first.

    `newest` follows of each relation of a topic only the last few.
    """
    if depth < 0:
        raise MemoryRefused(f"depth is {depth}; give how many edges may be followed, 0 or more")
    turn = Turn(caps)
    with turn.stage("walk"):
        walk = Walk(reader, turn, newest=newest)
        starts = [topic_of_key(one.state.key) for one in found]
        walk.widen(starts, depth)
        steps = [walk.reached(start, depth) for start in starts]
    with turn.stage("read"):
        read = _Reading(reader, turn, found, [step for some in steps for step in some])
        before = _before(reader, found)
    enhanced = [
        MatchWithContext(**vars(one), related_states=read.related(some), historical_context=before[one.state.key])
        for one, some in zip(found, steps, strict=True)
    ]
    return Enhancement(enhanced, [str(reason) for reason in turn.reasons], turn.reads_spent, turn.work_spent)


def get_relevant_subgraph(
    reader: Reader, query_embedding: Sequence[float] | Vectors, max_nodes: int = 100, *, latest: int = 10
) -> Subgraph:
    """The nearest topics as they are now and what strong edges join to them, either way; ranked, then cut, each once.

    Weaker edges are left out of each hop's ranking; how many there were is said.
    """
    if reader.embedder is None:
        raise MemoryRefused("a vector cannot be compared without the embedder that made it; open memory with one")
    vector = np.asarray(query_embedding, np.float32)
    asked = MemoryQuery("", vector / max(float(np.linalg.norm(vector)), 1e-12), reader.embedder.model.tag)
    starts = search_asked(reader, asked, limit=CANDIDATES, most=latest)
    turn = Turn(CAPS)
    scores: dict[str, tuple[MemoryState, float]] = {}
    with turn.stage("walk"):
        walk = Walk(reader, turn, per_hop=_NODES_PER_HOP, weakest=_WEAKEST)
        reached = []
        for one in starts:
            score = rank(one.similarity, one.strength, FOR_CONTEXT)
            scores[one.state.key] = one.state, score
            walk.widen([topic_of_key(one.state.key)], _DEPTH)
            reached += [(score, step) for step in walk.reached(topic_of_key(one.state.key), _DEPTH)]
    with turn.stage("read"):
        read = _Reading(reader, turn, starts, [step for _, step in reached])
        for score, step in reached:
            for one_related in read.related([step]):
                key, value = one_related.state.key, score * step.strength
                if value > scores.get(key, (None, -1.0))[1]:
                    scores[key] = one_related.state, value
    nodes = sorted(scores.values(), key=lambda pair: (-pair[1], pair[0].key))[:max_nodes]
    kept = {state_id(state.key) for state, _ in nodes}
    edges = {edge.key: edge for edge in read.edges.values() if edge.source in kept and edge.target in kept}
    return Subgraph(nodes, [edges[key] for key in sorted(edges)], walk.weaker, [str(one) for one in turn.reasons])


class _Reading:
    """The versions and edges of some steps, read together; of more than the budget allows, the strongest."""

    def __init__(self, reader: Reader, turn: Turn, found: Sequence[MemoryMatch], steps: Iterable[Step]) -> None:
        ranked = sorted(steps, key=lambda step: (-step.strength, step.state))
        wanted = list(dict.fromkeys(step.state for step in ranked))
        keys = wanted[: turn.reads(len(wanted))]
        self.states = {state.key: state for state in reader.index.states(keys)}
        ways = sorted({edge for step in ranked if step.state in self.states for edge in step.way})
        self.edges = reader.index.edges(ways)
        self.now = {topic_of_key(one.key): one for one in reader.current({topic_of_key(key) for key in self.states})}
        known = [*self.states.values(), *(one.state for one in found)]
        self._topics = {topic_of_key(state.key): state.topic for state in known}
        self._known_at = reader.known_at

    def related(self, steps: Iterable[Step]) -> list[RelatedState]:
        """The steps as people read them, strongest first, then newest edge first."""
        kept = []
        for step in steps:
            state = self.states.get(step.state)
            if state is None:
                continue
            way = tuple(self.edges[key] for key in step.way)
            now = self.now[topic_of_key(step.state)]  # a walk leads only to topics that hold
            if state.retracted_at is not None and state.retracted_at <= self._known_at:
                state = now
            since = now if now.key != state.key else None
            kept.append(RelatedState(state, step.strength, way, self._near(way[-1], step.state), since))
        begins = {edge.key: (edge.valid_from or edge.timestamp).timestamp() for edge in self.edges.values()}
        return sorted(kept, key=lambda one: (-one.strength, -begins[one.way[-1].key], one.state.key))

    def _near(self, edge: MemoryEdge, state: str) -> str:
        """The topic that an edge comes from when it leads to this version; its key where it was not read."""
        ends = [topic_of_key(end) for end in (edge.source, edge.target)]
        other = ends[0] if ends[1] == topic_of_key(state) else ends[1]
        return self._topics.get(other, other)


def _before(reader: Reader, found: Sequence[MemoryMatch]) -> dict[str, list[MemoryState]]:
    """Up to three versions before each match, oldest first; one read for all."""
    states = [one.state for one in found]
    wanted = {one.key: version_keys(one.topic, one.version - 1, one.version - STEPS_BACK) for one in states}
    every = sorted({key for keys in wanted.values() for key in keys})
    held = {state.key: state for state in reader.index.states(every)}
    return {match: [held[key] for key in keys if key in held] for match, keys in wanted.items()}


def account_of(rows: RowStore, topic: str, as_of: datetime, known_at: datetime) -> dict[str, Any]:
    """What a reader is told of a topic as it was at one moment and known at another.

    The sentences are made of what was said, nothing is added.
    """
    state = state_at(rows, topic, as_of, known_at)
    if state is None:
        raise UnknownMemory(f"nothing was known of {topic!r} at {day(as_of)}; ask for a later moment")
    seen = edges_around(rows, state.topic, Mask(known_at=known_at), direction=Direction.OUT)
    active = [edge for edge in seen if edge.is_active(as_of)]
    ended = [edge for edge in seen if edge.valid_until is not None and edge.valid_until <= as_of]
    ends = {one.key: one for one in by_keys(rows, sorted({key_of(edge.target) for edge in [*active, *ended]}))}
    shown = [_show_edge(edge, ends.get(key_of(edge.target)), edge in active) for edge in [*active, *ended]]
    because, formerly = [], []
    for one, edge in zip(shown, [*active, *ended], strict=True):
        relation = f"{edge.relationship_type.replace('_', ' ')} {one['target']}"
        if one["active"]:
            end = ends.get(key_of(edge.target))
            said = edge.description or (end.content if end else "")
            because.append(relation + (f": {said}" if said else ""))
        else:
            formerly.append(
                f"was {relation} from {one['valid_from']} until {one['valid_until']}, which is no longer true"
            )
    if not formerly and state.valid_from:
        before = state_at(rows, state.topic, state.valid_from - INSTANT, known_at)
        formerly = [f"{before.content} (version {before.version}, until {day(state.valid_from)})"] if before else []
    return {
        "topic": state.topic,
        "state_id": state.key,
        "version": state.version,
        "current_answer": f"{state.content} (since {day(state.valid_from)})",
        "reasoning": "; ".join(because) or "no reason is on record",
        "historical_context": "; ".join(formerly) or "nothing earlier is on record",
        "edges": [one for one in shown if one["active"]],
        "obsolete_edges": [one for one in shown if not one["active"]],
    }


def _show_edge(edge: MemoryEdge, end: MemoryState | None, active: bool) -> dict[str, Any]:
    """An edge as an answer shows it."""
    return {
        "id": edge.id,
        "type": edge.relationship_type,
        "target": end.topic if end else edge.target,
        "description": edge.description,
        "active": active,
        "valid_from": day(edge.valid_from),
        "valid_until": day(edge.valid_until) if edge.valid_until else None,
        "superseded_by": edge.superseded_by,
    }
