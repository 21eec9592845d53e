"""Searching memory: what is near to a question, each topic once, as it is now or as it was then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heappop, heappush
from typing import Any

from hades.memory.history.names import MemoryRefused, aware, check_text, topic_of_key
from hades.memory.history.reader import Reader
from hades.memory.recall.index_holder import index_of
from hades.memory.recall.similarity import MemoryQuery, SimilarState, nearest
from hades.memory.recall.standing import Standing
from hades.memory.recall.state_index import IndexHit, StateIndex
from hades.memory.recall.strength import FOR_SEARCH, StrengthRules, rank, strength, strength_of
from hades.memory.recall.walk import count_links
from hades.ports.store import Predicate, Term
from schemas.memory import MemoryState

CANDIDATES = 100
Window = tuple[datetime | None, datetime | None]  # [from, until), an absent side is open


@dataclass(frozen=True)
class MemoryMatch:
    """A topic that a question is about: the version that holds, and the one that led there."""

    state: MemoryState
    similarity: float
    strength: float
    matched: str  # id of the version that is nearest to the question
    semantic: float | None
    lexical: float

    def as_dict(self) -> dict[str, Any]:
        """The find as JSON, without vectors."""
        return {
            "state": plain_state(self.state),
            "similarity": round(self.similarity, 6),
            "strength": round(self.strength, 6),
            "matched": self.matched,
        }


def search_memories(
    reader: Reader,
    query: str,
    time_window: Window | None = None,
    *,
    limit: int = CANDIDATES,
    rules: StrengthRules = FOR_SEARCH,
    levels: Sequence[int] = (0,),
    most: int | None = None,
) -> list[MemoryMatch]:
    """Topics by the similarity of their nearest version, shown as they are now; nothing is hidden for being weak.

    `limit` versions are taken by meaning and as many by words. The window asks when the nearest version began to hold.
    Which version of a topic holds is looked up, never guessed from the candidates. Equal ranks are ordered by strength,
    then by topic. `levels` 1 to 3 search summaries.
    """
    asked = embed_question(reader, query)
    return search_asked(reader, asked, time_window, limit=limit, rules=rules, levels=levels, most=most)


def embed_question(reader: Reader, query: str) -> MemoryQuery:
    """The question with its vector; an empty one is refused."""
    if not query.strip():
        raise MemoryRefused("the question is empty; say what to look for")
    check_text("the question", query)
    return MemoryQuery.of(query, reader.embedder)


def search_asked(
    reader: Reader,
    asked: MemoryQuery,
    time_window: Window | None = None,
    *,
    limit: int = CANDIDATES,
    rules: StrengthRules = FOR_SEARCH,
    levels: Sequence[int] = (0,),
    most: int | None = None,
) -> list[MemoryMatch]:
    """The same for a question whose vector is known; at most `most` topics are read."""
    with index_of(reader.rows, asked.model) as index:
        if index is not None:
            ranked = _rank_in_index(index, reader, asked, time_window, limit, rules, levels, most)
            return _read(index, ranked)
    where = (*_in_window(time_window), *_visible(reader), Term("consolidation_level", "in", list(levels)))
    best: dict[str, SimilarState] = {}
    for near in nearest(reader.rows, asked, limit=limit, where=where):
        best.setdefault(topic_of_key(near.key), near)
    found = []
    links = count_links(reader, list(best))
    for state in reader.current(best):
        topic = topic_of_key(state.key)
        near = best[topic]
        power = strength(state, reader.moment, links=links.get(topic, 0), rules=rules)
        found.append(MemoryMatch(state, near.similarity, power, near.key, near.semantic, near.lexical))
    return sorted(found, key=lambda one: (-rank(one.similarity, one.strength, rules), -one.strength, one.state.topic))[
        :most
    ]


@dataclass(frozen=True)
class _Ranked:
    """A topic in the index: the version that holds, the one that matched, and what ranks it."""

    key: str
    topic: str
    hit: IndexHit
    matched: str
    strength: float
    rank: float


def _rank_in_index(
    index: StateIndex,
    reader: Reader,
    asked: MemoryQuery,
    window: Window | None,
    limit: int,
    rules: StrengthRules,
    levels: Sequence[int],
    most: int | None,
) -> list[_Ranked]:
    """The best topics by rank, without reading a row. A rank is never above its similarity, so the rest is skipped."""
    _in_window(window)  # a window that ends before it begins is refused
    standing = Standing.of(reader.mask, reader.now)
    seen = index.seen(reader.mask, levels, window or (None, None))
    ranked: dict[str, _Ranked] = {}
    ranks: list[float] = []  # a heap of the best `most`
    for hit in index.nearest(asked, seen, limit):
        matched = index.keys[hit.place]
        topic = topic_of_key(matched)
        if topic in ranked:
            continue
        if most is not None and len(ranks) >= most and hit.similarity < ranks[0]:
            break
        place = index.current(topic, standing)
        if place is not None:
            links = index.edges.links(topic, standing)
            power = strength_of(*index.strength_facts(place), reader.moment, links=links, rules=rules)
            value = rank(hit.similarity, power, rules)
            ranked[topic] = _Ranked(index.keys[place], index.topics[place], hit, matched, power, value)
            heappush(ranks, value)
            if most is not None and len(ranks) > most:
                heappop(ranks)
    return sorted(ranked.values(), key=lambda one: (-one.rank, -one.strength, one.topic))[:most]


def _read(index: StateIndex, ranked: Sequence[_Ranked]) -> list[MemoryMatch]:
    held = {state.key: state for state in index.states([one.key for one in ranked])}
    return [
        MemoryMatch(held[one.key], one.hit.similarity, one.strength, one.matched, one.hit.semantic, one.hit.lexical)
        for one in ranked
        if one.key in held
    ]


def plain_state(state: MemoryState) -> dict[str, Any]:
    """A version as JSON, without its vector and how it is stored."""
    return {
        "id": state.id,
        **state.model_dump(mode="json", exclude={"key", "embedding", "diff_from_parent", "is_delta"}),
    }


def _in_window(window: Window | None) -> Predicate:
    if window is None:
        return ()
    start, end = window
    if start is not None and end is not None and aware("until", end) <= aware("from", start):
        raise MemoryRefused(f"the window ends at {end}, which is not after {start}; swap the two")
    terms = [Term("valid_from", ">=", aware("from", start))] if start is not None else []
    return [*terms, Term("valid_from", "<", aware("until", end))] if end is not None else terms


def _visible(reader: Reader) -> Predicate:
    """Versions that may lead a reader to a topic: said and begun by then, not retracted since."""
    as_of, known_at = reader.mask.as_of, reader.mask.known_at
    if known_at is None:
        return [Term("retracted_at", "is_null"), *([Term("valid_from", "<=", as_of)] if as_of is not None else [])]
    return [Term("timestamp", "<=", known_at), Term("valid_from", "<=", as_of or known_at)]
