"""Columns, words, sign bits, edges of the index; similarity."""

from __future__ import annotations

import math
import pickle
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.memory.history.rows import STATES, key_of, topic_of_key
from hades.ports.services import Embedder, Vectors
from hades.ports.store import Predicate, RowStore
from hades.text.words import stem_word, terms, words
from models.kernels import unit_rows
from schemas.ids import Mask
from schemas.memory import MemoryEdge
from schemas.record import columns_of

# Where a reader stands in time, in the numbers that the index of memory compares.


NEVER = int(np.iinfo(np.int64).max)
ALWAYS = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Standing:
    """The moment that counts as now and what is known by then, in microseconds since 1970."""

    moment: int
    known: int
    is_open: bool  # nothing was asked about time: a version said later than `moment` by another clock counts too

    @classmethod
    def of(cls, mask: Mask, now: datetime) -> Standing:
        """The numbers of a mask; what it leaves open is now, and all that is known."""
        known = to_micros(mask.known_at) if mask.known_at is not None else NEVER - 1
        return cls(to_micros(mask.as_of or mask.known_at or now), known, mask.is_open)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970; a time without an end is the last but one."""
    return round(moment.timestamp() * 1_000_000) if moment.year < 9_999 else NEVER - 1


def to_moment(micros: int) -> datetime:
    """The moment of a number of microseconds since 1970."""
    return datetime.fromtimestamp(micros / 1_000_000, UTC)


# What the index of memory knows of each state, as arrays that grow by doubling.


TIMES = ("valid_from", "valid_until", "timestamp", "retracted_at")
_ABSENT = dict.fromkeys(TIMES, NEVER) | {"last_accessed": ALWAYS}
_YEAR_9999 = 253_370_764_800_000_000


class StateColumns:
    """What is known of each place, as arrays that grow by doubling."""

    def __init__(self) -> None:
        self.size = 0
        self.words_in_all = 0
        self._alive = np.zeros(0, np.bool_)
        self._level = np.zeros(0, np.int8)
        self._length = np.zeros(0, np.float32)
        self._importance = np.zeros(0, np.float32)
        self._embedded = np.zeros(0, np.bool_)
        self._vectors = np.zeros((0, 0), np.float32)
        self._times = {name: np.zeros(0, np.int64) for name in (*TIMES, "last_accessed")}

    def extend(self, batch: pa.RecordBatch, lengths: Sequence[int], model: str) -> None:
        """Places for the rows of a batch; a row without a beginning is the place of an erased state."""
        first = self.size
        self.size += batch.num_rows
        while self.size > len(self._alive):
            self._grow()
        places = slice(first, self.size)
        for name, absent in _ABSENT.items():
            self._times[name][places] = _micros(batch.column(name), absent)
        self._alive[places] = self._times["valid_from"][places] != NEVER
        self._level[places] = batch.column("consolidation_level").to_numpy(zero_copy_only=False)
        self._importance[places] = batch.column("importance_score").to_numpy(zero_copy_only=False)
        self._length[places] = lengths
        self.words_in_all += sum(lengths)
        self._set_vectors(first, batch.column("embedding"), batch.column("embedding_model"), model)

    def _set_vectors(self, first: int, vectors: pa.Array, models: pa.Array, model: str) -> None:
        """The vectors of the places that were added last; those of another model count as absent."""
        is_ours = pc.and_(pc.fill_null(pc.equal(models, model), False), pc.is_valid(vectors))
        wanted = np.flatnonzero(is_ours.to_numpy(zero_copy_only=False))
        if not len(wanted):
            return
        found = vectors.filter(is_ours).flatten().to_numpy().astype(np.float32).reshape(len(wanted), -1)
        if self._vectors.shape[1] != found.shape[1]:
            self._vectors = np.zeros((len(self._alive), found.shape[1]), np.float32)
        places = first + wanted
        self._vectors[places] = unit_rows(found)
        self._embedded[places] = True

    def kill(self, place: int) -> None:
        """Let a place count no more."""
        self._alive[place] = self._embedded[place] = False
        self.words_in_all -= int(self._length[place])

    def _grow(self) -> None:
        size = max(1_024, 2 * len(self._alive))
        for name in ("_alive", "_level", "_length", "_importance", "_embedded", "_vectors"):
            old = getattr(self, name)
            new = np.zeros((size, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        for name, old in self._times.items():
            self._times[name] = np.concatenate([old, np.zeros(size - len(old), np.int64)])

    @property
    def has_vectors(self) -> bool:
        """Whether any state has a vector of the model."""
        return self._vectors.shape[1] > 0

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which places count."""
        return self._alive[: self.size]

    @property
    def level(self) -> NDArray[np.int8]:
        """Level of consolidation."""
        return self._level[: self.size]

    @property
    def length(self) -> NDArray[np.float32]:
        """Words in the text."""
        return self._length[: self.size]

    @property
    def importance(self) -> NDArray[np.float32]:
        """Importance of each state."""
        return self._importance[: self.size]

    @property
    def embedded(self) -> NDArray[np.bool_]:
        """Which places have a vector of the model."""
        return self._embedded[: self.size]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(n_places, dimension) float32, rows unit length or zero."""
        return self._vectors[: self.size]

    @property
    def last_accessed(self) -> NDArray[np.int64]:
        """Microseconds since 1970 when each state was last read."""
        return self._times["last_accessed"]

    @property
    def times(self) -> dict[str, NDArray[np.int64]]:
        """Microseconds since 1970 of each time."""
        return {name: column[: self.size] for name, column in self._times.items()}


def _micros(times: pa.Array, absent: int) -> NDArray[np.int64]:
    """Microseconds since 1970, as `to_micros` gives them."""
    values = pc.fill_null(times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()), absent).to_numpy()
    endless = (values >= _YEAR_9999) & (values != NEVER)
    return np.where(endless, NEVER - 1, values)


# Which states hold which word, and BM25 over them.


K1, B = 1.2, 0.75  # BM25, the usual constants
_COMMON = 0.1  # share of the states that hold a word from which it is left out beside rarer ones
_FEW = 2_000  # states that hold a word up to which it always counts


class WordIndex:
    """Postings by stem: places in rising order, and how often the word stands in each."""

    def __init__(self) -> None:
        self._postings: dict[str, tuple[array[int], array[int]]] = {}

    def add(self, place: int, text: str) -> int:
        """The words of a state; how many there are."""
        found = Counter(map(stem_word, words(text.replace("_", " "))))
        for term, count in found.items():
            posting = self._postings.get(term)
            if posting is None:
                posting = self._postings[term] = array("I"), array("I")
            posting[0].append(place)
            posting[1].append(count)
        return sum(found.values())

    def scores(self, text: str, lengths: NDArray[np.float32], mean: float, total: int) -> NDArray[np.float32]:
        """BM25 of every place; `lengths` in words, `total` states that count."""
        scores = np.zeros(len(lengths), np.float32)
        found = [self._postings[term] for term in terms(text.replace("_", " ")) if term in self._postings]
        rarest = min((len(posting[0]) for posting in found), default=0)
        for posting in found:
            if len(posting[0]) > max(_COMMON * total, rarest, _FEW):  # beside a rarer word it moves no result
                continue
            places, counts = (np.frombuffer(part, np.uint32) for part in posting)
            weight = np.float32(math.log1p(total / (len(places) + 0.5)) * (K1 + 1))
            counted = counts.astype(np.float32)
            share = lengths[places]
            share *= np.float32(K1 * B / max(mean, 1e-9))
            share += counted
            share += np.float32(K1 * (1 - B))
            counted *= weight
            counted /= share
            scores[places] += counted
        return scores


# Signs of rotated vectors, one bit each: which of many vectors are worth comparing exactly. The number of bits in
# which two codes differ grows with the angle between the vectors (Charikar 2002, "Similarity Estimation Techniques
# from Rounding Algorithms"). Comparing codes reads an eighth to a thirty-second of the bytes.


_LEAST_BITS = 256  # of a code; shorter vectors are rotated more than once
_WORD = 64
_SEED = 17
_FAR = np.iinfo(np.uint16).max


class SignCodes:
    """Codes of the vectors of places, in order; they grow by doubling."""

    def __init__(self, dimension: int) -> None:
        self._axes = _axes(dimension)
        self._size = 0
        self._codes = np.zeros((self._axes.shape[1] // _WORD, 0), np.uint64)  # one row a word of the code

    def __len__(self) -> int:
        return self._size

    def extend(self, vectors: NDArray[np.float32]) -> None:
        """Codes for the next places."""
        size = self._size + len(vectors)
        if size > self._codes.shape[1]:
            grown = np.zeros((len(self._codes), max(1_024, 2 * size)), np.uint64)
            grown[:, : self._size] = self._codes[:, : self._size]
            self._codes = grown
        self._codes[:, self._size : size] = self._encode(vectors)
        self._size = size

    def nearest(self, vector: NDArray[np.float32], allowed: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
        """At least `count` of the allowed places, where there are as many: those whose codes differ least."""
        asked = self._encode(vector[None, :])[:, 0]
        distances = np.zeros(self._size, np.uint16)
        differing, counts = np.empty(self._size, np.uint64), np.empty(self._size, np.uint8)
        for word, part in zip(self._codes, asked, strict=True):
            np.bitwise_xor(word[: self._size], part, out=differing)
            distances += np.bitwise_count(differing, out=counts)
        distances[~allowed] = _FAR
        bits = len(self._codes) * _WORD
        per_distance = np.bincount(np.minimum(distances, bits + 1), minlength=bits + 2)[: bits + 1]
        bound = int(np.searchsorted(np.cumsum(per_distance), count))
        return np.flatnonzero(distances <= min(bound, bits))

    def _encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        """(words, n) uint64."""
        signs = np.packbits(vectors @ self._axes > 0, axis=1)
        return np.ascontiguousarray(signs.view(np.uint64).T)


@cache
def _axes(dimension: int) -> NDArray[np.float32]:
    """(dimension, bits): random rotations side by side, the same in every process."""
    bits = -(-max(_LEAST_BITS, dimension) // _WORD) * _WORD
    chance = np.random.default_rng(_SEED)
    rotations = [np.linalg.qr(chance.standard_normal((dimension, dimension)))[0] for _ in range(-(-bits // dimension))]
    return np.ascontiguousarray(np.hstack(rotations)[:, :bits], np.float32)


# How near versions are to a question: words and meaning together, only vectors of one model compared.


# A convex combination of normalised scores: Bruch, Gai, Ingber (2023), "An Analysis of Fusion Functions", section 4.
MEANING = 0.5  # the weight of meaning; words have the rest


@dataclass(frozen=True)
class SimilarState:
    """One version and why it is near; `semantic` is None where it has no vector of the embedder's model."""

    key: str
    similarity: float
    semantic: float | None
    lexical: float


