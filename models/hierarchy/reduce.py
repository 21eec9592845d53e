"""Fewer dimensions for the density search, smoothed over the nearest neighbours.

Principal components alone leave most points of a text corpus in sparse space: every abstract is a little apart from
every other. A few steps of averaging over the neighbour graph (the diffusion of Coifman and Lafon 2006, applied to
features as in Wu et al. 2019, "Simplifying Graph Convolutional Networks") draw points of one topic together, so the
density search finds more topics in a fraction of the time. `benchmarks/bench_hierarchy.py` measures both.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from models.hierarchy.arrays import Graph, Vectors
from models.vectors import unit_rows


def reduce(vectors: Vectors, graph: Graph, *, dimension: int, steps: int) -> Vectors:
    """(n, dimension) float32, rows unit length; each step keeps half a point and takes half from its neighbours."""
    points = principal_components(vectors, dimension)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    average = sparse.diags((1.0 / np.where(degree > 0, degree, 1)).astype(np.float32)) @ graph
    alone = degree == 0
    for _ in range(steps):
        moved = 0.5 * points + 0.5 * (average @ points)
        moved[alone] = points[alone]
        points = moved.astype(np.float32)
    return unit_rows(points)


def principal_components(vectors: Vectors, dimension: int) -> Vectors:
    """(n, dimension): projections on the directions of most variance; exact, nothing drawn at random."""
    centred = vectors - vectors.mean(axis=0)
    spread = (centred.T @ centred).astype(np.float64)
    directions = np.linalg.eigh(spread)[1][:, ::-1][:, :dimension]
    projected: Vectors = (centred @ directions.astype(np.float32)).astype(np.float32)
    return projected
