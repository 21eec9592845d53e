"""States as arrays in this process."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from hades.memory.history import rows as records
from hades.memory.history.rows import EDGES, STATES, topic_key, topic_of_key
from hades.memory.history.states import (
    Reader,
    ancestors,
    by_keys,
    history,
    is_erased,
    is_whole,
    make_whole_from,
    outward,
)
from hades.memory.recall.index_arrays import (
    ALWAYS,
    EDGE_COLUMNS,
    MEANING,
    NEVER,
    TIMES,
    EdgeIndex,
    MemoryQuery,
    SignCodes,
    Standing,
    StateColumns,
    WordIndex,
    to_micros,
    to_moment,
)
from hades.ports.store import RowStore
from schemas.ids import Mask
from schemas.memory import MemoryEdge, MemoryState

# An index of all states in this process: words, vectors and times as arrays, kept fresh by the changes of the
# store. Searching it reads no rows. It is built from the store once and follows every write, also of other
# processes, by the store's list of changes. A store that keeps no such list is searched by its own index instead.


EXACT = 4_000  # states up to which every vector is compared; beyond, those whose codes are nearest
_PRE_SELECTED = 1_000  # by their codes, then compared exactly
_LEVELS = 4  # of consolidation: said, daily, weekly, monthly
_DEAD = 10_000  # dead places beyond those of as many living ones; then the index is built again
_COLUMNS = tuple(name for name in MemoryState.model_fields if name != "key")
Times = tuple[datetime | None, datetime | None]  # [from, until), an absent side is open


@dataclass(frozen=True)
class IndexHit:
    """A state that is near to a question: its place in the index, how near it is, and why."""

    place: int
    similarity: float
    semantic: float | None
    lexical: float


class StateIndex:
    """States in the order in which they were read; a state that changed has a new place and its old one is dead."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.keys: list[str] = []
        self.topics: list[str] = []
        self.edges = EdgeIndex()
        self.revision = -1
        self._edge_revision = -1
        self._codes: SignCodes | None = None
        self._forget()

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
            self.edges = EdgeIndex()
            for batch in rows.scan(EDGES, columns=EDGE_COLUMNS):
                self.edges.add(batch)
        elif edges.keys:
            self.edges.drop(edges.keys)
            for batch in rows.get(EDGES, sorted(set(edges.keys)), columns=EDGE_COLUMNS).to_batches():
                self.edges.add(batch)
        self.revision, self._edge_revision = changes.revision, edges.revision
        return True

    # Asking it

    def nearest(self, asked: MemoryQuery, seen: NDArray[np.bool_], limit: int) -> list[IndexHit]:
        """The best `limit` by words and the best by meaning of the states that are seen, nearest first, then by key."""
        if not seen.any():
            return []
        held = self._grown
        total = max(1, len(self._place))
        scores = self._words.scores(asked.text, held.length, held.words_in_all / total, total)
        scores *= seen
        holding = np.flatnonzero(scores > 0)
        places = holding[_best(scores[holding], limit)]
        top = float(scores[places].max()) if len(places) else 1.0
        cosines = np.full(len(places), np.nan, np.float32)
        if asked.vector is not None and asked.model == self.model and held.has_vectors:
            places = np.union1d(places, self._near(asked.vector, seen, limit))
            cosines = held.vectors[places] @ asked.vector
            cosines[~held.embedded[places]] = np.nan
        lexical = scores[places].astype(np.float64) / top
        meaning = cosines.astype(np.float64)
        mixed = MEANING * np.maximum(meaning, 0.0) + (1 - MEANING) * lexical
        similarity = np.round(np.where(np.isnan(meaning), lexical, mixed), 9)
        found = zip(places.tolist(), similarity.tolist(), meaning.tolist(), lexical.tolist(), strict=True)
        hits = [IndexHit(at, near, None if math.isnan(cosine) else cosine, word) for at, near, cosine, word in found]
        return sorted(hits, key=lambda hit: (-hit.similarity, self.keys[hit.place]))

    def seen(self, mask: Mask, levels: Sequence[int], window: Times) -> NDArray[np.bool_]:
        """Which states may lead a reader at the mask to their topic."""
        held = self._grown
        wanted = np.zeros(_LEVELS, np.bool_)
        wanted[list(levels)] = True
        ok: NDArray[np.bool_] = held.level == levels[0] if len(levels) == 1 else wanted[held.level]
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

    def current(self, topic: str, reader: Standing) -> int | None:
        """The place of the version of a topic, by its key, that holds for a reader: the rule of `history.current`."""
        places = self._topics.get(topic)
        if not places:
            return None
        spans, moment, known = self._spans, reader.moment, reader.known
        newest = self._newest[topic]
        begins, ends, said, retracted, _ = spans[newest]
        if begins <= moment < ends and said <= known < retracted:
            return newest  # nothing that began earlier can hold instead of it
        if reader.is_open:
            moment = max(moment, *(spans[place][2] for place in places))
        best, found = (ALWAYS, 0), None
        for place in places:
            begins, ends, said, retracted, version = spans[place]
            if begins <= moment < ends and said <= known < retracted and (begins, version) > best:
                best, found = (begins, version), place
        return found

    def last_keys(self, topic: str, limit: int, mask: Mask, began: Times = (None, None)) -> list[str]:
        """Keys of the last versions of a topic, by its key, that the mask lets through, oldest first.

        Of these, only those that began to hold in the time given.
        """
        as_of = None if mask.as_of is None else to_micros(mask.as_of)
        known = None if mask.known_at is None else min(to_micros(mask.known_at), NEVER - 1)
        first, last = began
        start = ALWAYS if first is None else to_micros(first)
        end = NEVER if last is None else to_micros(last)
        seen = []
        for place in self._topics.get(topic, ()):
            begins, ends, said, retracted, version = self._spans[place]
            is_true = as_of is None or begins <= as_of < ends
            if is_true and (known is None or said <= known < retracted) and begins != NEVER:
                seen.append((version, begins, self.keys[place]))
        return [key for _, begins, key in sorted(seen)[-limit:] if start <= begins < end]

    def states(self, keys: Sequence[str]) -> list[MemoryState]:
        """The versions of these keys that exist and were not erased, in key order, whole, without their vectors."""
        held = {key: self._row(key) for key in sorted(set(keys)) if key in self._place}
        wanted = [state for state in held.values() if not is_erased(state)]
        if all(is_whole(state) for state in wanted):
            return [outward(state) for state in wanted]
        missing = {one for state in wanted for one in ancestors(state)} - held.keys()
        held |= {key: self._row(key) for key in missing if key in self._place}
        return make_whole_from(held, wanted)

    def _row(self, key: str) -> MemoryState:
        """A version without checking it again: what its own pickle would restore, at a quarter of the time."""
        fields = pickle.loads(self._rows[self._place[key]])
        state = MemoryState.__new__(MemoryState)
        state.__setstate__(
            {
                "__dict__": fields,
                "__pydantic_fields_set__": set(fields),
                "__pydantic_extra__": None,
                "__pydantic_private__": None,
            }
        )
        return state

    def strength_facts(self, place: int) -> tuple[float, datetime, datetime | None]:
        """Importance of a state, since when it holds, and when it was last read."""
        held = self._grown
        accessed = int(held.last_accessed[place])
        return (
            float(held.importance[place]),
            to_moment(self._spans[place][0]),
            None if accessed == ALWAYS else to_moment(accessed),
        )

    # Within

    def _near(self, vector: NDArray[np.float32], seen: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        """Places by cosine; of many states, those whose codes are nearest are compared."""
        held = self._grown
        allowed = seen & held.embedded
        if len(self.keys) <= EXACT:
            chosen = np.flatnonzero(allowed)
        else:
            if self._codes is None:
                self._codes = SignCodes(held.vectors.shape[1])
            self._codes.extend(held.vectors[len(self._codes) :])
            chosen = self._codes.nearest(vector, allowed, max(_PRE_SELECTED, limit))
        return chosen[_best(held.vectors[chosen] @ vector, limit)]

    def _add(self, batch: pa.RecordBatch) -> None:
        lengths = []
        for row in batch.drop_columns(["embedding"]).to_pylist():
            place = len(self.keys)
            is_tomb = row["valid_from"] is None
            lengths.append(0 if is_tomb else self._words.add(place, f"{row['topic']} {row['content']}"))
            self.keys.append(row["_key"])
            self.topics.append(row["topic"])
            self._place[row["_key"]] = place
            self._topics.setdefault(topic_of_key(row["_key"]), []).append(place)
            self._rows.append(pickle.dumps(_record(row), pickle.HIGHEST_PROTOCOL))
        first = len(self._spans)
        self._grown.extend(batch, lengths, self.model)
        times = (self._grown.times[name][first:].tolist() for name in TIMES)
        self._spans += zip(*times, batch.column("version").to_pylist(), strict=True)
        for place in range(first, len(self._spans)):
            topic = topic_of_key(self.keys[place])
            newest = self._newest.get(topic)
            if newest is None or self._order(place) > self._order(newest):
                self._newest[topic] = place

    def _drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            place = self._place.pop(key, None)
            if place is not None:
                self._grown.kill(place)
                topic = topic_of_key(key)
                self._topics[topic].remove(place)
                if self._newest[topic] == place:
                    del self._newest[topic]
                    if self._topics[topic]:
                        self._newest[topic] = max(self._topics[topic], key=self._order)

    def _order(self, place: int) -> tuple[int, int]:
        """Of two versions that hold, the one that comes last in this order is shown."""
        begins, _, _, _, version = self._spans[place]
        return begins, version

    def _forget(self) -> None:
        self.keys, self.topics = [], []
        self._place: dict[str, int] = {}
        self._topics: dict[str, list[int]] = {}  # places by topic key
        self._newest: dict[str, int] = {}  # of these, the one that began last
        self._words = WordIndex()
        self._grown = StateColumns()
        self._spans: list[tuple[int, int, int, int, int]] = []  # begins, ends, said, retracted, version
        self._rows: list[bytes] = []
        self._codes = None


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


# The index of each store that this process searches: built when it pays, one for each embedding model in use.


MOST = 400_000  # states beyond which an index would take more than a gigabyte
_MODELS = 2  # indexes that one store has at a time


@dataclass
class _Held:
    """The indexes of one store."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    fresh: dict[str, StateIndex | None] = field(default_factory=dict)  # what the thread that holds the lock looked at
    depth: int = 0
    indexes: dict[str, StateIndex] = field(default_factory=dict)


_held: WeakKeyDictionary[RowStore, _Held] = WeakKeyDictionary()
_guard = threading.Lock()


@contextmanager
def index_of(rows: RowStore, model: str) -> Iterator[StateIndex | None]:
    """The index of a store for a model, fresh; None where the store's own search serves better or must.

    Calls within one another see the store as the outermost found it: a question that reads several times wraps them.
    """
    with _guard:
        held = _held.setdefault(rows, _Held())
    with held.lock:
        held.depth += 1
        try:
            if model not in held.fresh:
                held.fresh[model] = _fresh(rows, held, model)
            yield held.fresh[model]
        finally:
            held.depth -= 1
            if not held.depth:
                held.fresh.clear()


def _fresh(rows: RowStore, held: _Held, model: str) -> StateIndex | None:
    index = held.indexes.get(model)
    if index is None:
        if rows.count(STATES) > MOST:
            return None
        index = StateIndex(model)
    if not index.refresh(rows):
        return None
    held.indexes.pop(model, None)
    held.indexes[model] = index
    while len(held.indexes) > _MODELS:
        del held.indexes[next(iter(held.indexes))]
    return index


# Reading states for an answer: from the index of this process where there is one, else from the store.


def read_states(reader: Reader, keys: Sequence[str]) -> list[MemoryState]:
    """The versions of these keys that exist and were not erased, in key order."""
    with index_of(reader.rows, model_of(reader)) as index:
        if index is not None:
            return index.states(keys)
    return by_keys(reader.rows, sorted(set(keys)))


def read_current(reader: Reader, topic_keys: Iterable[str]) -> list[MemoryState]:
    """The version of each of these topics that holds for a reader, by topic key."""
    with index_of(reader.rows, model_of(reader)) as index:
        if index is not None:
            standing = Standing.of(reader.mask, reader.now)
            places = (index.current(key, standing) for key in sorted(set(topic_keys)))
            return index.states([index.keys[place] for place in places if place is not None])
    return reader.current(topic_keys)


def read_history(reader: Reader, topic: str, limit: int, mask: Mask, began: Times = (None, None)) -> list[MemoryState]:
    """The last versions of a topic that the mask lets through and that began in the time given, oldest first."""
    with index_of(reader.rows, model_of(reader)) as index:
        if index is not None:
            return index.states(index.last_keys(topic_key(topic), limit, mask, began))
    states = history(reader.rows, topic, limit=limit, mask=mask)
    return [one for one in states if _begins_in(one.valid_from or one.timestamp, *began)]


def read_edges(reader: Reader, keys: Sequence[str]) -> dict[str, MemoryEdge]:
    """The edges of these keys that exist, by key."""
    with index_of(reader.rows, model_of(reader)) as index:
        if index is not None:
            return index.edges.edges(keys)
    return records.fetch(reader.rows, EDGES, sorted(set(keys)), MemoryEdge)


def _begins_in(moment: datetime, start: datetime | None, end: datetime | None) -> bool:
    return (start is None or start <= moment) and (end is None or moment < end)


def model_of(reader: Reader) -> str:
    """The embedding model in use, by which indexes are told apart."""
    return reader.embedder.model.tag if reader.embedder is not None else ""
