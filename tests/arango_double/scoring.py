"""Scores of search hits: BM25 and TF-IDF over the terms that made a document match."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from tests.arango_double.values import Value, normal, to_number, truthy
from tests.arango_double.views import TermIndex


class Evidence(NamedTuple):
    """A term found in a document, with the boost of the condition that asked for it."""

    terms: TermIndex
    term: str
    frequency: int
    boost: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that SEARCH kept, and why."""

    handle: str
    evidence: tuple[Evidence, ...]

    def score(self, scorer: str, parameters: list[Value]) -> Value:
        if scorer == "BM25":
            k = to_number(parameters[0]) if parameters else 1.2
            b = to_number(parameters[1]) if len(parameters) > 1 else 0.75
            return normal(float(sum(self._bm25(item, k, b) for item in self.evidence)))
        normalise = bool(parameters) and truthy(parameters[0])
        return normal(float(sum(self._tfidf(item, normalise) for item in self.evidence)))

    def _bm25(self, item: Evidence, k: float, b: float) -> float:
        if not item.terms.has("frequency"):
            return 0.0
        length, average = self._lengths(item)
        if not item.terms.has("norm"):
            b = 0.0
        documents, holders = len(item.terms.lengths), len(item.terms.postings.get(item.term, ()))
        rarity = math.log(1 + (documents - holders + 0.5) / (holders + 0.5))
        scale = k * (1 - b + b * length / average) if average else k
        return item.boost * rarity * (k + 1) * item.frequency / (item.frequency + scale)

    def _tfidf(self, item: Evidence, normalise: bool) -> float:
        if not item.terms.has("frequency"):
            return 0.0
        documents, holders = len(item.terms.lengths), len(item.terms.postings.get(item.term, ()))
        score = item.boost * math.sqrt(item.frequency) * (math.log((documents + 1) / (holders + 1)) + 1)
        length, _ = self._lengths(item)
        return score / math.sqrt(length) if normalise and item.terms.has("norm") and length else score

    def _lengths(self, item: Evidence) -> tuple[int, float]:
        known = item.terms
        return known.lengths.get(self.handle, 0), known.total / len(known.lengths) if known.lengths else 0.0
