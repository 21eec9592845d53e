"""What makes a node or an edge matter to a question, told from memory alone: nothing here reads a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import ALWAYS, Hits, Kind, Numbers
from hades.retrieval.turn.types import Question
from schemas.graph_types import CodeEdgeType, RelationType
from schemas.intervals import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.turn.metered_view import MeteredView

Floats = NDArray[np.float64]

# The enumeration lives with the store port, which loads pyarrow; a question must not.
OUT: Final = cast("Direction", "outbound")
IN: Final = cast("Direction", "inbound")
ANY: Final = cast("Direction", "any")

PATH_TYPES: tuple[str, ...] = (*(str(one) for one in RelationType), *(str(one) for one in CodeEdgeType))
MENTIONS = "mentions"
DESCRIBES = str(CodeEdgeType.DESCRIBES)  # from a passage of code to the function or class that it holds
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEXICAL_HITS = 256  # names that share a word with the question; further ones match too little to matter


def gains(type_names: Iterable[str], boosts: Mapping[str, float] | None = None) -> Floats:
    """The factor on the weight of each edge type, by code; 0 for a type that paths do not use.

    Without boosts every type of `PATH_TYPES` counts fully; a type that the boosts do not name counts as the least of
    them, so that a type nobody thought about never outranks one that somebody did.
    """
    factors = dict.fromkeys(PATH_TYPES, 1.0 if not boosts else min(boosts.values()))
    factors |= {str(name): boost for name, boost in (boosts or {}).items()}
    return np.array([factors.get(name, 0.0) for name in type_names], np.float64)


def moments(mask: Mask) -> tuple[int, int]:
    """Where a reader stands, in microseconds since 1970 as the adjacency counts them; `ALWAYS` for an open axis."""

    def counted(moment: datetime | None) -> int:
        return int(ALWAYS) if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)

    return counted(mask.as_of), counted(mask.known_at)


def distinct(numbers: Numbers) -> Numbers:
    """Sorted and each once, as `np.unique` gives them, several times faster for thousands of integers."""
    ordered = np.sort(numbers)
    kept = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=kept[1:])
    return ordered[kept]


class Relevance:
    """How well nodes match one question, in [0, 1]: the better of shared words (BM25) and cosine.

    Both come from the read index, so that candidates can be compared without being read.
    """

    def __init__(self, view: MeteredView, question: Question) -> None:
        self._view, self._question = view, question
        self._words: tuple[Numbers, Floats] | None = None
        self._vector = question.vector

    def of(self, numbers: Numbers) -> Floats:
        """The match of each node."""
        return np.maximum(self._share_words(numbers), self.cosine(numbers))

    def cosine(self, numbers: Numbers) -> Floats:
        """Cosine with the question; 0 where it is negative or a vector is missing."""
        if self._vector is None or not len(numbers):
            return np.zeros(len(numbers), np.float64)
        cosines = self._view.cosines(self._vector, numbers, model=self._question.model)
        return np.clip(cosines, 0.0, 1.0).astype(np.float64)

    def _share_words(self, numbers: Numbers) -> Floats:
        if self._words is None:
            self._words = self._search()
        known, scores = self._words
        if not len(known):
            return np.zeros(len(numbers), np.float64)
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.where(known[places] == numbers, scores[places], 0.0)

    def _search(self) -> tuple[Numbers, Floats]:
        """Entities and functions that share a word with the question, by number, scored against the best of them."""
        found: list[Hits] = [
            self._view.lexical(self._question.text, kind=kind, limit=LEXICAL_HITS)
            for kind in (Kind.ENTITY, Kind.FUNC)
            if self._view.info.nodes.get(kind, 0)
        ]
        numbers = np.concatenate([np.empty(0, np.int64), *(hits.numbers for hits in found)])
        scaled = [hits.scores / max(float(hits.scores.max()), 1e-9) for hits in found if len(hits)]
        scores = np.concatenate([np.empty(0), *scaled])
        order = np.argsort(numbers, kind="stable")
        return numbers[order], scores[order].astype(np.float64)
