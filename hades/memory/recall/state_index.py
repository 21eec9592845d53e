"""An index of all states in this process: words, vectors and times as arrays, kept fresh by the changes of the store.

Searching it reads no rows. It is built from the store once and follows every write, also of other processes, by the
store's list of changes. A store that keeps no such list is searched by its own index instead.
"""

from __future__ import annotations

import math
import pickle
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from hades.memory.history.delta_chains import ancestors, make_whole_from
from hades.memory.history.names import EDGES, STATES, key_of, topic_of_key
from hades.memory.history.states import is_erased
from hades.memory.recall.similarity import MemoryQuery
from hades.memory.recall.state_columns import ALWAYS, NEVER, TIMES, StateColumns, to_micros
from hades.ports.store import RowStore
from hades.text.analyzer import stem_word, terms, words
from schemas.intervals import Mask, is_visible
from schemas.memory import MemoryRelation, MemoryState

K1, B = 1.2, 0.75  # BM25, the usual constants
EXACT = 20_000  # states up to which every vector is compared; beyond, the best by a projection are
_LEVELS = 4  # of consolidation: said, daily, weekly, monthly
_DIMENSIONS = 48  # of the projection
_SAMPLE = 4_096  # vectors that the projection is fitted to
_PRE_SELECTED = 400  # by the projection, then compared exactly
_COMMON = 0.1  # share of the states that hold a word from which it is left out beside rarer ones
_FEW = 2_000  # states that hold a word up to which it always counts
_DEAD = 10_000  # dead places beyond those of as many living ones; then the index is built again
_COLUMNS = tuple(name for name in MemoryState.model_fields if name != "key")
_EDGE_COLUMNS = ("_from", "_to", "relationship_type", "valid_from", "valid_until", "recorded_at", "retracted_at")


@dataclass(frozen=True)
class IndexHit:
    """A state that is near to a question: its place in the index and how near it is."""

    place: int
    semantic: float | None
    lexical: float


