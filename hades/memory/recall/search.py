"""Searching memory: what is near to a question, each topic once, as it is now or as it was then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hades.memory.history.names import MemoryRefused, aware, checked_text, topic_of_key
from hades.memory.history.reader import Reader
from hades.memory.recall.similarity import Asked, Near, nearest
from hades.memory.recall.strength import BY_SIMILARITY, StrengthRules, rank, strength
from hades.ports.store import Predicate, Term
from schemas.memory import MemoryState

CANDIDATES = 100
Window = tuple[datetime | None, datetime | None]  # [from, until), an absent side is open


@dataclass(frozen=True)
class Found:
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
    rules: StrengthRules = BY_SIMILARITY,
    levels: Sequence[int] = (0,),
) -> list[Found]:
    """Topics by the similarity of their nearest version, shown as they are now; nothing is hidden for being weak.

    `limit` versions are taken by meaning and as many by words. The window asks when the nearest version began to hold.
    Which version of a topic holds is looked up, never guessed from the candidates. Equal ranks are ordered by strength,
    then by topic. `levels` 1 to 3 search summaries.
    """
    if not query.strip():
        raise MemoryRefused("the question is empty; say what to look for")
    checked_text("the question", query)
    return search_asked(reader, Asked.of(query, reader.embedder), time_window, limit=limit, rules=rules, levels=levels)


def search_asked(
    reader: Reader,
    asked: Asked,
    time_window: Window | None = None,
    *,
    limit: int = CANDIDATES,
    rules: StrengthRules = BY_SIMILARITY,
    levels: Sequence[int] = (0,),
) -> list[Found]:
    """The same for a question whose vector is known."""
    where = (*_in_window(time_window), *_seen(reader), Term("consolidation_level", "in", list(levels)))
    best: dict[str, Near] = {}
    for near in nearest(reader.rows, asked, limit=limit, where=where):
        best.setdefault(topic_of_key(near.key), near)
    found = []
    for state in reader.current(best):
        near = best[topic_of_key(state.key)]
        power = strength(state, reader.moment, rules=rules)
        found.append(Found(state, near.similarity, power, near.key, near.semantic, near.lexical))
    return sorted(found, key=lambda one: (-rank(one.similarity, one.strength, rules), -one.strength, one.state.topic))


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


def _seen(reader: Reader) -> Predicate:
    """Versions that may lead a reader to a topic: said and begun by then, not retracted since."""
    as_of, known_at = reader.mask.as_of, reader.mask.known_at
    if known_at is None:
        return [Term("retracted_at", "is_null"), *([Term("valid_from", "<=", as_of)] if as_of is not None else [])]
    return [Term("timestamp", "<=", known_at), Term("valid_from", "<=", as_of or known_at)]
