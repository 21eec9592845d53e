"""Drawing neighbours with numpy alone, as before the compiled sampler: what `bench_ranker.py` compares it with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]


def sample_in_numpy(
    starts: Longs, targets: NDArray[np.int32], asked: Longs, fanouts: tuple[int, ...], random: np.random.Generator
) -> tuple[Longs, Longs, Longs]:
    """Nodes, and sources and targets of edges by place; draws may repeat a neighbour."""
    nodes = frontier = np.asarray(asked, np.int64)
    sources: list[Longs] = []
    ends: list[Longs] = []
    for fanout in fanouts:
        at, near = _draw(starts, targets, frontier, fanout, random)
        sources.append(near)
        ends.append(at)
        frontier = np.setdiff1d(near, nodes)
        nodes = np.concatenate([nodes, frontier])
    order = np.argsort(nodes, kind="stable")
    place = order[np.searchsorted(nodes, np.concatenate([*sources, *ends]), sorter=order)]
    return nodes, place[: len(place) // 2], place[len(place) // 2 :]


def _draw(
    starts: Longs, targets: NDArray[np.int32], nodes: Longs, fanout: int, random: np.random.Generator
) -> tuple[Longs, Longs]:
    counts = starts[nodes + 1] - starts[nodes]
    few = counts <= fanout
    kept, many = counts[few], nodes[~few]
    ends = np.cumsum(kept)
    steps = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - kept, kept)
    entries = np.repeat(starts[nodes[few]], kept) + steps
    draws = (random.random((len(many), fanout)) * counts[~few][:, None]).astype(np.int64)
    drawn = (starts[many][:, None] + draws).ravel()
    at = np.concatenate([np.repeat(nodes[few], kept), np.repeat(many, fanout)])
    return at, targets[np.concatenate([entries, drawn])].astype(np.int64)
