"""All of memory as arrays in this process, states and edges: the index of every search.

The index is built whole by the first question after an act on memory, by whatever process, and
never changed; so a question that holds one sees one state of the store.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.memory.history import rows as records
from hades.memory.history.rows import AUDIT, EDGES, NEWEST, STATES, key_of, topic_key, topic_of_key
from hades.memory.history.states import ancestors, is_erased, make_whole_from
from hades.ports.services import Embedder, Vectors
from hades.ports.store import GraphStore, RowStore
from hades.text.words import Vocabulary
from models.arrays import Flags, Longs, Singles, unit_rows
from models.bm25 import fit_bm25
from schemas.catalogue import declared
from schemas.ids import Mask
from schemas.memory import MemoryEdge, MemoryState

# A convex combination of normalised scores: Bruch, Gai, Ingber (2023), "An Analysis of Fusion
# Functions", section 4.
MEANING = 0.5  # the weight of meaning; words have the rest
NEVER = int(np.iinfo(np.int64).max)
ALWAYS = int(np.iinfo(np.int64).min)
_YEAR_9999 = 253_370_764_800_000_000
_TIMES = {
    "valid_from": NEVER,
    "valid_until": NEVER,
    "timestamp": NEVER,
    "retracted_at": NEVER,
}
_EDGE_TIMES = {
    "valid_from": ALWAYS,
    "valid_until": NEVER,
    "recorded_at": ALWAYS,
    "retracted_at": NEVER,
}
Window = tuple[datetime | None, datetime | None]  # [from, until), an absent side is open


@dataclass(frozen=True)
class MemoryQuery:
    """A question as words and as a vector of a model."""

    text: str
    vector: Vectors | None
    model: str

    @classmethod
    def of(cls, text: str, embedder: Embedder | None) -> MemoryQuery:
        """The question, embedded where there is an embedder."""
        if embedder is None:
            return cls(text, None, "")
        return cls(
            text,
            embedder.embed([text])[0],
            embedder.model.tag,
        )


@dataclass(frozen=True)
class SimilarState:
    """One version and why it is near; `semantic` is None where it has no vector of the question's
    model.
    """

    key: str
    similarity: float
    semantic: float | None
    lexical: float


class Bond(NamedTuple):
    """An edge as seen from one of its topics."""

    state: str  # key of the version at the other end
    edge: str
    strength: float
    kind: tuple[str, bool]  # relation, and whether it leads away
    began: int
    ends: int
    recorded: int
    retracted: int


@dataclass(frozen=True)
class Reader:
    """A view of memory: at present, `now`, unless the mask sets another moment."""

    store: GraphStore
    embedder: Embedder | None
    now: datetime
    mask: Mask = field(default_factory=Mask)

    @cached_property
    def index(self) -> StateIndex:
        """Memory as it is when they first look."""
        return index_of(self.store)

    @property
    def moment(self) -> datetime:
        """The moment that counts as now for them."""
        return self.mask.as_of or self.mask.known_at or self.now

    @property
    def known_at(self) -> datetime:
        """By when something must have been said for them to know it."""
        return self.mask.known_at or NEWEST

    def current(self, topic_keys: Iterable[str]) -> list[MemoryState]:
        """The version of each of these topics that holds for them, by topic key."""
        index = self.index
        topics = [index.topics[key] for key in topic_keys if key in index.topics]
        places = self._current[sorted(topics)]
        return index.states([index.keys[place] for place in places[places >= 0].tolist()])

    def holds(self, topic: str) -> bool:
        """Whether some version of a topic, by its key, holds for them."""
        return bool(self._current[self.index.topics[topic]] >= 0)

    @cached_property
    def _current(self) -> Longs:
        return self.index.current(self)

    def bonds(self, topic: str) -> list[Bond]:
        """The edges that join a topic, by its key, to topics that hold for them, heaviest first,
        then by key.
        """
        moment = to_micros(self.moment)
        known = to_micros(self.known_at)

        bonds = []
        for bond in self.index.bonds.get(topic, ()):
            is_known = bond.recorded <= known < bond.retracted
            is_true = bond.began <= moment < bond.ends
            if is_known and is_true and self.holds(topic_of_key(bond.state)):
                bonds.append(bond)

        return bonds


class StateIndex:
    """States in the order of their keys: the versions of a topic stand side by side."""

    def __init__(self, rows: RowStore) -> None:
        self.revision = rows.count(AUDIT)
        states = pa.Table.from_batches(rows.scan(STATES), declared(STATES).schema)
        self._vectors = _vectors_by_model(states)
        self._states = states.drop_columns(["embedding"])
        self.keys: list[str] = states.column("_key").to_pylist()
        self._place = {key: place for place, key in enumerate(self.keys)}
        topic_keys = [topic_of_key(key) for key in self.keys]
        self.topics = {key: number for number, key in enumerate(dict.fromkeys(topic_keys))}
        self._topic = np.array([self.topics[key] for key in topic_keys], np.int64)

        self._times: dict[str, Longs] = {}
        for name, absent in _TIMES.items():
            self._times[name] = _column_micros(states.column(name), absent)

        self._level = states.column("consolidation_level").to_numpy()
        version = states.column("version").to_numpy()
        self._order = np.lexsort((version, self._times["valid_from"], self._topic))
        self._last_said = np.full(len(self.topics), ALWAYS)
        np.maximum.at(
            self._last_said,
            self._topic,
            self._times["timestamp"],
        )
        self._words = WordScores(_searched_texts(self._states))
        self._edges = pa.Table.from_batches(rows.scan(EDGES), declared(EDGES).schema)
        self.bonds = _group_bonds(self._edges)

    def __len__(self) -> int:
        return len(self.keys)

    def nearest(
        self,
        question: MemoryQuery,
        visible: Flags,
        limit: int,
    ) -> list[SimilarState]:
        """The best `limit` by words and the best by meaning of the states that are seen, nearest
        first, then by key.
        """
        scores = self._words.scores(question.text) * visible
        places = _best_places(
            scores,
            np.flatnonzero(scores > 0),
            limit,
        )
        top = float(scores[places].max()) if len(places) else 1.0
        cosines = np.full(len(self), np.nan, np.float32)

        if question.vector is not None and question.model in self._vectors:
            embedded, vectors = self._vectors[question.model]
            cosines[embedded] = vectors @ question.vector
            places = np.union1d(
                places,
                _best_places(
                    cosines,
                    embedded[visible[embedded]],
                    limit,
                ),
            )

        meaning = cosines[places].astype(np.float64)
        lexical = scores[places].astype(np.float64) / top
        mixed = MEANING * np.maximum(meaning, 0.0) + (1 - MEANING) * lexical
        similarity = np.round(np.where(np.isnan(meaning), lexical, mixed), 9)
        columns = (column.tolist() for column in (places, similarity, meaning, lexical))

        similar = []
        for place, near, cosine, word in zip(*columns, strict=True):
            semantic = None if math.isnan(cosine) else cosine
            similar.append(SimilarState(self.keys[place], near, semantic, word))

        return sorted(
            similar,
            key=lambda state: (-state.similarity, state.key),
        )

    def visible(
        self,
        mask: Mask,
        levels: Sequence[int],
        window: Window,
    ) -> Flags:
        """Which states may lead a reader at the mask to their topic: said and begun by then, not
        retracted since.
        """
        begins, _, recorded, retracted = self._times.values()
        known = mask.known_at
        moment = mask.as_of or mask.known_at
        visible: Flags = np.isin(self._level, list(levels)) & _began_in(begins, window)
        visible &= retracted == NEVER if known is None else recorded <= to_micros(known)

        if moment is None:
            return visible

        return visible & (begins <= to_micros(moment))

    def current(self, reader: Reader) -> Longs:
        """The place of the version of each topic that holds for a reader, -1 for none: the rule of
        `choose_version`.
        """
        begins, ends, recorded, retracted = self._times.values()
        moment = np.full(len(self), to_micros(reader.moment))

        if reader.mask.is_open:
            # Clocks of writers differ: now is never before the topic's last write.
            moment = np.maximum(moment, self._last_said[self._topic])

        known = to_micros(reader.known_at)
        holds = (begins <= moment) & (moment < ends) & (recorded <= known) & (known < retracted)
        places = self._order[holds[self._order]]
        chosen = np.full(len(self.topics), -1)
        chosen[self._topic[places]] = places  # of several, the last of the order stays
        return chosen

    def history(
        self,
        topic: str,
        limit: int,
        known_at: datetime,
        began: Window = (None, None),
    ) -> list[MemoryState]:
        """The last versions of a topic as known at a moment; of these, those that began in the time
        given.

        Versions that ended are among them, retracted ones are not.
        """
        number = self.topics.get(topic_key(topic), -1)
        first, last = np.searchsorted(self._topic, [number, number + 1])
        begins, _, recorded, retracted = (column[first:last] for column in self._times.values())
        known = to_micros(known_at)
        is_known = (begins != NEVER) & (recorded <= known) & (known < retracted)
        places = np.flatnonzero(is_known)[-limit:]
        chosen = places[_began_in(begins[places], began)]
        return self.states([self.keys[first + place] for place in chosen.tolist()])

    def states(self, keys: Iterable[str]) -> list[MemoryState]:
        """The versions of these keys that exist and were not erased, in key order, whole, without
        their vectors.
        """
        states = []
        for state in self._read_states(keys):
            if not is_erased(state):
                states.append(state)

        older = self._read_states(chain.from_iterable(map(ancestors, states)))
        return make_whole_from({state.key: state for state in [*older, *states]}, states)

    def edges(self, keys: Iterable[str]) -> dict[str, MemoryEdge]:
        """The edges of these keys that exist, by key."""
        is_wanted = pc.is_in(
            self._edges.column("_key"),
            value_set=pa.array(sorted(set(keys)), pa.string()),
        )
        edges = records.read(self._edges.filter(is_wanted), MemoryEdge)
        return {edge.key: edge for edge in edges}

    def _read_states(self, keys: Iterable[str]) -> list[MemoryState]:
        places = sorted(self._place[key] for key in set(keys) if key in self._place)
        return records.read(self._states.take(pa.array(places, pa.int64())), MemoryState)


class WordScores:
    """BM25 of texts; empty ones, which erased places have, count for nothing."""

    def __init__(self, texts: Sequence[str]) -> None:
        vocabulary = Vocabulary()
        terms_by_text = [vocabulary.numbers(text) for text in texts]
        self._terms = vocabulary.terms
        terms = np.array(list(chain.from_iterable(terms_by_text)), np.int64)
        rows = np.repeat(np.arange(len(texts)), list(map(len, terms_by_text)))
        counts = np.ones(len(terms))
        filled = sum(map(bool, terms_by_text))
        mean_length = len(terms) / max(1, filled)
        index = fit_bm25(
            terms,
            rows,
            counts,
            len(self._terms),
            len(texts),
            mean_length,
        )
        self._index = replace(
            index,
            rarity=np.log1p(filled / (np.diff(index.starts) + 0.5)),
        )

    def scores(self, text: str) -> Singles:
        """The score of every text for a question."""
        question_words = Vocabulary()
        question_words.numbers(text.replace("_", " "))

        known = {}
        for term in question_words.terms:
            if term in self._terms:
                known[self._terms[term]] = 1.0

        return self._index.score(known).astype(np.float32)


_indexes: WeakKeyDictionary[GraphStore, StateIndex] = WeakKeyDictionary()
_lock = threading.Lock()


def index_of(store: GraphStore) -> StateIndex:
    """The index of a store as it is now: every act on memory leaves a record, so their number says
    what is new.
    """
    with _lock:
        index = _indexes.get(store)
        if index is None or index.revision != store.count(AUDIT):
            with store.reading() as rows:
                index = _indexes[store] = StateIndex(rows)

        return index


def _began_in(begins: Longs, times: Window) -> Flags:
    """Which began in the time given; an erased place has no beginning, so it never does."""
    start, end = times
    first = ALWAYS if start is None else to_micros(start)
    last = NEVER if end is None else to_micros(end)
    return (first <= begins) & (begins < last)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970; a time without an end is the last but one."""
    if moment.year < 9_999:
        return round(moment.timestamp() * 1_000_000)
    return NEVER - 1


