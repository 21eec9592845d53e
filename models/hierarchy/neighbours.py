"""Two graphs over the same points: who is near in meaning, and who is near in the graph (one or two hops)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from models.hierarchy.arrays import Graph, Vectors
from models.hierarchy.links import join_links
from models.hierarchy.nearest import BLOCK_BYTES, DECIMALS


def nearest_graph(vectors: Vectors, k: int) -> Graph:
    """Each point joined to its k nearest by cosine, either way round; exact, by blocks."""
    n = len(vectors)
    k = min(k, n - 1)
    if k < 1:
        return sparse.csr_matrix((n, n), dtype=np.float32)
    near = np.empty((n, k), np.int64)
    cosine = np.empty((n, k), np.float32)
    rows = max(1, BLOCK_BYTES // (4 * n))
    for start in range(0, n, rows):
        block = vectors[start : start + rows] @ vectors.T
        here = np.arange(len(block))
        block[here, start + here] = -2.0  # nobody is their own neighbour
        found = np.argpartition(block, n - k, axis=1)[:, n - k :]
        near[start : start + len(block)] = found
        cosine[start : start + len(block)] = np.take_along_axis(block, found, axis=1)
    return symmetric_graph(np.repeat(np.arange(n), k), near.ravel(), np.round(cosine.ravel(), DECIMALS), n)


def hop_graph(edges: Graph, points: np.ndarray, hub_degree: int) -> Graph:
    """The chosen points joined by their edges and by what they share: weight 1/degree for each shared neighbour.

    Neighbours of more than `hub_degree` points say nothing about any of them and would join all pairs: left out.
    """
    rows = edges[points]
    direct = rows[:, points]
    is_point = np.zeros(edges.shape[0], bool)
    is_point[points] = True
    shared = rows.tocsc()
    degree = np.diff(shared.indptr)
    useful = np.flatnonzero(~is_point & (degree >= 2) & (degree <= hub_degree))
    through = (shared[:, useful] > 0).astype(np.float32)
    joint = (direct + through @ sparse.diags((1.0 / degree[useful]).astype(np.float32)) @ through.T).tocsr()
    joint.setdiag(0)
    joint.eliminate_zeros()
    return _canonical(joint)


def symmetric_graph(sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, n: int) -> Graph:
    """Edges as an undirected graph; of parallel ones the heaviest counts, loops do not."""
    return join_links(sources, targets, weights, n).matrix()


def _canonical(graph: Graph) -> Graph:
    graph.sum_duplicates()
    graph.sort_indices()
    return graph
