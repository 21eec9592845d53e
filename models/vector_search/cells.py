"""Vectors in cells around centres, by k-means in two levels; a search scans the cells nearest to its question.

The first level cuts all vectors into about the square root of the wanted number of cells, the second cuts each of them.
So a vector is compared with two square roots of centres instead of all. Everything is seeded: the same vectors give
the same cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]
Longs = NDArray[np.int64]
ReadRows = Callable[[Longs], Singles]  # (places) -> rows of length 1

_ROUNDS = 6
_PER_CENTRE = 64  # vectors that a centre is fitted on
_BLOCK = 16_384
_NEAR = 4  # coarse centres whose fine centres a vector is compared with


@dataclass(frozen=True)
class Cells:
    """(cells, dimension) centres of length 1; `places` in the order of their cells, `starts[c]:starts[c + 1]` of c."""

    centres: Singles
    places: NDArray[np.int32]
    starts: Longs


def cells_for(n_vectors: int) -> int:
    """How many cells suit this number of vectors: four times the square root."""
    return max(1, round(4.0 * math.sqrt(n_vectors)))


def fit_cells(read: ReadRows, n_vectors: int, n_cells: int, seed: int = 7) -> Cells:
    """Cut vectors into about `n_cells` cells; `read` hands out rows, so that they need not lie in memory."""
    chance = np.random.default_rng(seed)
    n_coarse = max(1, round(math.sqrt(n_cells)))
    sample = np.sort(chance.choice(n_vectors, min(n_vectors, 4 * _PER_CENTRE * n_coarse), replace=False))
    coarse = fit_centres(read(sample), n_coarse, chance)
    label = _assign_coarse(read, n_vectors, coarse)
    fine: list[Singles] = []
    for cell in range(len(coarse)):
        members = np.flatnonzero(label == cell)
        wanted = max(1, round(n_cells * len(members) / n_vectors))
        chosen = np.sort(chance.choice(members, min(len(members), _PER_CENTRE * wanted), replace=False))
        fine.append(fit_centres(read(chosen), wanted, chance) if len(members) else coarse[cell : cell + 1])
    own = _assign_fine(read, n_vectors, coarse, fine)
    counts = np.bincount(own, minlength=sum(map(len, fine)))
    starts = np.concatenate(([0], np.cumsum(counts[counts > 0]))).astype(np.int64)
    return Cells(np.concatenate(fine)[counts > 0], np.argsort(own, kind="stable").astype(np.int32), starts)


def fit_centres(rows: Singles, count: int, chance: np.random.Generator) -> Singles:
    """Spherical k-means from rows drawn at random; a centre that loses all its rows keeps its place."""
    count = min(count, len(rows))
    centres = rows[np.sort(chance.choice(len(rows), count, replace=False))].copy()
    for _ in range(_ROUNDS if count > 1 else 0):
        label = nearest_centre(rows, centres)
        sums = np.zeros_like(centres, dtype=np.float64)
        order = np.argsort(label, kind="stable")
        held, first = np.unique(label[order], return_index=True)
        sums[held] = np.add.reduceat(rows[order].astype(np.float64), first, axis=0)
        length = np.linalg.norm(sums, axis=1, keepdims=True)
        moved = length[:, 0] > 0.0
        centres[moved] = (sums[moved] / length[moved]).astype(np.float32)
    return centres


def nearest_centre(rows: Singles, centres: Singles) -> Longs:
    """(n,) the centre with the greatest product; the first of equals."""
    nearest: Longs = np.argmax(rows @ centres.T, axis=1)
    return nearest


def _assign_coarse(read: ReadRows, n_vectors: int, coarse: Singles) -> Longs:
    return np.concatenate([nearest_centre(read(places), coarse) for places in _blocks(n_vectors)])


def _assign_fine(read: ReadRows, n_vectors: int, coarse: Singles, fine: list[Singles]) -> Longs:
    """The nearest fine centre among those of the few nearest coarse ones; most vectors near a border need them."""
    firsts = np.concatenate(([0], np.cumsum([len(one) for one in fine])))
    looked_at = min(_NEAR, len(coarse))
    labels = []
    for places in _blocks(n_vectors):
        rows = read(places)
        near = np.argpartition(rows @ coarse.T, len(coarse) - looked_at, axis=1)[:, len(coarse) - looked_at :]
        best, label = np.full(len(rows), -np.inf, np.float32), np.zeros(len(rows), np.int64)
        for cell, centres in enumerate(fine):
            mine = np.flatnonzero((near == cell).any(axis=1))
            if len(mine):
                products = rows[mine] @ centres.T
                nearest = np.argmax(products, axis=1)
                most = products[np.arange(len(mine)), nearest]
                better = most > best[mine]
                best[mine[better]], label[mine[better]] = most[better], firsts[cell] + nearest[better]
        labels.append(label)
    return np.concatenate(labels)


def _blocks(n_vectors: int) -> Iterator[Longs]:
    return (np.arange(first, min(first + _BLOCK, n_vectors)) for first in range(0, n_vectors, _BLOCK))
