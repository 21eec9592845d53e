"""Pairs of nearly parallel vectors, for `similar_to` edges: found in blocks, measured one by one.

A product of blocks only nominates pairs; each nominated pair is then measured alone in double precision, so the number
does not depend on how the rows were blocked, nor on which rows were nominated by an earlier run (`PairCache`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hades.ingest.entities.pair_cache import Digests, KnownPairs, Longs, Matrix, PairCache, vector_digests
from hades.text.arrays import place_in_run

_BLOCK = 1024
_SLACK = 1e-3  # float32 products may fall this much short of the exact cosine

Fetch = Callable[[Longs], Matrix]
Pairs = tuple[Longs, Longs, NDArray[np.float64]]
_NONE: Longs = np.zeros(0, dtype=np.int64)


def similar_pairs(
    vectors: Matrix, threshold: float = 0.8, max_per_node: int = 32, cache: PairCache | None = None
) -> Pairs:
    """Pairs (i, j, cosine) with i < j and cosine >= threshold, in order; each row keeps its `max_per_node` nearest.

    `vectors` is (n_rows, dim) and need not be of unit length; rows of zeros or of non-finite numbers have no pairs. A
    pair stays when it is among the nearest of both its rows, ties going to the smaller row number. With a cache only
    vectors that it does not know are compared with the others.
    """
    digests = vector_digests(vectors, np.arange(len(vectors)))
    return find_similar_pairs(digests, vectors.__getitem__, threshold, max_per_node, cache)


def find_similar_pairs(
    digests: Digests, fetch: Fetch, threshold: float, max_per_node: int, cache: PairCache | None = None
) -> Pairs:
    """The pairs of rows that are known by digests; equal digests mean equal vectors.

    `fetch` gives the vectors of rows. It is asked for those that the cache does not know and for those of the pairs.
    """
    if max_per_node < 1 or not 0.0 < threshold <= 1.0:
        raise ValueError(f"need 0 < threshold <= 1 and max_per_node >= 1, not {threshold} and {max_per_node}")
    left, right = _nominate(digests, fetch, threshold, cache)
    cosine = _measure(fetch, left, right)
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


def _measure(fetch: Fetch, left: Longs, right: Longs) -> NDArray[np.float64]:
    """The cosine of each pair of rows; only rows that stand in a pair are read and scaled."""
    if not len(left):
        return np.zeros(0, dtype=np.float64)
    rows, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    unit = _scale(fetch(rows))
    cosine: NDArray[np.float64] = np.einsum("ij,ij->i", unit[place[: len(left)]], unit[place[len(left) :]])
    return np.minimum(cosine, 1.0)


def _nominate(digests: Digests, fetch: Fetch, threshold: float, cache: PairCache | None) -> tuple[Longs, Longs]:
    """Pairs left < right of rows whose product in single precision comes near the threshold."""
    distinct, first, of = np.unique(digests, return_index=True, return_inverse=True)
    known = cache.find(distinct, threshold) if cache else KnownPairs.none(len(distinct))
    fresh = np.flatnonzero(~known.is_known)
    units = known.units
    if len(fresh):
        made = fetch(first[fresh])
        is_usable = np.isfinite(made).all(axis=1) & made.any(axis=1)
        fresh, units = (
            fresh[is_usable],
            np.concatenate([*_unit_blocks(made[is_usable]), *([units] if len(units) else ())]),
        )
    order = np.concatenate([fresh, np.flatnonzero(known.is_known)])  # beside `units`
    one, two = _compare(units, len(fresh), threshold)
    left, right = np.concatenate([known.left, order[one]]), np.concatenate([known.right, order[two]])
    if cache:
        cache.keep(distinct, order, units, (left, right), threshold)
    usable = np.zeros(len(distinct), dtype=np.bool_)
    usable[order] = True
    rows = np.flatnonzero(usable[of])
    here, there = _spread(left, right, of[rows], len(distinct))
    return rows[np.minimum(here, there)], rows[np.maximum(here, there)]


def _unit_blocks(vectors: Matrix) -> Iterator[Matrix]:
    """The rows at unit length, some at a time: in double precision all of them would take much room."""
    for begin in range(0, max(1, len(vectors)), _BLOCK):
        yield _scale(vectors[begin : begin + _BLOCK]).astype(np.float32)


def _compare(units: Matrix, n_fresh: int, threshold: float) -> tuple[Longs, Longs]:
    """Pairs of rows near the threshold, each once: of the first `n_fresh` with all after them."""
    lefts, rights = [_NONE], [_NONE]
    for begin in range(0, n_fresh, _BLOCK):
        block = units[begin : min(begin + _BLOCK, n_fresh)]
        for other in range(begin, len(units), _BLOCK):
            one, two = np.nonzero(block @ units[other : other + _BLOCK].T >= threshold - _SLACK)
            is_new = begin + one < other + two
            lefts.append(begin + one[is_new])
            rights.append(other + two[is_new])
    return np.concatenate(lefts), np.concatenate(rights)


def _spread(left: Longs, right: Longs, of: Longs, n_distinct: int) -> tuple[Longs, Longs]:
    """Pairs of distinct vectors as pairs of the rows that have them, and every pair of rows with the same vector."""
    members = np.argsort(of, kind="stable")
    count = np.bincount(of, minlength=n_distinct)
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
