"""Rows that were read are remembered, in the order in which they are asked for, and never more than the limit."""

from __future__ import annotations

import numpy as np

from hades.ports.graph import Numbers
from hades.snapshot.facts import RowCache


def test_a_row_is_read_once_while_it_is_remembered():
    read: list[int] = []

    def names(rows: Numbers) -> list[str]:
        read.extend(rows.tolist())
        return [f"row {row}" for row in rows.tolist()]

    cache = RowCache(names, most=4)
    assert cache.read(np.array([2, 0, 2])) == ["row 2", "row 0", "row 2"]
    assert cache.read(np.array([0, 1, 2])) == ["row 0", "row 1", "row 2"]
    assert read == [2, 0, 1]
    assert cache.read(np.empty(0, np.int64)) == []


def test_more_rows_than_the_limit_are_read_and_not_remembered():
    read: list[int] = []

    def names(rows: Numbers) -> list[str]:
        read.extend(rows.tolist())
        return [f"row {row}" for row in rows.tolist()]

    cache = RowCache(names, most=2)
    assert cache.read(np.array([5, 6, 7])) == ["row 5", "row 6", "row 7"]
    assert cache.read(np.array([5])) == ["row 5"]
    assert read == [5, 6, 7, 5]
    assert cache.read(np.array([6])) == ["row 6"]
    assert cache.read(np.array([7])) == ["row 7"]  # a third: the two before leave
    assert cache.read(np.array([5])) == ["row 5"]
    assert read == [5, 6, 7, 5, 6, 7, 5]
