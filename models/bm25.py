"""BM25 over rows of terms (Robertson and Zaragoza 2009): a posting holds its finished share, a
question only adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints, Longs, Singles

Scores = Floats
K1 = 1.2
B = 0.75


@dataclass(frozen=True, eq=False)
class Bm25:
    """Term `t` stands in rows `row[starts[t]:starts[t + 1]]` with the share `share[...]`, before
    its rarity.
    """

    starts: Longs
    row: Ints
    share: Singles
    rarity: Scores
    rows: int

    def score(self, query: Mapping[int, float]) -> Scores:
        """The score of each row for weighted terms; terms that are not known count nothing."""
        scores = np.zeros(self.rows)
        for term, weight in query.items():
            if 0 <= term < len(self.rarity):
                postings = slice(int(self.starts[term]), int(self.starts[term + 1]))
                scores[self.row[postings]] += self.share[postings] * (weight * self.rarity[term])

        return scores


def fit_bm25(
    term: NDArray[np.integer],
    row: NDArray[np.integer],
    times: NDArray[np.floating],
    terms: int,
    rows: int,
    mean_length: float | None = None,
) -> Bm25:
    """The index of (term, row, times) triples; repeats of a pair are added together.

    `mean_length` is given where the rows are a part of a larger collection.
    """
    from scipy import sparse  # a tenth of a second to load, and only fitting needs it

    counts = sparse.coo_array(
        (times, (row, term)),
        shape=(max(rows, 1), max(terms, 1)),
    ).tocsc()
    counts.sort_indices()
    lengths = np.asarray(counts.sum(axis=1), np.float64)[:rows]
    mean = mean_length or (lengths.mean() if lengths.any() else 1.0)
    share = (
        counts.data * (K1 + 1) / (counts.data + K1 * (1 - B + B * lengths[counts.indices] / mean))
    )
    starts = counts.indptr[: terms + 1].astype(np.int64)
    with_term = np.diff(starts)
    return Bm25(
        starts,
        counts.indices.astype(np.int32),
        share.astype(np.float32),
        rarity(with_term, rows),
        rows,
    )


def rarity(with_term: NDArray[Any], rows: int) -> Scores:
    """What a term counts that stands in `with_term` of the rows."""
    rare: Scores = np.log1p((rows - with_term + 0.5) / (with_term + 0.5))
    return rare
