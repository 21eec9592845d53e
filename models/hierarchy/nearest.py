"""Who is near to a few points in meaning, by plain arrays."""

from __future__ import annotations

import numpy as np

from models.hierarchy.arrays import Vectors
from models.hierarchy.links import Links, join_links

BLOCK_BYTES = 64 * 1024 * 1024  # of cosines held at a time
DECIMALS = 5  # cosines beyond this are rounding of the arithmetic, which differs between machines


def nearest_links(vectors: Vectors, rows: np.ndarray, among: np.ndarray, k: int) -> Links:
    """The graph over all points in which each of some rows is joined to its k nearest among others, by cosine."""
    n = len(vectors)
    k = min(k, len(among) - 1)
    if k < 1 or not len(rows):
        nothing = np.zeros(0, np.int64)
        return join_links(nothing, nothing, np.zeros(0, np.float32), n)
    tails, heads, weights = [], [], []
    block_rows = max(1, BLOCK_BYTES // (4 * len(among)))
    for start in range(0, len(rows), block_rows):
        part = rows[start : start + block_rows]
        cosine = vectors[part] @ vectors[among].T
        cosine[part[:, None] == among] = -2.0
        found = np.argpartition(cosine, len(among) - k, axis=1)[:, len(among) - k :]
        tails.append(np.repeat(part, k))
        heads.append(among[found].ravel())
        weights.append(np.round(np.take_along_axis(cosine, found, axis=1).ravel(), DECIMALS))
    return join_links(np.concatenate(tails), np.concatenate(heads), np.concatenate(weights), n)
