"""Neighbours drawn around nodes: only real edges, no more than asked, the same by the same seed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.ranker.network import NeighbourSampler


def graph(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    counts = random.integers(0, 9, n)
    return np.concatenate([[0], np.cumsum(counts)]), random.integers(0, n, int(counts.sum())).astype(np.int32)


@given(st.integers(2, 60), st.integers(0, 9), st.integers(1, 6), st.integers(1, 6))
def test_every_sampled_edge_is_an_edge_and_no_node_draws_too_many(n: int, seed: int, first: int, second: int) -> None:
    starts, targets = graph(n, seed)
    asked = np.unique(np.random.default_rng(seed).integers(0, n, 5))
    part = NeighbourSampler(starts, targets).sample(asked, (first, second), np.random.default_rng(seed))
    assert part.nodes[: len(asked)].tolist() == asked.tolist()
    assert len(np.unique(part.nodes)) == len(part.nodes)
    for near, node in zip(part.nodes[part.source].tolist(), part.nodes[part.target].tolist(), strict=True):
        assert near in targets[starts[node] : starts[node + 1]]
    drawn = np.bincount(part.target, minlength=len(part.nodes))
    assert drawn[: len(asked)].max(initial=0) <= first
    assert drawn.max(initial=0) <= max(first, second)


def test_a_node_with_few_neighbours_keeps_them_all_and_the_seed_decides_the_rest() -> None:
    starts = np.array([0, 2, 102, 103])
    targets = np.concatenate([[1, 2], np.full(100, 2), [0]]).astype(np.int32)
    sampler = NeighbourSampler(starts, targets)
    one, two = (sampler.sample(np.array([0, 1]), (4,), np.random.default_rng(7)) for _ in range(2))
    assert sorted(one.nodes[one.source[one.target == 0]].tolist()) == [1, 2]
    assert (one.target == 1).sum() == 4
    assert np.array_equal(one.source, two.source)


def test_neighbours_are_drawn_without_repetition_and_each_as_often_as_the_others() -> None:
    starts = np.concatenate([[0, 20], np.full(20, 20)])
    sampler = NeighbourSampler(starts, np.arange(1, 21, dtype=np.int32))
    random, drawn = np.random.default_rng(3), np.zeros(21, np.int64)
    for _ in range(2_000):
        part = sampler.sample(np.array([0]), (5,), random)
        near = part.nodes[part.source]
        assert len(np.unique(near)) == len(near) == 5
        drawn[near] += 1
    assert drawn[0] == 0
    assert 400 <= drawn[1:].min() <= drawn[1:].max() <= 600  # 500 each, five standard deviations apart


def test_a_draw_leaves_nothing_behind_for_the_next() -> None:
    starts, targets = graph(40, 1)
    used = NeighbourSampler(starts, targets)
    used.sample(np.arange(20), (3, 3), np.random.default_rng(0))
    again, fresh = (
        one.sample(np.array([4, 30]), (3, 2), np.random.default_rng(5))
        for one in (used, NeighbourSampler(starts, targets))
    )
    assert again.nodes.tolist() == fresh.nodes.tolist()
    assert again.source.tolist() == fresh.source.tolist()
