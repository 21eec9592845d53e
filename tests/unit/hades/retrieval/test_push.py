"""The push: what it computes, and what it never exceeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hades.ports.graph import ALWAYS, Adjacency, Validity
from hades.retrieval.walks.pagerank import Walk
from hades.retrieval.walks.rows import Rows
from tests.unit.hades.retrieval.pushed_graphs import adjacency


def walk_over(edges: Adjacency, node: int = 0, as_of: int = int(ALWAYS)) -> Walk:
    rows = Rows(edges, np.ones(4), (as_of, int(ALWAYS)), shares=False)
    return Walk(rows, np.array([node]), np.array([1.0]))


def never() -> bool:
    return False


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
