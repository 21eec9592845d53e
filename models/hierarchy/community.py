"""Topics as communities: Leiden, modularity with a resolution. The one door to the igraph library."""

from __future__ import annotations

import random

import numpy as np
from scipy import sparse

from models.hierarchy.arrays import Graph, Labels, dense_labels

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
