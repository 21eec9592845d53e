"""Working memory: what one has in mind about a topic. Filled from the store once; questions to it touch no store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from hades.memory.history.edges import edges_at
from hades.memory.history.rows import (
    NEWEST,
    STATES,
    MemoryRefused,
    key_of,
    state_id,
    topic_key,
    topic_of_key,
    version_keys,
)
from hades.memory.history.states import by_keys, choose_version, named, pointer_to, states_at
from hades.memory.recall.index import MEANING, MemoryQuery, WordScores, text_of
from hades.memory.recall.search import FOR_CONTEXT, MemoryMatch, rank, strength
from hades.ports.services import Embedder, Vectors
from hades.ports.store import RowStore
from models.arrays import unit_rows
from schemas.ids import Mask
from schemas.memory import MemoryEdge, MemoryRelation, MemoryState

MOST = 999
LAST_VERSIONS = 10
IMPORTANT = 0.7
_LOOKED_BACK = 1_000  # versions searched for important ones
_MOST_IMPORTANT = 50
_MOST_RELATED = 200
BASE_TTL_S = 600.0


@dataclass
class _StateEntry:
    """A version in mind."""

    state: MemoryState
    strength: float
    vector: Vectors | None
    uses: int = 0
    leaves_at: float = 0.0

    def stay(self, at: float) -> None:
        """Let it stay on from now: longer for the strong, longer for what is often of use."""
        self.leaves_at = at + BASE_TTL_S * (1 + self.strength) * (1 + math.log2(1 + self.uses))


@dataclass
class WorkingMemory:
    """The working set of one piece of work; `memory.working(topic)` makes one."""

    store: RowStore
    embedder: Embedder | None
    now: Callable[[], datetime]
    most: int = MOST
    loads: int = 0
    evicted: int = 0
    expired: int = 0
    _held: dict[str, _StateEntry] = field(default_factory=dict)
    _known: dict[str, dict[str, MemoryState]] = field(default_factory=dict)  # every version read, by topic, then by key
    _edges: dict[str, MemoryEdge] = field(default_factory=dict)
    _words: WordScores | None = None  # of what is in mind, in the order of the keys

    def __post_init__(self) -> None:
        if not 1 <= self.most <= MOST:
            raise MemoryRefused(f"a working set holds 1 to {MOST} versions, not {self.most}")

    # Filling it reads the store

    def preload(self, topic: str) -> WorkingMemory:
        """Take a topic in mind: its newest version, the last ten, the important ones, and what it is joined to."""
        newest = named(self.store, topic, self.now())
        pointer = pointer_to(self.store, newest.topic)
        count = pointer.version if pointer else newest.version
        versions = by_keys(self.store, version_keys(newest.topic, count, count - _LOOKED_BACK + 1))
        important = [one for one in versions[:-LAST_VERSIONS] if one.importance_score >= IMPORTANT]
        important = sorted(important, key=lambda one: (-one.importance_score, -one.version))[:_MOST_IMPORTANT]
        self._know(versions)
        self._take([newest, *versions[-LAST_VERSIONS:], *important])
        self.explore(newest.topic)
        return self

    def explore(self, topic: str) -> list[MemoryState]:
        """Follow the connections of a topic: the newest version of what it is joined to comes to mind too."""
        key = topic_key(topic)
        moment = self.now()
        count = pointer.version if (pointer := pointer_to(self.store, topic)) else 0
        nodes = list(map(state_id, version_keys(topic, count, count - _LOOKED_BACK + 1)))
        found = edges_at(self.store, nodes, Mask(as_of=moment, known_at=NEWEST))
        edges = [edge for edge in found if edge.relationship_type != MemoryRelation.EVOLVES_TO]
        edges = sorted(edges, key=lambda edge: (-edge.strength, edge.key))[:_MOST_RELATED]
        self._edges |= {edge.key: edge for edge in edges}
        linked = {key_of(end) for edge in edges for end in (edge.source, edge.target) if topic_of_key(end) != key}
        newest = states_at(self.store, map(topic_of_key, linked), Mask(), moment)
        self._take([*newest, *by_keys(self.store, sorted(linked - {one.key for one in newest}))])
        return sorted(newest, key=lambda one: one.topic)

    # Asking it reads nothing but itself

    def query(self, text: str, *, limit: int = 10) -> list[MemoryMatch]:
        """Topics in mind that are near to a question, best first, each as it is now.

        `matched` names the version that is nearest: words and meaning count, the strong come before the weak.
        """
        moment = self._swept()
        found: dict[str, MemoryMatch] = {}
        for near in self._nearest(MemoryQuery.of(text, self.embedder)):
            state = self._current(topic_of_key(near.matched))
            if state is not None and state.topic not in found and len(found) < limit:
                found[state.topic] = replace(near, state=state, strength=self._held[state.key].strength)
        self._use([key for one in found.values() for key in {one.state.key, one.matched}], moment)
        return list(found.values())

    def latest(self, topic: str) -> MemoryState | None:
        """The version of a topic that holds now, or None when it is not in mind."""
        moment = self._swept()
        state = self._current(topic_key(topic))
        if state is not None:
            self._use([state.key], moment)
        return state

    def history(self, topic: str) -> list[MemoryState]:
        """The versions of a topic that are in mind, oldest first."""
        moment = self._swept()
        keys = sorted(key for key in self._held if topic_of_key(key) == topic_key(topic))
        self._use(keys, moment)
        return [self._held[key].state for key in keys]

    def related(self, topic: str) -> list[tuple[MemoryEdge, MemoryState]]:
        """What a topic is joined to, as far as it is in mind, strongest edge first."""
        self._swept()
        ours = topic_key(topic)
        found = []
        for edge in self._edges.values():
            ends = {topic_of_key(end): key_of(end) for end in (edge.source, edge.target)}
            if ends.pop(ours, None) and (other := next(iter(ends.values()), "")) in self._held:
                found.append((edge, self._held[other].state))
        return sorted(found, key=lambda pair: (-pair[0].strength, pair[0].key))

    def __len__(self) -> int:
        return len(self._held)

    def report(self) -> dict[str, int]:
        """What is in mind, in numbers."""
        held = {"items": len(self), "topics": len(set(map(topic_of_key, self._held))), "edges": len(self._edges)}
        return {**held, "loads": self.loads, "evicted": self.evicted, "expired": self.expired}

    # Within

    def _nearest(self, asked: MemoryQuery) -> list[MemoryMatch]:
        """The versions in mind that share a word or some meaning with a question, best rank first, then by key."""
        entries = [self._held[key] for key in sorted(self._held)]
        if self._words is None:
            self._words = WordScores([text_of(entry.state.topic, entry.state.content) for entry in entries])
        scores = self._words.scores(asked.text)
        found = []
        for entry, score in zip(entries, (scores / max(float(scores.max(initial=0.0)), 1e-9)).tolist(), strict=True):
            cosine = None if asked.vector is None or entry.vector is None else float(entry.vector @ asked.vector)
            near = score if cosine is None else MEANING * max(0.0, cosine) + (1 - MEANING) * score
            if near > 0:
                found.append(MemoryMatch(entry.state, near, entry.strength, entry.state.key, cosine, score))
        return sorted(found, key=lambda one: -rank(one.similarity, one.strength, FOR_CONTEXT))

    def _current(self, topic: str) -> MemoryState | None:
        """The version of a topic, by its key, that holds now, where it is in mind."""
        versions = self._known.get(topic, {}).values()
        moment = max([self.now(), *(one.timestamp for one in versions)])
        state = choose_version(versions, Mask(as_of=moment, known_at=NEWEST))
        return state if state is not None and state.key in self._held else None

    def _know(self, states: Iterable[MemoryState]) -> None:
        for state in states:
            self._known.setdefault(topic_of_key(state.key), {})[state.key] = state

    def _take(self, states: Iterable[MemoryState]) -> None:
        moment = self.now()
        fresh = {state.key: state for state in states}
        self._know(fresh.values())
        vectors = self._vectors(sorted(fresh))
        for key, state in fresh.items():
            uses = self._held[key].uses if key in self._held else 0
            self._held[key] = _StateEntry(state, strength(state, moment), vectors.get(key), uses)
            self._held[key].stay(moment.timestamp())
        self.loads += len(fresh)
        self._words = None
        self._make_room(set(fresh))

    def _vectors(self, keys: list[str]) -> dict[str, Vectors]:
        if self.embedder is None:
            return {}
        rows = self.store.get(STATES, keys, columns=["embedding", "embedding_model"]).to_pylist()
        held = {row["_key"]: row["embedding"] for row in rows if row["embedding_model"] == self.embedder.model.tag}
        return {key: unit_rows(np.array([vector]))[0] for key, vector in held.items() if vector is not None}

    def _make_room(self, fresh: set[str]) -> None:
        """Let go of what would leave first; what has just come stays while anything else can go."""
        over = max(0, len(self._held) - self.most)
        self.evicted += over
        self._drop(sorted(self._held, key=lambda key: (key in fresh, self._held[key].leaves_at, key))[:over])

    def _swept(self) -> float:
        """Let go of what was of no use for long; the moment."""
        moment = self.now().timestamp()
        leaving = [key for key, held in self._held.items() if held.leaves_at <= moment]
        self.expired += len(leaving)
        self._drop(leaving)
        return moment

    def _drop(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        self._words = None
        for key in keys:
            del self._held[key]
        topics = set(map(topic_of_key, self._held))
        self._known = {topic: versions for topic, versions in self._known.items() if topic in topics}
        ends = {key: (edge.source, edge.target) for key, edge in self._edges.items()}
        self._edges = {key: self._edges[key] for key, pair in ends.items() if topics & set(map(topic_of_key, pair))}

    def _use(self, keys: Iterable[str], moment: float) -> None:
        for key in keys:
            self._held[key].stay(moment)
            self._held[key].uses += 1
