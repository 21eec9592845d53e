"""Neighbours drawn from a CSR adjacency: mini-batches for graphs that do not fit a full batch.

PyG's own loader needs extension wheels that do not exist for every platform; this is numpy only and seeded.
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


def sample(
    starts: NDArray[np.int64],
    targets: NDArray[np.int32],
    asked: Longs,
    fanouts: tuple[int, ...],
    random: np.random.Generator,
) -> SampledGraph:
    """The asked nodes (each once) with at most `fanouts[i]` neighbours of each node that hop i reaches."""
    nodes = np.asarray(asked, np.int64)
    frontier = nodes
    sources: list[Longs] = []
    ends: list[Longs] = []
    for fanout in fanouts:
        at, near = _draw(starts, targets, frontier, fanout, random)
        sources.append(near)
        ends.append(at)
        fresh = np.setdiff1d(near, nodes)
        nodes, frontier = np.concatenate([nodes, fresh]), fresh
    order = np.argsort(nodes, kind="stable")
    place = order[np.searchsorted(nodes, np.concatenate([*sources, *ends]), sorter=order)]
    half = len(place) // 2
    return SampledGraph(nodes, place[:half], place[half:])


def _draw(
    starts: NDArray[np.int64], targets: NDArray[np.int32], nodes: Longs, fanout: int, random: np.random.Generator
) -> tuple[Longs, Longs]:
    """Pairs (node, neighbour): all neighbours of those that have few, `fanout` draws of the others."""
    counts = starts[nodes + 1] - starts[nodes]
    few = counts <= fanout
    kept = counts[few]
    at = np.repeat(nodes[few], kept)
    entries = np.repeat(starts[nodes[few]], kept) + _ranges(kept)
    many = nodes[~few]
    draws = (random.random((len(many), fanout)) * counts[~few][:, None]).astype(np.int64)
    drawn = (starts[many][:, None] + draws).ravel()
    pairs_at = np.concatenate([at, np.repeat(many, fanout)])
    return pairs_at, targets[np.concatenate([entries, drawn])].astype(np.int64)


def _ranges(counts: Longs) -> Longs:
    """0, 1, ..., c - 1 for each count c, one after the other."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