@dataclass(frozen=True)
class MemoryQuery:
    """A question as both searches take it."""

    text: str
    vector: Vectors | None
    model: str

    @classmethod
    def of(cls, text: str, embedder: Embedder | None) -> MemoryQuery:
        """The question, embedded where there is an embedder."""
        if embedder is None:
            return cls(text, None, "")
        return cls(text, embedder.embed([text])[0], embedder.model.tag)


def nearest(rows: RowStore, asked: MemoryQuery, *, limit: int, where: Predicate = ()) -> list[SimilarState]:
    """Versions by similarity, highest first: the best `limit` by meaning and the best `limit` by words."""
    words = _scores(rows.search(STATES, asked.text, limit=limit, where=where)) if asked.text.strip() else {}
    meaning: dict[str, float] = {}
    if asked.vector is not None:
        vector = asked.vector.tolist()
        meaning = _scores(rows.nearest(STATES, vector, model=asked.model, limit=limit, where=where))
        meaning |= cosines(rows, sorted(words.keys() - meaning.keys()), asked)
    top = max(words.values(), default=0.0)
    found = [_near(key, meaning.get(key), words.get(key, 0.0) / top if top > 0 else 0.0)
             for key in words.keys() | meaning.keys()]  # fmt: skip
    return sorted(found, key=lambda one: (-one.similarity, one.key))


