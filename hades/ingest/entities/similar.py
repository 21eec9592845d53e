"""Pairs of nearly parallel vectors, for `similar_to` edges: found in blocks, measured one by one.

A product of blocks only nominates pairs; each nominated pair is then measured alone in double precision, so the number
does not depend on how the rows were blocked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hades.text.arrays import place_in_run

_BLOCK = 1024
_SLACK = 1e-3  # float32 products may fall this much short of the exact cosine

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def similar_pairs(vectors: NDArray[np.float32], threshold: float = 0.8, max_per_node: int = 32) -> Pairs:
    """Pairs (i, j, cosine) with i < j and cosine >= threshold, in order; each row keeps its `max_per_node` nearest.

    `vectors` is (n_rows, dim) and need not be of unit length; rows of zeros or of non-finite numbers have no pairs. A
    pair stays when it is among the nearest of both its rows, ties going to the smaller row number.
    """
    if max_per_node < 1 or not 0.0 < threshold <= 1.0:
        raise ValueError(f"need 0 < threshold <= 1 and max_per_node >= 1, not {threshold} and {max_per_node}")
    exact = np.asarray(vectors, dtype=np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", exact, exact))
    usable = np.isfinite(norms) & (norms > 0)
    unit = np.zeros_like(exact)
    unit[usable] = exact[usable] / norms[usable, None]
    left, right = _nominate(unit.astype(np.float32), usable, threshold)
    cosine = np.minimum(np.einsum("ij,ij->i", unit[left], unit[right]), 1.0)
    near = cosine >= threshold
    left, right, cosine = left[near], right[near], cosine[near]
    keep = _nearest(left, right, cosine, max_per_node)
    left, right, cosine = left[keep], right[keep], cosine[keep]
    order = np.lexsort((right, left))
    return left[order], right[order], cosine[order]


def _nominate(
    unit: NDArray[np.float32], usable: NDArray[np.bool_], threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs left < right whose product in single precision comes near the threshold."""
    rows = np.flatnonzero(usable)
    lefts, rights = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for begin in range(0, len(rows), _BLOCK):
        block = rows[begin : begin + _BLOCK]
        for other in range(begin, len(rows), _BLOCK):
            against = rows[other : other + _BLOCK]
            one, two = np.nonzero(unit[block] @ unit[against].T >= threshold - _SLACK)
            ahead = block[one] < against[two]
            lefts.append(block[one][ahead])
            rights.append(against[two][ahead])
    return np.concatenate(lefts), np.concatenate(rights)


def _nearest(
    left: NDArray[np.int64], right: NDArray[np.int64], cosine: NDArray[np.float64], most: int
) -> NDArray[np.bool_]:
    """Whether each pair is among the `most` nearest of both its rows."""
    row, partner = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.lexsort((partner, -np.concatenate([cosine, cosine]), row))
    rank = np.empty(len(row), dtype=np.int64)
    rank[order] = place_in_run(row[order])
    near = rank < most
    return near[: len(left)] & near[len(left) :]
