"""Two graphs over the same points: who is near in meaning, and who is near in the graph (one or two hops)."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from models.hierarchy.arrays import Graph, Vectors

BLOCK_BYTES = 64 * 1024 * 1024  # of cosines held at a time
DECIMALS = 5  # cosines beyond this are rounding of the arithmetic, which differs between machines


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


def nearest_edges(vectors: Vectors, rows: np.ndarray, among: np.ndarray, k: int) -> Graph:
    """The graph over all points in which each of some rows is joined to its k nearest among others, by cosine."""
    n = len(vectors)
    k = min(k, len(among) - 1)
    if k < 1 or not len(rows):
        return sparse.csr_matrix((n, n), dtype=np.float32)
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
    return symmetric_graph(np.concatenate(tails), np.concatenate(heads), np.concatenate(weights), n)


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
    keep = (sources != targets) & (weights > 0)
    tails = np.concatenate([sources[keep], targets[keep]])
    heads = np.concatenate([targets[keep], sources[keep]])
    both = np.tile(weights[keep], 2).astype(np.float32)
    order = np.lexsort((-both, heads, tails))
    tails, heads, both = tails[order], heads[order], both[order]
    first = np.ones(len(tails), bool)
    first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    return _canonical(sparse.csr_matrix((both[first], (tails[first], heads[first])), shape=(n, n), dtype=np.float32))


def _canonical(graph: Graph) -> Graph:
    graph.sum_duplicates()
    graph.sort_indices()
    return graph