def cosines(rows: RowStore, keys: Sequence[str], asked: MemoryQuery) -> dict[str, float]:
    """The cosine of the versions among these that carry a vector of the model."""
    held, vectors = vectors_of(rows, keys, asked.model)
    if asked.vector is None or not held:
        return {}
    return dict(zip(held, (vectors @ asked.vector).tolist(), strict=True))


def vectors_of(rows: RowStore, keys: Sequence[str], model: str) -> tuple[list[str], Vectors]:
    """Keys and unit vectors, (n_keys, dimension) float32, of the versions that carry one of this model."""
    held = rows.get(STATES, keys, columns=["embedding", "embedding_model"]).to_pylist() if keys else []
    kept = [row for row in held if row["embedding_model"] == model and row["embedding"] is not None]
    if not kept:
        return [], np.zeros((0, 0), np.float32)
    matrix = np.array([row["embedding"] for row in kept], np.float32)
    norms = np.linalg.norm(matrix, axis=1, keepdims=True)
    return [row["_key"] for row in kept], (matrix / np.where(norms == 0, 1, norms)).astype(np.float32)


def mix(semantic: float | None, lexical: float) -> float:
    """Words and meaning as one figure in [0, 1]; words alone where there is no meaning to compare."""
    if semantic is None:
        return lexical
    return MEANING * max(0.0, semantic) + (1 - MEANING) * lexical


