"""BM25 over rows of terms, in arrays: each posting holds its finished share, so that a question only adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers

Scores = NDArray[np.float64]
K1 = 1.2
B = 0.75


@dataclass(frozen=True, eq=False)
class Postings:
    """Term `t` stands in rows `row[starts[t]:starts[t + 1]]` with BM25 share `share[...]` before its rarity."""

    starts: Numbers
    row: NDArray[np.int32]
    share: NDArray[np.float32]
    rarity: Scores
    rows: int

    def score(self, query: Mapping[int, float]) -> Scores:
        """The BM25 score of each row for weighted terms."""
        scores = np.zeros(self.rows)
        for term, weight in query.items():
            if 0 <= term < len(self.rarity):
                here = slice(int(self.starts[term]), int(self.starts[term + 1]))
                scores[self.row[here]] += self.share[here] * (weight * self.rarity[term])
        return scores

    def rows_of(self, term: int) -> NDArray[np.int32]:
        """The rows that hold a term."""
        if not 0 <= term < len(self.rarity):
            return self.row[:0]
        return self.row[int(self.starts[term]) : int(self.starts[term + 1])]


def build_postings(
    term: NDArray[np.int64], row: NDArray[np.int64], times: NDArray[np.float64], terms: int, rows: int
) -> Postings:
    """Postings of (term, row, times) triples; repeats of a pair are added together."""
    pairs, group = np.unique(term * max(rows, 1) + row, return_inverse=True)
    counts = np.bincount(group, weights=times, minlength=len(pairs))
    term, row = pairs // max(rows, 1), pairs % max(rows, 1)
    lengths = np.bincount(row, weights=counts, minlength=rows)
    mean = lengths.mean() if rows and lengths.any() else 1.0
    share = counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths[row] / mean))
    with_term = np.bincount(term, minlength=terms)
    rarity = np.log1p((rows - with_term + 0.5) / (with_term + 0.5))
    starts = np.concatenate(([0], np.cumsum(with_term)))
    return Postings(starts, row.astype(np.int32), share.astype(np.float32), rarity, rows)


def count_terms(numbers: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Distinct terms and how often each stands in a list."""
    term, times = np.unique(np.asarray(numbers, np.int64), return_counts=True)
    return term, times.astype(np.float64)