def _searched_texts(states: pa.Table) -> list[str]:
    """What words are searched in; nothing of an erased place."""
    texts = []
    for row in states.select(["topic", "content", "valid_from"]).to_pylist():
        is_erased_place = row["valid_from"] is None
        texts.append("" if is_erased_place else text_of(row["topic"], row["content"]))

    return texts


def text_of(topic: str, content: str) -> str:
    """The words by which a version is found."""
    return f"{topic} {content}".replace("_", " ")


def _vectors_by_model(states: pa.Table) -> dict[str, tuple[Longs, Singles]]:
    """Places and unit vectors, (n_places, dimension) float32, by the model that made them."""
    vectors_by_model = {}
    models = states.column("embedding_model")
    vectors = states.column("embedding")

    for model in pc.unique(models).drop_null().to_pylist():
        chosen = pc.and_(pc.equal(models, model), pc.is_valid(vectors))
        places = np.flatnonzero(pc.fill_null(chosen, False).to_numpy())
        if len(places):
            flat = vectors.take(places).combine_chunks().flatten().to_numpy(zero_copy_only=False)
            matrix = flat.astype(np.float32).reshape(len(places), -1)
            vectors_by_model[model] = places, unit_rows(matrix)

    return vectors_by_model


def _group_bonds(edges: pa.Table) -> dict[str, list[Bond]]:
    """Edges by the topics at their ends, heaviest first; those between versions of one topic are
    left out.
    """
    bonds_by_topic: dict[str, list[Bond]] = {}
    names = ("_key", "_from", "_to", "relationship_type", "strength")
    columns = [edges.column(name).to_pylist() for name in names]

    times = []
    for name, absent in _EDGE_TIMES.items():
        times.append(_column_micros(edges.column(name), absent).tolist())

    for key, source, target, relation, strength, *moments in zip(*columns, *times, strict=True):
        if topic_of_key(source) == topic_of_key(target):
            continue

        weight = 1.0 if strength is None else float(strength)
        for near, far, leads_away in ((source, target, True), (target, source, False)):
            bond = Bond(
                key_of(far),
                key,
                weight,
                (relation, leads_away),
                *moments,
            )
            bonds_by_topic.setdefault(topic_of_key(near), []).append(bond)

    for bonds in bonds_by_topic.values():
        bonds.sort(key=lambda bond: (-bond.strength, bond.edge))

    return bonds_by_topic


def _column_micros(times: pa.ChunkedArray, absent: int) -> Longs:
    """Microseconds since 1970, as `to_micros` gives them."""
    micros = times.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    values = pc.fill_null(micros, absent).to_numpy()
    return np.where(
        (values >= _YEAR_9999) & (values != NEVER),
        NEVER - 1,
        values,
    )


def _best_places(
    scores: Singles,
    places: Longs,
    limit: int,
) -> Longs:
    """Of these places the `limit` with the highest scores, in order of place."""
    if len(places) <= limit:
        return places

    order = np.argpartition(scores[places], len(places) - limit)
    return np.sort(places[order[len(places) - limit :]])