def _near(key: str, semantic: float | None, lexical: float) -> SimilarState:
    return SimilarState(key, round(mix(semantic, lexical), 9), semantic, lexical)


def _scores(hits: pa.Table) -> dict[str, float]:
    scores = zip(hits.column("_key").to_pylist(), hits.column("score").to_pylist(), strict=True)
    return {key: score for key, score in scores if math.isfinite(score)}


# The edges of memory in this process: which topics they join, how strongly and when; asking reads no rows.


EDGE_COLUMNS = tuple(column.name for column in columns_of(MemoryEdge) if column.name != "_key")


class Bond(NamedTuple):
    """An edge as seen from one of its topics."""

    state: str  # key of the version at the other end
    edge: str
    strength: float
    kind: tuple[str, bool]  # relation, and whether it leads away
    began: int


class _Edge(NamedTuple):
    source: str
    target: str
    relation: str
    strength: float
    begins: int
    ends: int
    recorded: int
    retracted: int
    row: bytes


class EdgeIndex:
    """Edges by their key and by the topics at their ends; those between versions of one topic are left out."""

    def __init__(self) -> None:
        self._edges: dict[str, _Edge] = {}
        self._at: dict[str, dict[str, None]] = {}  # keys of edges by topic key

    def add(self, batch: pa.RecordBatch) -> None:
        """Hold the edges of some rows."""
        for row in batch.to_pylist():
            source, target = key_of(row["_from"]), key_of(row["_to"])
            ends = topic_of_key(source), topic_of_key(target)
            if ends[0] == ends[1]:
                continue
            begins, recorded = (ALWAYS if row[n] is None else to_micros(row[n]) for n in ("valid_from", "recorded_at"))
            until, retracted = (NEVER if row[n] is None else to_micros(row[n]) for n in ("valid_until", "retracted_at"))
            strength = 1.0 if row["strength"] is None else float(row["strength"])
            held = pickle.dumps({**row, "metadata": orjson.loads(row["metadata"])}, pickle.HIGHEST_PROTOCOL)
            times = begins, until, recorded, retracted
            self._edges[row["_key"]] = _Edge(source, target, row["relationship_type"], strength, *times, held)
            for end in ends:
                self._at.setdefault(end, {})[row["_key"]] = None

    def drop(self, keys: Iterable[str]) -> None:
        """Forget edges."""
        for key in keys:
            edge = self._edges.pop(key, None)
            if edge is not None:
                for end in (edge.source, edge.target):
                    self._at[topic_of_key(end)].pop(key, None)

    def links(self, topic: str, reader: Standing) -> int:
        """How many edges that are true for a reader join a topic, by its key, to others."""
        return sum(1 for _ in self._visible(topic, reader))

    def bonds(self, topic: str, reader: Standing, types: Sequence[str] | None = None) -> list[Bond]:
        """The edges of a topic that are true for a reader, heaviest first, then by key."""
        found = []
        for key, edge in self._visible(topic, reader):
            if types is None or edge.relation in types:
                outbound = topic_of_key(edge.source) == topic
                other = edge.target if outbound else edge.source
                found.append(Bond(other, key, edge.strength, (edge.relation, outbound), edge.begins))
        return sorted(found, key=lambda bond: (-bond.strength, bond.edge))

    def edges(self, keys: Iterable[str]) -> dict[str, MemoryEdge]:
        """The edges of these keys that are held, by key."""
        return {key: MemoryEdge(**pickle.loads(self._edges[key].row)) for key in keys if key in self._edges}

    def _visible(self, topic: str, reader: Standing) -> Iterator[tuple[str, _Edge]]:
        moment, known = reader.moment, reader.known
        for key in self._at.get(topic, ()):
            edge = self._edges[key]
            if edge.begins <= moment < edge.ends and edge.recorded <= known < edge.retracted:
                yield key, edge
