"""The push: what it computes, and what it never exceeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hades.ports.graph import ALWAYS, Adjacency, Validity
from hades.retrieval.walks.pagerank import Walk
from hades.retrieval.walks.rows import Rows
from tests.unit.hades.retrieval.pushed_graphs import adjacency, communities

PATH = [(0, 1, 1.0), (1, 2, 0.5)]


def walk_over(edges: Adjacency, node: int = 0, as_of: int = int(ALWAYS)) -> Walk:
    rows = Rows(edges, np.ones(4), (as_of, int(ALWAYS)), shares=False)
    return Walk(rows, np.array([node]), np.array([1.0]))


def never() -> bool:
    return False


def test_a_path_of_three_nodes_by_hand():
    walk = walk_over(adjacency(PATH, 3))
    assert walk.run(1e-12, 0.5, 10**6, never)
    # x0 = .5 + .5 * x1 * 2/3, x1 = .5 * x0 + .5 * x2, x2 = .5 * x1 / 3
    x1 = 0.25 / (1 - 1 / 6 - 1 / 12)
    assert walk.estimate == pytest.approx([0.5 + x1 / 3, x1, x1 / 6], abs=1e-10)


def test_estimates_and_residuals_sum_to_the_restart_mass():
    walk = walk_over(adjacency(communities(200, 900, 20, 1), 200), 7)
    walk.run(1e-3, 0.85, 10**6, never)
    assert walk.estimate.sum() + walk.residual.sum() == pytest.approx(1.0, abs=1e-12)


def test_a_hub_of_some_moment_is_not_read_for_the_sake_of_its_degree():
    n_leaves = 1_000_000
    hub, outsider = 0, n_leaves + 1
    leaves = np.arange(1, n_leaves + 1, dtype=np.float64)
    spokes = np.column_stack([np.zeros(n_leaves), leaves, np.ones(n_leaves)])
    star = adjacency(np.vstack([spokes, [outsider, hub, 1.0]]), n_leaves + 2)
    ends = np.zeros(n_leaves + 1, np.int64)
    dated = replace(star, validity=Validity(ends - 1, ends + 1, ends, ends))
    walk = walk_over(dated, outsider, as_of=0)
    assert walk.run(1e-3, 0.5, 10**4, never)
    assert walk.rows.work < 1000
    assert walk.estimate[outsider] == pytest.approx(0.5)
    hub_degree = walk.rows.total[hub]
    assert 500 <= hub_degree < 1000  # read until epsilon times it outweighs the .5 that arrived


@pytest.mark.parametrize("max_work", [0, 1, 7, 100, 1000])
def test_work_never_exceeds_its_cap(max_work):
    walk = walk_over(adjacency(communities(500, 5000, 50, 3), 500))
    assert not walk.run(1e-9, 0.85, max_work, never)
    assert walk.rows.work <= max_work
