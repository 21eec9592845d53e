"""Pairs of nearly parallel vectors, for `similar_to` edges: found in blocks, measured one by one.

A product of blocks only nominates pairs; each nominated pair is then measured alone in double precision, so the number
does not depend on how the rows were blocked, nor on which rows were nominated by an earlier run (`PairCache`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hades.ingest.entities.pair_cache import Longs, PairCache, vector_digests
from hades.text.arrays import place_in_run

_BLOCK = 1024
_SLACK = 1e-3  # float32 products may fall this much short of the exact cosine

Pairs = tuple[Longs, Longs, NDArray[np.float64]]
_NONE: Longs = np.zeros(0, dtype=np.int64)


def similar_pairs(
    vectors: NDArray[np.float32], threshold: float = 0.8, max_per_node: int = 32, cache: PairCache | None = None
) -> Pairs:
    """Pairs (i, j, cosine) with i < j and cosine >= threshold, in order; each row keeps its `max_per_node` nearest.

    `vectors` is (n_rows, dim) and need not be of unit length; rows of zeros or of non-finite numbers have no pairs. A
    pair stays when it is among the nearest of both its rows, ties going to the smaller row number. With a cache only
    vectors that it does not know are compared with the others.
    """
    if max_per_node < 1 or not 0.0 < threshold <= 1.0:
        raise ValueError(f"need 0 < threshold <= 1 and max_per_node >= 1, not {threshold} and {max_per_node}")
    usable = np.flatnonzero(np.isfinite(vectors).all(axis=1) & vectors.any(axis=1))
    left, right = _nominate(vectors, vector_digests(vectors, usable), usable, threshold, cache)
    cosine = _measure(vectors, left, right)
    near = cosine >= threshold
    left, right, cosine = left[near], right[near], cosine[near]
    keep = _nearest(left, right, cosine, max_per_node)
    left, right, cosine = left[keep], right[keep], cosine[keep]
    order = np.lexsort((right, left))
    return left[order], right[order], cosine[order]


def _scale(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """The rows, finite and none of zeros, at unit length."""
    exact = vectors.astype(np.float64)
    scaled: NDArray[np.float64] = exact / np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
    return scaled


def _measure(vectors: NDArray[np.float32], left: Longs, right: Longs) -> NDArray[np.float64]:
    """The cosine of each pair of rows; only rows that stand in a pair are scaled."""
    rows, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    unit = _scale(vectors[rows])
    cosine: NDArray[np.float64] = np.einsum("ij,ij->i", unit[place[: len(left)]], unit[place[len(left) :]])
    return np.minimum(cosine, 1.0)


def _nominate(
    vectors: NDArray[np.float32],
    digests: NDArray[np.bytes_],
    usable: Longs,
    threshold: float,
    cache: PairCache | None,
) -> tuple[Longs, Longs]:
    """Pairs left < right of usable rows whose product in single precision comes near the threshold."""
    distinct, first, of = np.unique(digests, return_index=True, return_inverse=True)
    known, left, right = cache.find(distinct, threshold) if cache else (np.zeros(len(distinct), bool), _NONE, _NONE)
    fresh = np.flatnonzero(~known)
    made = _compare(vectors, usable[first], np.concatenate([fresh, np.flatnonzero(known)]), len(fresh), threshold)
    left, right = np.concatenate([left, made[0]]), np.concatenate([right, made[1]])
    if cache:
        cache.keep(distinct, left, right, threshold)
    one, two = _spread(left, right, of)
    return usable[np.minimum(one, two)], usable[np.maximum(one, two)]


def _compare(
    vectors: NDArray[np.float32], rows: Longs, order: Longs, n_fresh: int, threshold: float
) -> tuple[Longs, Longs]:
    """Pairs of distinct vectors near the threshold, each once: of the first `n_fresh` of `order` with all after it."""
    if not n_fresh:
        return _NONE, _NONE
    lefts, rights = [_NONE], [_NONE]
    blocks = (rows[begin : begin + _BLOCK] for begin in range(0, len(rows), _BLOCK))
    unit = np.concatenate([_scale(vectors[block]).astype(np.float32) for block in blocks])
    for begin in range(0, n_fresh, _BLOCK):
        block = order[begin : min(begin + _BLOCK, n_fresh)]
        for other in range(begin, len(order), _BLOCK):
            against = order[other : other + _BLOCK]
            one, two = np.nonzero(unit[block] @ unit[against].T >= threshold - _SLACK)
            is_new = begin + one < other + two
            lefts.append(block[one[is_new]])
            rights.append(against[two[is_new]])
    return np.concatenate(lefts), np.concatenate(rights)


def _spread(left: Longs, right: Longs, of: Longs) -> tuple[Longs, Longs]:
    """Pairs of distinct vectors as pairs of the rows that have them, and every pair of rows with the same vector."""
    members = np.argsort(of, kind="stable")
    count = np.bincount(of)
    begin = np.cumsum(count) - count
    twins = np.flatnonzero(count > 1)
    left, right = np.concatenate([left, twins]), np.concatenate([right, twins])
    times = count[left] * count[right]
    pair = np.repeat(np.arange(len(left)), times)
    place = place_in_run(pair)
    one = members[begin[left[pair]] + place // count[right[pair]]]
    two = members[begin[right[pair]] + place % count[right[pair]]]
    keep = (left[pair] != right[pair]) | (one < two)
    return one[keep], two[keep]


def _nearest(left: Longs, right: Longs, cosine: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """Whether each pair is among the `most` nearest of both its rows."""
    row, partner = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.lexsort((partner, -np.concatenate([cosine, cosine]), row))
    rank = np.empty(len(row), dtype=np.int64)
    rank[order] = place_in_run(row[order])
    near = rank < most
    return near[: len(left)] & near[len(left) :]
