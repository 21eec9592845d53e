"""Shapes the hierarchy speaks in, named once, and sums by group."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from models.vectors import unit_rows

Vectors: TypeAlias = NDArray[np.float32]  # (n, dim), rows unit length, or zero where there is no vector
Labels: TypeAlias = NDArray[np.int64]  # (n,), a group each, -1 for none
Weights: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]
Graph: TypeAlias = Any  # (n, n) scipy CSR, symmetric, no diagonal, weights above zero

NONE = -1


def centroids(vectors: Vectors, labels: Labels, groups: int) -> Vectors:
    """(groups, dim): the mean direction of each group's vectors; zero for a group without any."""
    held = np.flatnonzero(labels != NONE)
    held = held[np.argsort(labels[held], kind="stable")]
    starts = np.searchsorted(labels[held], np.arange(groups + 1)).tolist()
    sums = np.zeros((groups, vectors.shape[1]), np.float32)
    for group in range(groups):
        sums[group] = vectors[held[starts[group] : starts[group + 1]]].sum(axis=0)
    return unit_rows(sums)


def dense_labels(labels: Labels) -> Labels:
    """The same groups numbered 0, 1, ... in the order of their first member; -1 stays."""
    fresh = np.full(len(labels), NONE, np.int64)
    held = labels != NONE
    _, first, inverse = np.unique(labels[held], return_index=True, return_inverse=True)
    fresh[held] = np.argsort(np.argsort(first))[inverse]
    return fresh
