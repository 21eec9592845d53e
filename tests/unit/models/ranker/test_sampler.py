"""Neighbours drawn around nodes: only real edges, no more than asked, the same by the same seed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.ranker.sampler import sample


def graph(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    counts = random.integers(0, 9, n)
    return np.concatenate([[0], np.cumsum(counts)]), random.integers(0, n, int(counts.sum())).astype(np.int32)


@given(st.integers(2, 60), st.integers(0, 9), st.integers(1, 6), st.integers(1, 6))
def test_every_sampled_edge_is_an_edge_and_no_node_draws_too_many(n: int, seed: int, first: int, second: int) -> None:
    starts, targets = graph(n, seed)
    asked = np.unique(np.random.default_rng(seed).integers(0, n, 5))
    part = sample(starts, targets, asked, (first, second), np.random.default_rng(seed))
    assert part.nodes[: len(asked)].tolist() == asked.tolist()
    assert len(np.unique(part.nodes)) == len(part.nodes)
    for near, node in zip(part.nodes[part.source].tolist(), part.nodes[part.target].tolist(), strict=True):
        assert near in targets[starts[node] : starts[node + 1]]
    drawn = np.bincount(part.target, minlength=len(part.nodes))
    assert drawn[: len(asked)].max(initial=0) <= first
    assert drawn.max(initial=0) <= max(first, second)


def test_a_node_with_few_neighbours_keeps_them_all_and_the_seed_decides_the_rest() -> None:
    starts, targets = np.array([0, 2, 102, 103]), np.concatenate([[1, 2], np.full(100, 2), [0]]).astype(np.int32)
    one, two = (sample(starts, targets, np.array([0, 1]), (4,), np.random.default_rng(7)) for _ in range(2))
    assert sorted(one.nodes[one.source[one.target == 0]].tolist()) == [1, 2]
    assert (one.target == 1).sum() == 4
    assert np.array_equal(one.source, two.source)
