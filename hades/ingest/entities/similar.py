"""Pairs of nearly parallel vectors, for `similar_to` edges: found in blocks, measured one by one.

A product of blocks only nominates pairs; each nominated pair is then measured alone in double precision, so the number
does not depend on how the rows were blocked, nor on which pairs were measured by an earlier run (`PairCache`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hades.ingest.entities.pair_cache import Digests, Doubles, KnownPairs, Longs, Matrix, PairCache, vector_digests
from hades.text.arrays import place_in_run

_BLOCK = 1024
_SLACK = 1e-3  # float32 products may fall this much short of the exact cosine

Fetch = Callable[[Longs], Matrix]
Pairs = tuple[Longs, Longs, Doubles]
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

    `fetch` gives the vectors of rows. It is asked for those that the cache does not know and for those of new pairs.
    """
    if max_per_node < 1 or not 0.0 < threshold <= 1.0:
        raise ValueError(f"need 0 < threshold <= 1 and max_per_node >= 1, not {threshold} and {max_per_node}")
    left, right, cosine = _nominate(digests, fetch, threshold, cache)
    near = cosine >= threshold
    left, right, cosine = left[near], right[near], cosine[near]
    keep = _nearest(left, right, cosine, max_per_node)
    left, right, cosine = left[keep], right[keep], cosine[keep]
    order = np.lexsort((right, left))
    return left[order], right[order], cosine[order]


def _nominate(digests: Digests, fetch: Fetch, threshold: float, cache: PairCache | None) -> Pairs:
    """Pairs left < right of rows whose product in single precision comes near the threshold, with their cosines."""
    distinct, first, of = np.unique(digests, return_index=True, return_inverse=True)
    known = cache.find(distinct, threshold) if cache else KnownPairs.none(len(distinct))
    fresh = np.flatnonzero(~known.is_known)
    units, own = known.units, known.own
    if len(fresh):
        made = fetch(first[fresh])
        is_usable = np.isfinite(made).all(axis=1) & made.any(axis=1)
        fresh = fresh[is_usable]
        new_units, new_own = _make_units(made[is_usable])
        units = np.concatenate([new_units, units]) if len(units) else new_units
        own = np.concatenate([new_own, own])
    order = np.concatenate([fresh, np.flatnonzero(known.is_known)])  # beside `units` and `own`
    one, two = _compare(units, len(fresh), threshold)
    pairs = KnownPairs(
        known.is_known,
        np.concatenate([known.left, order[one]]),
        np.concatenate([known.right, order[two]]),
        np.concatenate([known.cosine, _measure(fetch, first[order[one]], first[order[two]])]),
        own,
        units,
    )
    if cache:
        cache.keep(distinct, order, pairs, threshold)
    place = np.full(len(distinct), -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    rows = np.flatnonzero(place[of] >= 0)
    return _spread(pairs, own, place, rows, of[rows])


def _measure(fetch: Fetch, left: Longs, right: Longs) -> Doubles:
    """The cosine of each pair of rows; only rows that stand in a pair are read and scaled."""
    if not len(left):
        return np.zeros(0, dtype=np.float64)
    rows, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    unit = _scale(fetch(rows))
    return _multiply(unit[place[: len(left)]], unit[place[len(left) :]])


def _multiply(left: Doubles, right: Doubles) -> Doubles:
    """The product of each row of `left` with the same row of `right`, at most 1."""
    cosine: Doubles = np.einsum("ij,ij->i", left, right)
    return np.minimum(cosine, 1.0)


def _scale(vectors: Matrix) -> Doubles:
    """The rows, finite and none of zeros, at unit length."""
    exact = vectors.astype(np.float64)
    scaled: Doubles = exact / np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
    return scaled


def _make_units(vectors: Matrix) -> tuple[Matrix, Doubles]:
    """The rows at unit length in single precision, and the cosine of each with itself.

    Some rows at a time: in double precision all of them would take much room.
    """
    units, own = np.empty_like(vectors), np.empty(len(vectors), dtype=np.float64)
    for begin in range(0, len(vectors), _BLOCK):
        scaled = _scale(vectors[begin : begin + _BLOCK])
        units[begin : begin + _BLOCK], own[begin : begin + _BLOCK] = scaled, _multiply(scaled, scaled)
    return units, own


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


def _spread(pairs: KnownPairs, own: Doubles, place: Longs, rows: Longs, of: Longs) -> Pairs:
    """Pairs of distinct vectors as pairs of the rows that have them, and every pair of rows with the same vector.

    `of` is the distinct vector of each of `rows`; `place` is where each distinct vector stands in `own`.
    """
    members = np.argsort(of, kind="stable")
    count = np.bincount(of, minlength=len(place))
    begin = np.cumsum(count) - count
    twins = np.flatnonzero(count > 1)
    left, right = np.concatenate([pairs.left, twins]), np.concatenate([pairs.right, twins])
    cosine = np.concatenate([pairs.cosine, own[place[twins]]])
    times = count[left] * count[right]
    pair = np.repeat(np.arange(len(left)), times)
    turn = place_in_run(pair)
    one = members[begin[left[pair]] + turn // count[right[pair]]]
    two = members[begin[right[pair]] + turn % count[right[pair]]]
    keep = (left[pair] != right[pair]) | (one < two)
    one, two = one[keep], two[keep]
    return rows[np.minimum(one, two)], rows[np.maximum(one, two)], cosine[pair][keep]


def _nearest(left: Longs, right: Longs, cosine: Doubles, most: int) -> NDArray[np.bool_]:
    """Whether each pair is among the `most` nearest of both its rows."""
    row, partner = np.concatenate([left, right]), np.concatenate([right, left])
    order = np.lexsort((partner, -np.concatenate([cosine, cosine]), row))
    rank = np.empty(len(row), dtype=np.int64)
    rank[order] = place_in_run(row[order])
    near = rank < most
    return near[: len(left)] & near[len(left) :]
