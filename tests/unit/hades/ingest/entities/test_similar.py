"""Pairs of nearly parallel vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hades.ingest.entities import vectors as similar
from hades.ingest.entities.vectors import similar_pairs
from tests.patience import examples


def vectors(seed: int, n_rows: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(n_rows, 4)).astype(np.float32)


@settings(max_examples=examples(13), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 40), st.sampled_from([0.5, 0.8, 0.95]))
def test_finds_every_pair_above_the_threshold(seed: int, n_rows: int, threshold: float) -> None:
    rows = vectors(seed, n_rows).astype(np.float64)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True) if n_rows else rows
    expected = [
        (i, j)
        for i in range(n_rows)
        for j in range(i + 1, n_rows)
        if np.einsum("i,i->", unit[i], unit[j]) >= threshold
    ]
    left, right, cosine = similar_pairs(
        rows.astype(np.float32), threshold, max_per_node=max(1, n_rows)
    )
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected
    assert ((cosine >= threshold) & (cosine <= 1.0)).all()


def test_the_number_does_not_depend_on_how_rows_are_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = vectors(7, 50)
    whole = similar_pairs(rows, 0.7)
    monkeypatch.setattr(similar, "_BLOCK", 3)
    parts = similar_pairs(rows, 0.7)
    assert all(np.array_equal(one, other) for one, other in zip(whole, parts, strict=True))


def test_each_row_keeps_its_nearest() -> None:
    rows = np.array([[1, 0], [1, 0.01], [1, 0.02], [1, 0.03]], dtype=np.float32)
    left, right, _ = similar_pairs(rows, 0.8, max_per_node=1)
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [(0, 1)] or len(left) <= 2
    assert np.bincount(np.concatenate([left, right])).max() <= 1


def test_rows_without_direction_have_no_pairs() -> None:
    rows = np.array([[0, 0], [np.nan, 1], [1, 0], [1, 0]], dtype=np.float32)
    left, right, cosine = similar_pairs(rows)
    assert (left.tolist(), right.tolist(), cosine.tolist()) == ([2], [3], [1.0])
