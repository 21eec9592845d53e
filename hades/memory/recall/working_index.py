"""An index over a few hundred versions in memory: words, vectors and strengths as arrays, built when it is needed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.memory.recall.similarity import MEANING, MemoryQuery
from hades.memory.recall.strength import StrengthRules
from hades.ports.text import Vectors
from hades.text.keywords import words_of
from schemas.memory import MemoryState


@dataclass(frozen=True)
class IndexMatch:
    """A version's place among `Index.keys`, and why it is near."""

    place: int
    similarity: float
    semantic: float | None
    lexical: float


class Index:
    """Versions in the order of their keys."""

    def __init__(self, held: Iterable[tuple[MemoryState, float, Vectors | None]]) -> None:
        ordered = sorted(held, key=lambda one: one[0].key)
        self.states = [state for state, _, _ in ordered]
        self.strengths = np.array([strength for _, strength, _ in ordered], np.float64)
        with_vector = [place for place, (_, _, vector) in enumerate(ordered) if vector is not None]
        self._embedded = np.array(with_vector, np.int64)
        self._matrix = np.array([ordered[place][2] for place in with_vector], np.float32)
        self._holding: dict[str, list[int]] = {}
        for place, state in enumerate(self.states):
            for word in words_of(f"{state.topic} {state.content}".replace("_", " ")):
                self._holding.setdefault(word, []).append(place)

    def nearest(self, asked: MemoryQuery, limit: int, rules: StrengthRules) -> list[IndexMatch]:
        """The versions that share a word or some meaning with a question, best rank first, then by key."""
        lexical = self._lexical(asked.text)
        similarity = lexical.copy()
        semantic = np.full(len(self.states), np.nan)
        if asked.vector is not None and len(self._embedded):
            cosines = (self._matrix @ asked.vector).astype(np.float64)
            semantic[self._embedded] = cosines
            meant = MEANING * np.maximum(cosines, 0.0)
            similarity[self._embedded] = meant + (1 - MEANING) * lexical[self._embedded]
        ranks = similarity * (1 - rules.priority * (1 - self.strengths))
        best = np.argsort(-ranks, kind="stable")[:limit]
        return [
            IndexMatch(
                int(place),
                float(similarity[place]),
                None if math.isnan(semantic[place]) else float(semantic[place]),
                float(lexical[place]),
            )
            for place in best
            if similarity[place] > 0
        ]

    def _lexical(self, text: str) -> NDArray[np.float64]:
        """The share of the question's words that each version holds, rare words counting for more."""
        shares = np.zeros(len(self.states))
        whole = 0.0
        for word in sorted(words_of(text)):
            places = self._holding.get(word, [])
            weight = math.log1p(len(self.states) / (1 + len(places)))
            whole += weight
            shares[places] += weight
        return shares / whole if whole > 0 else shares
