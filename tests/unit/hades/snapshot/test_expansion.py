"""Expanding over compressed rows equals looking at every edge, for any graph and any question."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.ports.graph import Csr
from hades.snapshot import adjacency as csr
from hades.snapshot import adjacency as expansion
from hades.snapshot.adjacency import follow, merge

WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")])
NODES = 5
EDGES = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 2), WEIGHTS),
    max_size=60,
)
Edge = tuple[int, int, int, float]


def rows_of(edges: list[Edge], outbound: bool) -> Csr:
    source, target = (np.array([edge[end] for edge in edges], np.int32) for end in (0, 1))
    types = np.array([edge[2] for edge in edges], np.uint8)
    weights = np.nan_to_num(np.array([edge[3] for edge in edges], np.float32), nan=1.0)
    near, far = (source, target) if outbound else (target, source)
    return csr.build(near, far, types, weights, NODES)


def brute(
    edges: list[Edge], asked: list[int], outbound: bool, types: set[int] | None
) -> list[list[tuple[float, int]]]:
    """For each asked node its (minus weight, handle)s in order."""
    found = []
    for node in asked:
        mine = [
            (-(1.0 if np.isnan(weight) else weight), handle)
            for handle, (source, target, kind, weight) in enumerate(edges)
            if (source if outbound else target) == node and (types is None or kind in types)
        ]
        found.append(sorted(mine))
    return found


@pytest.fixture(autouse=True, scope="module")
def short_looks() -> Iterator[None]:
    """Rows are short here, so look at them in shorter pieces."""
    patch = pytest.MonkeyPatch()
    patch.setattr(expansion, "_FIRST_LOOK", 2)
    yield
    patch.undo()


@given(
    EDGES,
    st.lists(st.integers(0, NODES - 1), max_size=8),
    st.booleans(),
    st.none() | st.sets(st.integers(0, 2)),
    st.none() | st.integers(1, 9),
)
def test_follow_equals_brute_force(
    edges: list[Edge], asked: list[int], outbound: bool, types: set[int] | None, fanout: int | None
) -> None:
    rows = rows_of(edges, outbound)
    keep = None if types is None else lambda entry, near: np.isin(rows.type[entry], list(types))
    found = follow(rows, np.array(asked, np.int64), keep, fanout, None, outbound=outbound)
    expected = [
        (row, handle, edges[handle][1 if outbound else 0], -weight)
        for row, mine in enumerate(brute(edges, asked, outbound, types))
        for weight, handle in mine[:fanout]
    ]
    parts = (found.row, found.edge, found.target, found.weight)
    assert list(zip(*(part.tolist() for part in parts), strict=True)) == expected
    assert not found.capped


@given(EDGES, st.lists(st.integers(0, NODES - 1), max_size=8), st.none() | st.integers(1, 4))
def test_both_directions_merged_equal_brute_force(
    edges: list[Edge], asked: list[int], fanout: int | None
) -> None:
    numbers = np.array(asked, np.int64)
    out_rows, in_rows = rows_of(edges, True), rows_of(edges, False)
    out = follow(out_rows, numbers, None, fanout, None, outbound=True)
    into = follow(
        in_rows,
        numbers,
        lambda entry, near: in_rows.target[entry] != near,
        fanout,
        None,
        outbound=False,
    )
    both = merge(out, into, fanout)
    expected = [
        (row, handle)
        for row, node in enumerate(asked)
        for _, handle in sorted(
            (-(1.0 if np.isnan(weight) else weight), handle)
            for handle, (source, target, _, weight) in enumerate(edges)
            if node in (source, target)
        )[:fanout]
    ]
    assert list(zip(both.row.tolist(), both.edge.tolist(), strict=True)) == expected


@given(
    EDGES,
    st.lists(st.integers(0, NODES - 1), max_size=8),
    st.integers(0, 40),
    st.none() | st.integers(1, 4),
)
def test_work_is_never_exceeded(
    edges: list[Edge], asked: list[int], max_work: int, fanout: int | None
) -> None:
    rows = rows_of(edges, True)
    numbers = np.array(asked, np.int64)
    found, whole = (
        follow(
            rows, numbers, lambda entry, near: rows.type[entry] == 1, fanout, most, outbound=True
        )
        for most in (max_work, None)
    )
    assert found.work <= max_work
    pairs = set(zip(whole.row.tolist(), whole.edge.tolist(), strict=True))
    assert set(zip(found.row.tolist(), found.edge.tolist(), strict=True)) <= pairs
    if not found.capped:
        assert found.edge.tolist() == whole.edge.tolist()


def test_a_hub_costs_what_the_fanout_needs() -> None:
    degree = 200_000
    near, far = np.zeros(degree, np.int32), np.ones(degree, np.int32)
    types = (np.arange(degree) % 7 == 0).astype(np.uint8)
    rows = csr.build(near, far, types, np.linspace(1, 0, degree, dtype=np.float32), 2)
    assert follow(rows, np.array([0]), None, 3, None, outbound=True).work == 3
    filtered = follow(
        rows, np.array([0]), lambda entry, near: rows.type[entry] == 1, 3, None, outbound=True
    )
    assert filtered.edge.tolist() == [0, 7, 14]
    assert filtered.work <= 128
