"""HDBSCAN, Leiden, their consensus."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from models.kernels import unit_rows

# Shapes the hierarchy speaks in, named once, and sums by group.


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


# Topics as dense regions: HDBSCAN over unit vectors. The one door to the hdbscan library. Cosine is not among its
# metrics; on unit vectors the Euclidean distance orders pairs as the cosine does.


def density_labels(
    points: Vectors, *, min_cluster_size: int, min_samples: int, selection: Literal["eom", "leaf"] = "eom"
) -> Labels:
    """A group for each point, -1 for noise. Rows in a fixed order give the same labels: there is no seed.

    `selection` takes the groups that last longest while the density threshold falls, or the smallest ones.
    """
    if len(points) <= max(min_cluster_size, min_samples):
        return np.full(len(points), NONE, np.int64)
    import hdbscan

    fitted = hdbscan.HDBSCAN(
        min_cluster_size=min_cluster_size,
        min_samples=min_samples,
        metric="euclidean",
        core_dist_n_jobs=1,  # processes would cost more than they bring, and memory with each
        approx_min_span_tree=False,
        cluster_selection_method=selection,
    )
    labels: Labels = fitted.fit_predict(points.astype(np.float64)).astype(np.int64)
    return labels


# Topics as communities: Leiden, modularity with a resolution. The one door to the igraph library.


ITERATIONS = 2


def communities(graph: Graph, *, resolution: float, seed: int) -> Labels:
    """A community for each point; one without edges is alone. The same seed gives the same labels.

    Leiden (Traag, Waltman and van Eck 2019) on weighted modularity: a higher resolution gives more and smaller groups.
    """
    import igraph

    upper = sparse.triu(graph, 1).tocoo()
    ends = np.column_stack([upper.row, upper.col])
    igraph.set_random_number_generator(random.Random(seed))
    try:
        found = igraph.Graph(n=graph.shape[0], edges=ends.tolist()).community_leiden(
            objective_function="modularity",
            weights=upper.data.tolist(),
            resolution=resolution,
            n_iterations=ITERATIONS,
        )
    finally:
        igraph.set_random_number_generator(random)
    return dense_labels(np.asarray(found.membership, np.int64))


# One partition out of several: points stay together where the partitions agree that they belong together. Consensus
# clustering over a sparse graph (Lancichinetti and Fortunato 2012): an edge keeps the share of its weight that
# equals the share of partitions which put both ends in one group; Leiden then reads the groups off the reweighted
# graph.


DOUBTED = 1e-3  # of the weight of an edge that too few partitions support: enough to keep a lone point attached


def consensus_labels(
    graph: Graph, partitions: Sequence[tuple[Labels, float]], *, share: float, resolution: float, seed: int
) -> Labels:
    """Groups on which the partitions (labels, and how much they count) agree; edges below `share` barely count.

    A partition has no say about an edge when either end is noise in it.
    """
    edges = sparse.triu(graph, 1).tocoo()
    agreed = agreement(edges.row, edges.col, partitions)
    weight = edges.data * np.where(agreed >= share, agreed, 0.0) + edges.data * DOUBTED
    upper = sparse.coo_matrix((weight.astype(np.float32), (edges.row, edges.col)), shape=graph.shape)
    return communities((upper + upper.T).tocsr(), resolution=resolution, seed=seed)


def agreement(tails: np.ndarray, heads: np.ndarray, partitions: Sequence[tuple[Labels, float]]) -> Weights:
    """For each pair, the share of the partitions with a say that put both in one group; 0 where none has a say."""
    together = np.zeros(len(tails), np.float32)
    say = np.zeros(len(tails), np.float32)
    for labels, weight in partitions:
        left, right = labels[tails], labels[heads]
        speaks = (left != NONE) & (right != NONE)
        say[speaks] += weight
        together[speaks & (left == right)] += weight
    shares: Weights = (together / np.where(say > 0, say, 1)).astype(np.float32)
    return shares


def without_small(labels: Labels, graph: Graph, vectors: Vectors, min_size: int) -> Labels:
    """Members of groups below `min_size` moved to the group they are joined to most, else to the nearest by meaning.

    When every group is small the largest takes all: a corpus of three papers is one topic.
    """
    sizes = np.bincount(labels)
    large = np.flatnonzero(sizes >= min_size)
    if not len(large):
        large = np.array([int(np.argmax(sizes))])
    if len(large) == len(sizes):
        return labels
    place = np.full(len(sizes), NONE, np.int64)
    place[large] = np.arange(len(large))
    kept = place[labels]
    homeless = np.flatnonzero(kept == NONE)
    settled = np.flatnonzero(kept != NONE)
    member = sparse.csr_matrix(
        (np.ones(len(settled), np.float32), (settled, kept[settled])), shape=(len(labels), len(large))
    )
    joined = np.asarray((graph[homeless] @ member).todense())
    nearest = (vectors[homeless] @ centroids(vectors, kept, len(large)).T).argmax(axis=1)
    kept[homeless] = np.where(joined.max(axis=1) > 0, joined.argmax(axis=1), nearest)
    return dense_labels(kept)


# Fewer dimensions for the density search, smoothed over the nearest neighbours. Principal components alone leave
# most points of a text corpus in sparse space: every abstract is a little apart from every other. A few steps of
# averaging over the neighbour graph (the diffusion of Coifman and Lafon 2006, applied to features as in Wu et al.
# 2019, "Simplifying Graph Convolutional Networks") draw points of one topic together, so the density search finds
# more topics in a fraction of the time. `benchmarks/bench_hierarchy.py` measures both.


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


# An undirected graph as plain arrays. A small change of the topics needs no more, and loading SciPy takes longer.


@dataclass(frozen=True)
class Links:
    """The neighbours of row r stand, sorted, at `starts[r]:starts[r + 1]` of `others`, with weights above zero.

    Each link stands in both of its rows; there are no loops and no parallel links.
    """

    starts: np.ndarray
    others: np.ndarray
    weights: Weights

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def rows(self) -> np.ndarray:
        """The row of each entry of `others`."""
        return np.repeat(np.arange(len(self)), self.degree)

    @property
    def degree(self) -> np.ndarray:
        """How many neighbours each row has."""
        return np.diff(self.starts)

    def beside(self, chosen: Flags) -> Flags:
        """Which rows have a neighbour among the chosen."""
        found: Flags = np.zeros(len(self), bool)
        found[self.rows[chosen[self.others]]] = True
        return found

    def matrix(self) -> Graph:
        """The same graph for SciPy."""
        from scipy import sparse

        return sparse.csr_matrix((self.weights, self.others, self.starts), shape=(len(self), len(self)))


def join_links(sources: np.ndarray, targets: np.ndarray, weights: np.ndarray, n: int) -> Links:
    """Edges as an undirected graph over n rows; of parallel ones the heaviest counts, loops do not."""
    keep = (sources != targets) & (weights > 0)
    tails = np.concatenate([sources[keep], targets[keep]])
    heads = np.concatenate([targets[keep], sources[keep]])
    both = np.tile(weights[keep], 2).astype(np.float32)
    order = np.lexsort((-both, heads, tails))
    tails, heads, both = tails[order], heads[order], both[order]
    first = np.ones(len(tails), bool)
    first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    return _from_sorted(tails[first], heads[first], both[first], n)


def add_links(one: Links, other: Links, factor: float) -> Links:
    """The sum of a graph and `factor` times another one over the same rows."""
    if not len(other.others):
        return one
    tails, heads = np.concatenate([one.rows, other.rows]), np.concatenate([one.others, other.others])
    weights = np.concatenate([one.weights, (np.float32(factor) * other.weights).astype(np.float32)])
    order = np.lexsort((heads, tails))
    tails, heads, weights = tails[order], heads[order], weights[order]
    first = np.ones(len(tails), bool)
    first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    summed = np.add.reduceat(weights, np.flatnonzero(first))  # at most two each
    return _from_sorted(tails[first], heads[first], summed, len(one))


def _from_sorted(tails: np.ndarray, heads: np.ndarray, weights: np.ndarray, n: int) -> Links:
    starts = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))]) if n else np.zeros(1, np.int64)
    return Links(starts, heads, weights)


# Who is near to a few points in meaning, by plain arrays.


BLOCK_BYTES = 64 * 1024 * 1024  # of cosines held at a time
DECIMALS = 5  # cosines beyond this are rounding of the arithmetic, which differs between machines


def nearest_links(vectors: Vectors, rows: np.ndarray, among: np.ndarray, k: int) -> Links:
    """The graph over all points in which each of some rows is joined to its k nearest among others, by cosine."""
    n = len(vectors)
    k = min(k, len(among) - 1)
    if k < 1 or not len(rows):
        nothing = np.zeros(0, np.int64)
        return join_links(nothing, nothing, np.zeros(0, np.float32), n)
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
    return join_links(np.concatenate(tails), np.concatenate(heads), np.concatenate(weights), n)


# Two graphs over the same points: who is near in meaning, and who is near in the graph (one or two hops).


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
