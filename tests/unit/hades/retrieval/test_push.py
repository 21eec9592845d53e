"""The kernel: what it computes, and what it never exceeds."""

from __future__ import annotations

import numpy as np
import pytest

from hades.retrieval.walks.pagerank import DEGREE, ESTIMATE, RESIDUAL, Walk
from tests.unit.hades.retrieval.pushed_graphs import adjacency, communities

ONES = np.ones(4)
PATH = [(0, 1, 1.0), (1, 2, 0.5)]


def start(node: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return np.array([node]), np.array([1.0])


def scores(walk: Walk, n_nodes: int) -> np.ndarray:
    found = np.zeros(n_nodes)
    found[walk.numbers] = walk.state[walk.numbers, ESTIMATE]
    return found


def test_a_path_of_three_nodes_by_hand():
    walk = Walk(adjacency(PATH, 3), *start(), factors=ONES)
    assert walk.run(1e-12, 0.5, 10**6)
    # x0 = .5 + .5 * x1 * 2/3, x1 = .5 * x0 + .5 * x2, x2 = .5 * x1 / 3
    x1 = 0.25 / (1 - 1 / 6 - 1 / 12)
    assert scores(walk, 3) == pytest.approx([0.5 + x1 / 3, x1, x1 / 6], abs=1e-10)


def test_estimates_and_residuals_sum_to_the_restart_mass():
    walk = Walk(adjacency(communities(200, 900, 20, 1), 200), *start(7), factors=ONES)
    walk.run(1e-3, 0.85, 10**6)
    held = walk.state[walk.numbers, ESTIMATE].sum() + walk.state[walk.numbers, RESIDUAL].sum()
    assert held == pytest.approx(1.0, abs=1e-12)


def test_a_hub_is_not_read_for_the_sake_of_its_degree():
    n_leaves = 1_000_000
    hub, outsider = 0, n_leaves + 1
    leaves = np.arange(1, n_leaves + 1, dtype=np.float64)
    spokes = np.column_stack([np.zeros(n_leaves), leaves, np.ones(n_leaves)])
    star = adjacency(np.vstack([spokes, [outsider, hub, 1.0]]), n_leaves + 2)
    walk = Walk(star, *start(outsider), factors=ONES)
    assert walk.run(1e-3, 0.5, 10**4)
    assert walk.work < 1000
    assert scores(walk, n_leaves + 2)[outsider] == pytest.approx(0.5)
    hub_degree = walk.state[hub, DEGREE]
    assert 500 <= hub_degree < 1000  # read until epsilon times it outweighs the .5 that arrived


@pytest.mark.parametrize("max_work", [0, 1, 7, 100, 1000])
def test_work_never_exceeds_its_cap(max_work):
    walk = Walk(adjacency(communities(500, 5000, 50, 3), 500), *start(), factors=ONES)
    assert not walk.run(1e-9, 0.85, max_work)
    assert walk.work <= max_work