class StateIndex:
    """States in the order in which they were read; a state that changed has a new place and its old one is dead."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.keys: list[str] = []
        self.topics: list[str] = []
        self.revision = -1
        self._edge_revision = -1
        self._place: dict[str, int] = {}
        self._topics: dict[str, list[int]] = {}
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        self._grown = StateColumns()
        self._spans: list[tuple[int, int, int, int, int]] = []  # begins, ends, said, retracted, version
        self._rows: list[bytes] = []
        self._links: dict[str, dict[str, tuple[datetime | None, ...]]] = {}
        self._edge_ends: dict[str, tuple[str, str]] = {}
        self._projection: NDArray[np.float32] | None = None
        self._projected: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self._place)

    # Keeping it fresh

    def refresh(self, rows: RowStore) -> bool:
        """Read what changed since the last look; False where the store does not say what did."""
        changes = rows.changes(STATES, self.revision)
        edges = rows.changes(EDGES, self._edge_revision)
        if changes is None or edges is None:
            return False
        is_worn = len(self.keys) > 2 * len(self._place) + _DEAD
        if changes.keys is None or is_worn:
            self._forget()
            for batch in rows.scan(STATES, columns=_COLUMNS):
                self._add(batch)
        elif changes.keys:
            self._drop(changes.keys)
            for batch in rows.get(STATES, sorted(set(changes.keys)), columns=_COLUMNS).to_batches():
                self._add(batch)
        if edges.keys is None:
            self._links, self._edge_ends = {}, {}
            for batch in rows.scan(EDGES, columns=_EDGE_COLUMNS):
                self._link(batch)
        elif edges.keys:
            self._unlink(edges.keys)
            for batch in rows.get(EDGES, sorted(set(edges.keys)), columns=_EDGE_COLUMNS).to_batches():
                self._link(batch)
        self.revision, self._edge_revision = changes.revision, edges.revision
        return True

    # Asking it

    def nearest(self, asked: MemoryQuery, seen: NDArray[np.bool_], limit: int) -> list[IndexHit]:
        """The best `limit` by words and the best by meaning among the states that are seen."""
        if not seen.any():
            return []
        lexical = self._lexical(asked.text)
        lexical *= seen
        holding = np.flatnonzero(lexical)
        by_words = holding[_best(lexical[holding], limit)]
        top = float(lexical[by_words].max()) if len(by_words) else 0.0
        places, cosines = by_words, np.full(len(by_words), np.nan, np.float32)
        if asked.vector is not None and asked.model == self.model and self._grown.has_vectors:
            by_meaning = self._near(asked.vector, seen, limit)
            places = np.union1d(by_words, by_meaning)
            cosines = self._grown.vectors[places] @ asked.vector
            cosines[~self._grown.embedded[places]] = np.nan
        return [
            IndexHit(
                int(place),
                None if math.isnan(cosine) else float(cosine),
                float(lexical[place]) / top if top > 0 else 0.0,
            )
            for place, cosine in zip(places, cosines, strict=True)
        ]

    def seen(
        self, mask: Mask, levels: Sequence[int], window: tuple[datetime | None, datetime | None]
    ) -> NDArray[np.bool_]:
        """Which states may lead a reader at the mask to their topic."""
        held = self._grown
        wanted = np.zeros(_LEVELS, np.bool_)
        wanted[list(levels)] = True
        ok: NDArray[np.bool_] = wanted[held.level]
        ok &= held.alive
        if not ok.any():
            return ok
        if mask.known_at is None:
            ok &= held.times["retracted_at"] == NEVER
            if mask.as_of is not None:
                ok &= held.times["valid_from"] <= to_micros(mask.as_of)
        else:
            ok &= held.times["timestamp"] <= to_micros(mask.known_at)
            ok &= held.times["valid_from"] <= to_micros(mask.as_of or mask.known_at)
        start, end = window
        if start is not None:
            ok &= held.times["valid_from"] >= to_micros(start)
        if end is not None:
            ok &= held.times["valid_from"] < to_micros(end)
        return ok

    def current(self, topic: str, mask: Mask, now: datetime) -> int | None:
        """The place of the version of a topic, by its key, that holds at the mask: the rule of `history.current`."""
        places = self._topics.get(topic)
        if not places:
            return None
        spans = self._spans
        moment = to_micros(mask.as_of or mask.known_at or now)
        if mask.is_open:
            moment = max(moment, *(spans[place][2] for place in places))
        known = to_micros(mask.known_at) if mask.known_at is not None else NEVER - 1
        best, found = (ALWAYS, 0), None
        for place in places:
            begins, ends, said, retracted, version = spans[place]
            if begins <= moment < ends and said <= known < retracted and (begins, version) > best:
                best, found = (begins, version), place
        return found

    def last_keys(self, topic: str, limit: int, mask: Mask) -> list[str]:
        """Keys of the last versions of a topic, by its key, that the mask lets through, oldest first."""
        as_of = None if mask.as_of is None else to_micros(mask.as_of)
        known = None if mask.known_at is None else min(to_micros(mask.known_at), NEVER - 1)
        seen = []
        for place in self._topics.get(topic, ()):
            begins, ends, said, retracted, version = self._spans[place]
            is_true = as_of is None or begins <= as_of < ends
            if is_true and (known is None or said <= known < retracted) and begins != NEVER:
                seen.append((version, self.keys[place]))
        return [key for _, key in sorted(seen)[-limit:]]

    def states(self, keys: Sequence[str]) -> list[MemoryState]:
        """The versions of these keys that exist and were not erased, in key order, whole, without their vectors."""
        held = {key: self._row(key) for key in sorted(set(keys)) if key in self._place}
        wanted = [state for state in held.values() if not is_erased(state)]
        missing = {one for state in wanted for one in ancestors(state)} - held.keys()
        held |= {key: self._row(key) for key in missing if key in self._place}
        return make_whole_from(held, wanted)

    def _row(self, key: str) -> MemoryState:
        return MemoryState.model_construct(**pickle.loads(self._rows[self._place[key]]))

    def strength_facts(self, place: int) -> tuple[float, datetime, datetime | None]:
        """Importance of a state, since when it holds, and when it was last read."""
        held = self._grown
        accessed = int(held.last_accessed[place])
        return (
            float(held.importance[place]),
            _moment(self._spans[place][0]),
            None if accessed == ALWAYS else _moment(accessed),
        )

    def links(self, topic: str, mask: Mask) -> int:
        """How many true edges join a topic, by its key, to others."""
        return sum(is_visible(mask, *times) for times in self._links.get(topic, {}).values())

    # Within

    def _lexical(self, text: str) -> NDArray[np.float32]:
        """BM25 of every place."""
        held, total = self._grown, max(1, len(self._place))
        scores = np.zeros(len(self.keys), np.float32)
        mean = held.words_in_all / total
        found = [self._postings[term] for term in terms(text.replace("_", " ")) if term in self._postings]
        rarest = min((len(posting[0]) for posting in found), default=0)
        for posting in found:
            if len(posting[0]) > max(_COMMON * total, rarest, _FEW):  # beside a rarer word it moves no result
                continue
            places, counts = (np.frombuffer(part, np.uint32) for part in posting)
            weight = math.log1p(total / (len(places) + 0.5))
            counted = counts.astype(np.float32)
            scores[places] += (
                weight * counted * (K1 + 1) / (counted + K1 * (1 - B + B * held.length[places] / max(mean, 1e-9)))
            )
        return scores

    def _near(self, vector: NDArray[np.float32], seen: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """Places by cosine; of many states, the best by the projection are compared."""
        held = self._grown
        allowed = seen & held.embedded
        if len(self.keys) <= EXACT:
            scores = held.vectors @ vector
            scores[~allowed] = -np.inf
            best = _best(scores, limit)
            finite: NDArray[np.int64] = best[np.isfinite(scores[best])]
            return finite
        matrix, projected = self._project()
        rough = projected @ (matrix.T @ vector)
        rough[~allowed] = -np.inf
        chosen = _best(rough, max(_PRE_SELECTED, limit))
        chosen = chosen[np.isfinite(rough[chosen])]
        exact = held.vectors[chosen] @ vector
        return chosen[_best(exact, limit)]

    def _project(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The axes along which the vectors differ most, and the vectors along them."""
        held = self._grown
        if self._projection is None:
            sample = held.vectors[held.embedded][:: max(1, len(self.keys) // _SAMPLE)]
            _, axes = np.linalg.eigh(sample.T @ sample)
            self._projection = np.ascontiguousarray(axes[:, -_DIMENSIONS:], np.float32)
        if self._projected is None:
            self._projected = held.vectors @ self._projection
        elif len(self._projected) < len(self.keys):
            fresh = held.vectors[len(self._projected) :] @ self._projection
            self._projected = np.concatenate([self._projected, fresh])
        return self._projection, self._projected

    def _add(self, batch: pa.RecordBatch) -> None:
        for row in batch.drop_columns(["embedding"]).to_pylist():
            is_tomb = row["valid_from"] is None
            place = len(self.keys)
            found = terms_with_counts(f"{row['topic']} {row['content']}") if not is_tomb else {}
            for term, count in found.items():
                places, counts = self._postings.setdefault(term, (array("I"), array("I")))
                places.append(place)
                counts.append(count)
            self.keys.append(row["_key"])
            self.topics.append(row["topic"])
            self._place[row["_key"]] = place
            self._topics.setdefault(topic_of_key(row["_key"]), []).append(place)
            self._grown.add(row, not is_tomb, sum(found.values()))
            times = [NEVER if row[name] is None else to_micros(row[name]) for name in TIMES]
            self._spans.append((times[0], times[1], times[2], times[3], row["version"]))
            self._rows.append(pickle.dumps(_record(row), pickle.HIGHEST_PROTOCOL))
        self._grown.add_vectors(batch.column("embedding"), batch.column("embedding_model"), self.model)

    def _drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            place = self._place.pop(key, None)
            if place is not None:
                self._grown.kill(place)
                self._topics[topic_of_key(key)].remove(place)

    def _forget(self) -> None:
        self.keys, self.topics, self._place, self._topics, self._postings = [], [], {}, {}, {}
        self._grown, self._spans, self._rows = StateColumns(), [], []
        self._projection = self._projected = None

    def _link(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            if row["relationship_type"] == MemoryRelation.EVOLVES_TO:
                continue
            ends = topic_of_key(key_of(row["_from"])), topic_of_key(key_of(row["_to"]))
            times = row["valid_from"], row["valid_until"], row["recorded_at"], row["retracted_at"]
            self._edge_ends[row["_key"]] = ends
            for end in ends:
                self._links.setdefault(end, {})[row["_key"]] = times

    def _unlink(self, keys: Iterable[str]) -> None:
        for key in keys:
            for end in self._edge_ends.pop(key, ()):
                self._links.get(end, {}).pop(key, None)


def terms_with_counts(text: str) -> dict[str, int]:
    """The stems of a text and how often each stands in it."""
    return Counter(stem_word(word) for word in words(text.replace("_", " ")))


def _record(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the store as the fields of a `MemoryState`."""
    fields = {name: value for name, value in row.items() if name not in ("_key", "embedding_model")}
    lists = {name: tuple(fields[name] or ()) for name in ("tags", "consolidated_from")}
    metadata = orjson.loads(fields["metadata"])
    return {**fields, **lists, "metadata": metadata, "key": row["_key"], "embedding": None,
            "embedding_model": row["embedding_model"]}  # fmt: skip


def _best(scores: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
    """Places of the highest scores, in order of place."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    return np.sort(np.argpartition(scores, len(scores) - limit)[len(scores) - limit :])


def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1_000_000, UTC)
