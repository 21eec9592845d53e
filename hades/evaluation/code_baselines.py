"""What code search is measured against: BM25 over files and over functions, vectors of functions, their fusion."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hades.evaluation.code_metrics import CodeRanking
from hades.ports.text import Embedder
from hades.retrieval.code.index import CodeIndex, CodeUnit
from hades.retrieval.code.postings import Scores, build_postings
from hades.text.analyzer import Vocabulary, terms

DEPTH = 50
_RANK_OFFSET = 60
_EMBEDDED_CHARACTERS = 1_000  # about what the embedder reads of code


class CodeBaselines:
    """The plain searches, which read words as text has them: no parts of identifiers, no paths, no history."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._vocabulary = Vocabulary()
        self._counts: dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def rank(self, index: CodeIndex, question: str) -> tuple[dict[str, CodeRanking], int]:
        """Every baseline for a question, and how many texts were embedded for it."""
        rankings, embedded = {}, 0
        began = time.perf_counter()
        by_file = self._score_words(index, question, index.unit_file, len(index.files))
        rankings["bm25_files"] = self._ranking(index, by_file, np.zeros(len(index.units)), began)
        began = time.perf_counter()
        words = self._score_words(index, question, np.arange(len(index.units)), len(index.units))
        rankings["bm25_functions"] = self._ranking(index, _best_of_file(index, words), words, began)
        if self._embedder is not None:
            began = time.perf_counter()
            cosines, embedded = self._cosines(index.units, question)
            rankings["dense"] = self._ranking(index, _best_of_file(index, cosines), cosines, began)
            fused = fuse(words, cosines)
            files = fuse(by_file, _best_of_file(index, cosines))
            rankings["fusion"] = self._ranking(index, files, fused, began)
        return rankings, embedded

    def _score_words(self, index: CodeIndex, question: str, rows: NDArray[np.int64], count: int) -> Scores:
        found = [self._count(unit) for unit in index.units]
        term = np.concatenate([one[0] for one in found])
        times = np.concatenate([one[1] for one in found])
        row = np.repeat(rows, [len(one[0]) for one in found])
        numbers = [self._vocabulary.terms[word] for word in terms(question) if word in self._vocabulary.terms]
        postings = build_postings(term, row, times, len(self._vocabulary.terms), count)
        return postings.score(dict.fromkeys(numbers, 1.0))

    def _count(self, unit: CodeUnit) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        found = self._counts.get(unit.text)
        if found is None:
            term, times = np.unique(np.array(self._vocabulary.numbers(unit.text), np.int64), return_counts=True)
            found = self._counts[unit.text] = (term, times.astype(np.float64))
        return found

    def _cosines(self, units: Sequence[CodeUnit], question: str) -> tuple[Scores, int]:
        assert self._embedder is not None
        texts = [f"{unit.symbol}\n{unit.text}"[:_EMBEDDED_CHARACTERS] for unit in units]
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        for text, vector in zip(missing, self._embedder.embed(missing), strict=True):
            self._vectors[text] = np.asarray(vector, np.float32)
        asked = np.asarray(next(iter(self._embedder.embed([question]))), np.float32)
        return np.stack([self._vectors[text] for text in texts]).astype(np.float64) @ asked, len(missing)

    def _ranking(self, index: CodeIndex, files: Scores, units: Scores, began: float) -> CodeRanking:
        taken = (time.perf_counter() - began) * 1000
        order = np.argsort(-files, kind="stable")[:DEPTH].tolist()
        symbols: dict[str, None] = {}
        for row in np.argsort(-units, kind="stable").tolist() if units.any() else ():
            if index.units[row].symbol:
                symbols.setdefault(f"{index.units[row].path}:{index.units[row].symbol}")
            if len(symbols) == DEPTH:
                break
        return CodeRanking(tuple(index.files[row] for row in order), tuple(symbols), taken)


def _best_of_file(index: CodeIndex, units: Scores) -> Scores:
    best = np.full(len(index.files), -np.inf)
    np.maximum.at(best, index.unit_file, units)
    return best


def fuse(first: Scores, second: Scores) -> Scores:
    """Reciprocal rank fusion (Cormack et al. 2009)."""
    total = np.zeros(len(first))
    for scores in (first, second):
        place = np.empty(len(scores))
        place[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        total += 1.0 / (_RANK_OFFSET + place)
    return total
