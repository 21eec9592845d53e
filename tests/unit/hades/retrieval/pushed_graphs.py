"""Adjacencies made by hand or by chance, and the exact answer to hold a push against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Adjacency, Csr, Validity

Edge = tuple[int, int, float]


def adjacency(
    edges: Sequence[Edge] | NDArray[np.float64],
    n_nodes: int,
    types: Sequence[int] | None = None,
    validity: Validity | None = None,
) -> Adjacency:
    """Both directions of these edges; an edge's handle is its place."""
    table = np.array(edges, np.float64).reshape(-1, 3)
    source, target = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    weight = table[:, 2].astype(np.float32)
    kinds = np.zeros(len(edges), np.uint8) if types is None else np.array(types, np.uint8)
    return Adjacency(
        _rows(source, target, weight, kinds, n_nodes),
        _rows(target, source, weight, kinds, n_nodes),
        validity,
    )


def exact(
    edges: Sequence[Edge], n_nodes: int, restart: NDArray[np.float64], damping: float
) -> NDArray[np.float64]:
    """Personalized PageRank of the undirected graph by solving its equation; a node without edges
    keeps its walk.

    `restart` is (nodes,) or (nodes, questions), and so is the answer.
    """
    step, _ = transition(edges, n_nodes)
    solved: NDArray[np.float64] = np.linalg.solve(
        np.eye(n_nodes) - damping * step, (1.0 - damping) * restart
    )
    return solved


def transition(
    edges: Sequence[Edge], n_nodes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The column-stochastic step, and the weighted degrees."""
    both = np.zeros((n_nodes, n_nodes))
    for source, target, weight in edges:
        both[target, source] += np.float32(weight)
        if source != target:
            both[source, target] += np.float32(weight)
    degree = both.sum(axis=0)
    step = both / np.where(degree > 0, degree, 1.0)
    step[:, degree == 0] = np.eye(n_nodes)[:, degree == 0]
    return step, degree


def communities(n_nodes: int, n_edges: int, size: int, seed: int) -> list[Edge]:
    """Nine of ten edges stay inside a community of `size` nodes."""
    chance = np.random.default_rng(seed)
    source = chance.integers(0, n_nodes, n_edges)
    inside = np.minimum(source // size * size + chance.integers(0, size, n_edges), n_nodes - 1)
    target = np.where(chance.random(n_edges) < 0.9, inside, chance.integers(0, n_nodes, n_edges))
    weight = 1.0 - chance.random(n_edges)
    return list(zip(source.tolist(), target.tolist(), weight.tolist(), strict=True))


def _rows(
    near: NDArray[np.int64],
    far: NDArray[np.int64],
    weight: NDArray[np.float32],
    kinds: NDArray[np.uint8],
    n_nodes: int,
) -> Csr:
    order = np.lexsort((-weight, near))
    starts = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(near, minlength=n_nodes), out=starts[1:])
    return Csr(
        starts, far[order].astype(np.int32), order.astype(np.int32), kinds[order], weight[order]
    )
