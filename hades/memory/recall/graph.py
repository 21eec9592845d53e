"""From what a question finds on to what it is joined to; the account of a topic.

Topics are walked, not versions: an edge drawn from an older version still belongs to its topic.
Strength is that of the strongest way there, the product of its edges; it ranks what was reached.
How much may be read is said beforehand, and what was left out leaves a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

import numpy as np

from hades.budget import Caps, Turn
from hades.memory.history.edges import edges_around
from hades.memory.history.rows import (
    MemoryRefused,
    UnknownMemory,
    key_of,
    state_id,
    topic_of_key,
    version_keys,
)
from hades.memory.history.states import INSTANT, by_keys, state_at
from hades.memory.recall.index import MemoryQuery, Reader
from hades.memory.recall.search import (
    CANDIDATES,
    FOR_CONTEXT,
    MemoryMatch,
    Step,
    Walk,
    rank,
    search_asked,
)
from hades.ports.services import Vectors
from hades.ports.store import Direction, RowStore
from hades.text.sentences import day
from schemas.ids import Mask
from schemas.memory import MemoryEdge, MemoryState
from schemas.record import JsonObject

MATCHES = 10
STEPS_BACK = 3
# Of a subgraph: hops, versions a hop, strength of an edge.
_DEPTH, _NODES_PER_HOP, _WEAKEST = 3, 5, 0.5
CAPS = Caps(
    docs_max=2_000,
    work_max=50_000,
    latency_ms=float("inf"),
)


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
    reader: Reader,
    matches: Sequence[MemoryMatch],
    depth: int,
    *,
    newest: int | None = None,
    caps: Caps = CAPS,
) -> Enhancement:
    """What was found, with everything that true edges join to it within `depth`, strongest first.

    `newest` follows of each relation of a topic only the last few.
    """
    if depth < 0:
        raise MemoryRefused(f"depth is {depth}; give how many edges may be followed, 0 or more")

    turn = Turn(caps)
    with turn.stage("walk"):
        walk = Walk(reader, turn, newest=newest)
        starts = [topic_of_key(match.state.key) for match in matches]
        walk.widen(starts, depth)
        steps = [walk.reached(start, depth) for start in starts]

    with turn.stage("read"):
        reading = _Reading(
            reader,
            turn,
            matches,
            chain.from_iterable(steps),
        )
        earlier_versions = _earlier_versions(reader, matches)

    enhanced = []
    for match, match_steps in zip(matches, steps, strict=True):
        related = reading.related(match_steps)
        earlier = earlier_versions[match.state.key]
        context: JsonObject = {
            "related_states": related,
            "historical_context": earlier,
        }
        enhanced.append(MatchWithContext(**vars(match), **context))

    reasons = [str(reason) for reason in turn.reasons]
    return Enhancement(
        enhanced,
        reasons,
        turn.reads_spent,
        turn.work_spent,
    )


def get_relevant_subgraph(
    reader: Reader,
    query_embedding: Sequence[float] | Vectors,
    max_nodes: int = 100,
    *,
    latest: int = 10,
) -> Subgraph:
    """The nearest topics as they are now and what strong edges join to them, either way; ranked,
    then cut, each once.

    Weaker edges are left out of each hop's ranking; how many there were is said.
    """
    if reader.embedder is None:
        raise MemoryRefused(
            "a vector cannot be compared without the embedder that made it; open memory with one"
        )

    vector = np.asarray(query_embedding, np.float32)
    length = max(float(np.linalg.norm(vector)), 1e-12)
    question = MemoryQuery(
        "",
        vector / length,
        reader.embedder.model.tag,
    )
    starts = search_asked(
        reader,
        question,
        limit=CANDIDATES,
        most=latest,
    )
    turn = Turn(CAPS)
    scores: dict[str, tuple[MemoryState, float]] = {}

    with turn.stage("walk"):
        walk = Walk(
            reader,
            turn,
            per_hop=_NODES_PER_HOP,
            weakest=_WEAKEST,
        )
        reached = []
        for match in starts:
            score = rank(match.similarity, match.strength, FOR_CONTEXT)
            scores[match.state.key] = match.state, score
            topic = topic_of_key(match.state.key)
            walk.widen([topic], _DEPTH)
            reached += [(score, step) for step in walk.reached(topic, _DEPTH)]

    with turn.stage("read"):
        reading = _Reading(
            reader,
            turn,
            starts,
            [step for _, step in reached],
        )
        for start_score, step in reached:
            score = start_score * step.strength
            for related in reading.related([step]):
                state = related.state
                if state.key not in scores or score > scores[state.key][1]:
                    scores[state.key] = state, score

    nodes = sorted(
        scores.values(),
        key=lambda pair: (-pair[1], pair[0].key),
    )[:max_nodes]
    node_ids = {state_id(state.key) for state, _ in nodes}

    edges = []
    for key in sorted(reading.edges):
        edge = reading.edges[key]
        if edge.source in node_ids and edge.target in node_ids:
            edges.append(edge)

    return Subgraph(
        nodes,
        edges,
        walk.weaker,
        [str(reason) for reason in turn.reasons],
    )


class _Reading:
    """The versions and edges of some steps, read together; of more than the budget allows, the
    strongest.
    """

    def __init__(
        self,
        reader: Reader,
        turn: Turn,
        matches: Sequence[MemoryMatch],
        steps: Iterable[Step],
    ) -> None:
        ranked = sorted(steps, key=lambda step: (-step.strength, step.state))
        state_keys = list(dict.fromkeys(step.state for step in ranked))
        keys = state_keys[: turn.grant_reads(len(state_keys))]
        self.states = {state.key: state for state in reader.index.states(keys)}
        edges = chain.from_iterable(step.path for step in ranked if step.state in self.states)
        self.edges = reader.index.edges(edges)
        current = reader.current(set(map(topic_of_key, self.states)))
        self.now = {topic_of_key(state.key): state for state in current}
        known = [*self.states.values(), *(match.state for match in matches)]
        self._topics = {topic_of_key(state.key): state.topic for state in known}
        self._known_at = reader.known_at

    def related(self, steps: Iterable[Step]) -> list[RelatedState]:
        """The steps as people read them, strongest first, then newest edge first."""
        related_states = []
        for step in steps:
            state = self.states.get(step.state)
            if state is None:
                continue

            edges = tuple(self.edges[key] for key in step.path)
            now = self.now[topic_of_key(step.state)]  # a walk leads only to topics that hold
            if state.retracted_at is not None and state.retracted_at <= self._known_at:
                state = now

            since = now if now.key != state.key else None
            near = self._near_topic(edges[-1], step.state)
            related_states.append(
                RelatedState(
                    state,
                    step.strength,
                    edges,
                    near,
                    since,
                )
            )

        return sorted(related_states, key=_by_strength)

    def _near_topic(self, edge: MemoryEdge, state: str) -> str:
        """The topic that an edge comes from when it leads to this version; its key where it was not
        read.
        """
        source = topic_of_key(edge.source)
        target = topic_of_key(edge.target)
        near = source if target == topic_of_key(state) else target
        return self._topics.get(near, near)


def _by_strength(related: RelatedState) -> tuple[float, float, str]:
    edge = related.way[-1]
    began = edge.valid_from or edge.timestamp
    return -related.strength, -began.timestamp(), related.state.key


def _earlier_versions(
    reader: Reader,
    matches: Sequence[MemoryMatch],
) -> dict[str, list[MemoryState]]:
    """Up to three versions before each match, oldest first; one read for all."""
    earlier_keys: dict[str, list[str]] = {}
    for match in matches:
        topic = match.state.topic
        version = match.state.version
        earlier_keys[match.state.key] = version_keys(
            topic,
            version - 1,
            version - STEPS_BACK,
        )

    versions = reader.index.states(chain.from_iterable(earlier_keys.values()))
    versions_by_key = {version.key: version for version in versions}

    earlier: dict[str, list[MemoryState]] = {}
    for state_key, keys in earlier_keys.items():
        earlier[state_key] = [versions_by_key[key] for key in keys if key in versions_by_key]

    return earlier


def account_of(
    rows: RowStore,
    topic: str,
    as_of: datetime,
    known_at: datetime,
) -> JsonObject:
    """The account of a topic as it was at one moment and known at another, in its own sentences."""
    state = state_at(rows, topic, as_of, known_at)
    if state is None:
        raise UnknownMemory(
            f"nothing was known of {topic!r} at {day(as_of)}; ask for a later moment"
        )

    edges = edges_around(
        rows,
        state.topic,
        Mask(known_at=known_at),
        direction=Direction.OUT,
    )
    active = [edge for edge in edges if edge.is_active(as_of)]
    ended = [edge for edge in edges if edge.valid_until is not None and edge.valid_until <= as_of]
    target_keys = {key_of(edge.target) for edge in [*active, *ended]}
    targets = {target.key: target for target in by_keys(rows, sorted(target_keys))}
    reasons = []
    formerly = []
    shown_active = []

    shown_ended = []
    for edge in active:
        target = targets.get(key_of(edge.target))
        shown = _show_edge(edge, target, active=True)
        shown_active.append(shown)
        parts = (_relation_to(shown), edge.description or (target.content if target else ""))
        reasons.append(": ".join(filter(None, parts)))

    for edge in ended:
        shown = _show_edge(
            edge,
            targets.get(key_of(edge.target)),
            active=False,
        )
        shown_ended.append(shown)
        times = f"from {shown['valid_from']} until {shown['valid_until']}"
        formerly.append(f"was {_relation_to(shown)} {times}, which is no longer true")

    if not formerly and state.valid_from:
        previous = state_at(
            rows,
            state.topic,
            state.valid_from - INSTANT,
            known_at,
        )
        if previous is not None:
            until = day(state.valid_from)
            formerly.append(f"{previous.content} (version {previous.version}, until {until})")

    return {
        "topic": state.topic,
        "state_id": state.key,
        "version": state.version,
        "current_answer": f"{state.content} (since {day(state.valid_from)})",
        "reasoning": "; ".join(reasons) or "no reason is on record",
        "historical_context": "; ".join(formerly) or "nothing earlier is on record",
        "edges": shown_active,
        "obsolete_edges": shown_ended,
    }


def _relation_to(shown: JsonObject) -> str:
    return f"{shown['type'].replace('_', ' ')} {shown['target']}"


def _show_edge(
    edge: MemoryEdge,
    target: MemoryState | None,
    *,
    active: bool,
) -> JsonObject:
    """An edge as an answer shows it."""
    return {
        "id": edge.id,
        "type": edge.relationship_type,
        "target": target.topic if target else edge.target,
        "description": edge.description,
        "active": active,
        "valid_from": day(edge.valid_from),
        "valid_until": day(edge.valid_until) if edge.valid_until else None,
        "superseded_by": edge.superseded_by,
    }
