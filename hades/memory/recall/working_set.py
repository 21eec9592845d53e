"""Working memory: what one has in mind about a topic. Filled from the store once; questions to it
touch no store.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

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
    _entries: dict[str, _StateEntry] = field(default_factory=dict)
    # Every version read, by topic, then by key.
    _known: dict[str, dict[str, MemoryState]] = field(default_factory=dict)
    _edges: dict[str, MemoryEdge] = field(default_factory=dict)
    _words: WordScores | None = None  # of what is in mind, in the order of the keys

    def __post_init__(self) -> None:
        if not 1 <= self.most <= MOST:
            raise MemoryRefused(f"a working set holds 1 to {MOST} versions, not {self.most}")

    # Filling it reads the store

    def preload(self, topic: str) -> WorkingMemory:
        """Take a topic in mind: its newest version, the last ten, the important ones, and what it
        is joined to.
        """
        newest = named(self.store, topic, self.now())
        versions = by_keys(self.store, self._last_keys(newest.topic))
        older = versions[:-LAST_VERSIONS]
        important = [version for version in older if version.importance_score >= IMPORTANT]
        important.sort(key=lambda version: (-version.importance_score, -version.version))
        self._keep_versions(versions)
        self._add([newest, *versions[-LAST_VERSIONS:], *important[:_MOST_IMPORTANT]])
        self.explore(newest.topic)
        return self

    def _last_keys(self, topic: str) -> list[str]:
        """The keys of the last versions of a topic, none where memory does not hold it."""
        pointer = pointer_to(self.store, topic)
        count = pointer.version if pointer else 0
        return version_keys(topic, count, count - _LOOKED_BACK + 1)

    def explore(self, topic: str) -> list[MemoryState]:
        """Follow the connections of a topic: the newest version of what it is joined to comes to
        mind too.
        """
        key = topic_key(topic)
        moment = self.now()
        nodes = list(map(state_id, self._last_keys(topic)))
        joining = edges_at(
            self.store,
            nodes,
            Mask(as_of=moment, known_at=NEWEST),
        )
        edges = [edge for edge in joining if edge.relationship_type != MemoryRelation.EVOLVES_TO]
        edges = sorted(edges, key=lambda edge: (-edge.strength, edge.key))[:_MOST_RELATED]
        self._edges |= {edge.key: edge for edge in edges}
        ends = chain.from_iterable((edge.source, edge.target) for edge in edges)

        linked = set()
        for end in ends:
            if topic_of_key(end) != key:
                linked.add(key_of(end))

        newest = states_at(
            self.store,
            map(topic_of_key, linked),
            Mask(),
            moment,
        )
        older = linked - {state.key for state in newest}
        self._add([*newest, *by_keys(self.store, sorted(older))])
        return sorted(newest, key=lambda state: state.topic)

    # Asking it reads nothing but itself

    def query(self, text: str, *, limit: int = 10) -> list[MemoryMatch]:
        """Topics in mind that are near to a question, best first, each as it is now.

        `matched` names the version that is nearest: words and meaning count, the strong come before
        the weak.
        """
        moment = self._sweep()

        matches: dict[str, MemoryMatch] = {}
        for near in self._rank_versions(MemoryQuery.of(text, self.embedder)):
            state = self._current(topic_of_key(near.matched))
            if state is not None and state.topic not in matches and len(matches) < limit:
                state_strength = self._entries[state.key].strength
                matches[state.topic] = replace(
                    near,
                    state=state,
                    strength=state_strength,
                )

        for match in matches.values():
            self._note_use({match.state.key, match.matched}, moment)

        return list(matches.values())

    def latest(self, topic: str) -> MemoryState | None:
        """The version of a topic that holds now, or None when it is not in mind."""
        moment = self._sweep()
        state = self._current(topic_key(topic))

        if state is not None:
            self._note_use([state.key], moment)

        return state

    def history(self, topic: str) -> list[MemoryState]:
        """The versions of a topic that are in mind, oldest first."""
        moment = self._sweep()
        keys = sorted(key for key in self._entries if topic_of_key(key) == topic_key(topic))
        self._note_use(keys, moment)
        return [self._entries[key].state for key in keys]

    def related(self, topic: str) -> list[tuple[MemoryEdge, MemoryState]]:
        """What a topic is joined to, as far as it is in mind, strongest edge first."""
        self._sweep()
        ours = topic_key(topic)

        related = []
        for edge in self._edges.values():
            near = key_of(edge.source)
            far = key_of(edge.target)
            if topic_of_key(near) != ours:
                near, far = far, near
            if topic_of_key(near) == ours != topic_of_key(far) and far in self._entries:
                related.append((edge, self._entries[far].state))

        return sorted(
            related,
            key=lambda pair: (-pair[0].strength, pair[0].key),
        )

    def __len__(self) -> int:
        return len(self._entries)

    def report(self) -> dict[str, int]:
        """What is in mind, in numbers."""
        counts = {
            "items": len(self),
            "topics": len(set(map(topic_of_key, self._entries))),
            "edges": len(self._edges),
        }
        return {
            **counts,
            "loads": self.loads,
            "evicted": self.evicted,
            "expired": self.expired,
        }

    # Within

    def _rank_versions(self, question: MemoryQuery) -> list[MemoryMatch]:
        """The versions in mind that share a word or some meaning with a question, best rank first,
        then by key.
        """
        entries = [self._entries[key] for key in sorted(self._entries)]
        if self._words is None:
            states = [entry.state for entry in entries]
            self._words = WordScores([text_of(state.topic, state.content) for state in states])

        scores = self._words.scores(question.text)
        matches = []
        best = max(float(scores.max(initial=0.0)), 1e-9)

        for entry, score in zip(entries, (scores / best).tolist(), strict=True):
            cosine = None
            near = score
            if question.vector is not None and entry.vector is not None:
                cosine = float(entry.vector @ question.vector)
                near = MEANING * max(0.0, cosine) + (1 - MEANING) * score

            if near > 0:
                match = MemoryMatch(
                    state=entry.state,
                    similarity=near,
                    strength=entry.strength,
                    matched=entry.state.key,
                    semantic=cosine,
                    lexical=score,
                )
                matches.append(match)

        matches.sort(key=lambda match: -rank(match.similarity, match.strength, FOR_CONTEXT))
        return matches

    def _current(self, topic: str) -> MemoryState | None:
        """The version of a topic, by its key, that holds now, where it is in mind."""
        versions = self._known.get(topic, {}).values()
        moment = max([self.now(), *(version.timestamp for version in versions)])
        state = choose_version(versions, Mask(as_of=moment, known_at=NEWEST))

        if state is not None and state.key in self._entries:
            return state

        return None

    def _keep_versions(self, states: Iterable[MemoryState]) -> None:
        for state in states:
            self._known.setdefault(topic_of_key(state.key), {})[state.key] = state

    def _add(self, states: Iterable[MemoryState]) -> None:
        moment = self.now()
        fresh = {state.key: state for state in states}
        self._keep_versions(fresh.values())
        vectors = self._read_vectors(sorted(fresh))

        for key, state in fresh.items():
            uses = self._entries[key].uses if key in self._entries else 0
            self._entries[key] = _StateEntry(
                state,
                strength(state, moment),
                vectors.get(key),
                uses,
            )
            self._entries[key].stay(moment.timestamp())

        self.loads += len(fresh)
        self._words = None
        self._make_room(set(fresh))

    def _read_vectors(self, keys: list[str]) -> dict[str, Vectors]:
        if self.embedder is None:
            return {}

        vectors: dict[str, Vectors] = {}
        table = self.store.get(
            STATES,
            keys,
            columns=["embedding", "embedding_model"],
        )
        for row in table.to_pylist():
            is_ours = row["embedding_model"] == self.embedder.model.tag
            if is_ours and row["embedding"] is not None:
                vectors[row["_key"]] = unit_rows(np.array([row["embedding"]]))[0]

        return vectors

    def _make_room(self, fresh: set[str]) -> None:
        """Let go of what would leave first; what has just come stays while anything else can go."""
        over = max(0, len(self._entries) - self.most)
        self.evicted += over
        entries = self._entries
        ordered = sorted(
            entries,
            key=lambda key: (key in fresh, entries[key].leaves_at, key),
        )
        self._drop(ordered[:over])

    def _sweep(self) -> float:
        """Let go of what was of no use for long; the moment."""
        moment = self.now().timestamp()

        leaving = []
        for key, entry in self._entries.items():
            if entry.leaves_at <= moment:
                leaving.append(key)

        self.expired += len(leaving)
        self._drop(leaving)
        return moment

    def _drop(self, keys: Sequence[str]) -> None:
        if not keys:
            return

        self._words = None
        for key in keys:
            del self._entries[key]

        topics = set(map(topic_of_key, self._entries))
        for topic in self._known.keys() - topics:
            del self._known[topic]

        for edge in list(self._edges.values()):
            if topics.isdisjoint(map(topic_of_key, (edge.source, edge.target))):
                del self._edges[edge.key]

    def _note_use(self, keys: Iterable[str], moment: float) -> None:
        for key in keys:
            self._entries[key].stay(moment)
            self._entries[key].uses += 1
