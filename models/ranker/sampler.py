"""Neighbours drawn from a CSR adjacency: mini-batches for graphs that do not fit a full batch.

Loaders of graph libraries need extension wheels that do not exist for every platform. This one is machine code by
numba, which is a dependency anyway; the same seed draws the same neighbours on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class SampledGraph:
    """A part of a graph: `nodes` (the asked ones first), and edges by place in `nodes`, source to target."""

    nodes: Longs
    source: Longs
    target: Longs


class NeighbourSampler:
    """Draws neighbourhoods from one adjacency; it holds one number for each node of the graph between two draws."""

    def __init__(self, starts: NDArray[np.int64], targets: NDArray[np.int32]) -> None:
        from models.ranker.sample_kernel import draw_neighbours  # loads the compiler

        self._draw = draw_neighbours
        self._starts, self._targets = starts, targets
        self._place = np.full(len(starts) - 1, -1, np.int64)  # where a node stands in the part that is being drawn

    def sample(self, asked: Longs, fanouts: tuple[int, ...], random: np.random.Generator) -> SampledGraph:
        """The asked nodes (each once) with at most `fanouts[i]` different neighbours of each that hop i reaches."""
        asked, limits = np.asarray(asked, np.int64), np.asarray(fanouts, np.int64)
        seed = int(random.integers(0, np.iinfo(np.int64).max))
        size = _most(len(asked), fanouts, len(self._place))
        nodes, source, target = self._draw(self._starts, self._targets, asked, limits, seed, self._place, size)
        return SampledGraph(nodes, source, target)


def _most(n_asked: int, fanouts: tuple[int, ...], n_nodes: int) -> int:
    """How many edges a draw may have."""
    edges, frontier = 0, n_asked
    for fanout in fanouts:
        edges += frontier * fanout
        frontier = min(frontier * fanout, n_nodes)
    return edges
