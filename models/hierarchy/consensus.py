"""One partition out of several: points stay together where the partitions agree that they belong together.

Consensus clustering over a sparse graph (Lancichinetti and Fortunato 2012): an edge keeps the share of its weight that
equals the share of partitions which put both ends in one group; Leiden then reads the groups off the reweighted graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from models.hierarchy.arrays import NONE, Graph, Labels, Vectors, Weights, centroids, dense_labels
from models.hierarchy.community import communities

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
