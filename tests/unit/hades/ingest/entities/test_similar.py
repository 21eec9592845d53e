"""Pairs of nearly parallel vectors."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hades.ingest.entities import vectors as similar
from hades.ingest.entities.vectors import PairCache, find_similar_pairs, similar_pairs, vector_digests
from tests.patience import examples


def vectors(seed: int, n_rows: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(n_rows, 4)).astype(np.float32)


@settings(max_examples=examples(13), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 40), st.sampled_from([0.5, 0.8, 0.95]))
def test_finds_every_pair_above_the_threshold(seed: int, n_rows: int, threshold: float) -> None:
    rows = vectors(seed, n_rows).astype(np.float64)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True) if n_rows else rows
    expected = [
        (i, j) for i in range(n_rows) for j in range(i + 1, n_rows) if np.einsum("i,i->", unit[i], unit[j]) >= threshold
    ]
    left, right, cosine = similar_pairs(rows.astype(np.float32), threshold, max_per_node=max(1, n_rows))
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected
    assert ((cosine >= threshold) & (cosine <= 1.0)).all()


def test_the_number_does_not_depend_on_how_rows_are_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = vectors(7, 50)
    whole = similar_pairs(rows, 0.7)
    monkeypatch.setattr(similar, "_BLOCK", 3)
    parts = similar_pairs(rows, 0.7)
    assert all(np.array_equal(one, other) for one, other in zip(whole, parts, strict=True))


@settings(max_examples=examples(13), deadline=None)
@given(st.lists(st.lists(st.integers(0, 60), max_size=40), min_size=1, max_size=4), st.integers(1, 4))
def test_pairs_with_a_cache_are_those_without_one(history: list[list[int]], most: int) -> None:
    pool = np.round(vectors(3, 61) * 2)  # few different vectors: some rows are equal, one may be zero
    pool[0] = 0
    with tempfile.TemporaryDirectory() as folder:
        for chosen in history:
            rows = pool[np.array(chosen, dtype=np.int64)]
            cached = similar_pairs(rows, 0.8, most, PairCache(Path(folder)))
            assert all(map(np.array_equal, cached, similar_pairs(rows, 0.8, most)))


def test_only_vectors_that_the_cache_does_not_know_are_compared(tmp_path: Path) -> None:
    rows, cache = vectors(5, 30), PairCache(tmp_path)
    digests = np.unique(vector_digests(rows, np.arange(30)))
    similar_pairs(rows[:29], 0.8, cache=cache)
    assert np.count_nonzero(~cache.find(digests, 0.8).is_known) == 1
    assert not cache.find(digests, 0.7).is_known.any()


def test_only_vectors_that_are_new_or_near_a_new_one_are_read(tmp_path: Path) -> None:
    rows, cache = vectors(5, 30), PairCache(tmp_path)
    rows[29] = rows[0] + 0.01
    digests, asked = vector_digests(rows, np.arange(30)), []

    def fetch(wanted: NDArray[np.int64]) -> NDArray[np.float32]:
        asked.append(wanted.tolist())
        return rows[wanted]

    find_similar_pairs(digests[:29], fetch, 0.8, 30, cache)
    asked.clear()
    left, right, _ = find_similar_pairs(digests, fetch, 0.8, 30, cache)
    near = {*left[right == 29].tolist(), 29}
    assert len(near) > 1
    assert asked == [[29], sorted(near)]
    asked.clear()
    find_similar_pairs(digests, fetch, 0.8, 30, PairCache(tmp_path))
    find_similar_pairs(digests[3:], fetch, 0.8, 30, PairCache(tmp_path))
    assert asked == []


@pytest.mark.parametrize("damage", [b"", b"no archive", None])
def test_a_damaged_cache_changes_no_pair(tmp_path: Path, damage: bytes | None) -> None:
    rows, cache = vectors(5, 30), PairCache(tmp_path)
    whole = similar_pairs(rows, 0.8, cache=cache)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-200] if damage is None else damage)
    assert all(map(np.array_equal, similar_pairs(rows, 0.8, cache=cache), whole))
    assert all(map(np.array_equal, similar_pairs(rows, 0.8, cache=cache), whole))


def test_each_row_keeps_its_nearest() -> None:
    rows = np.array([[1, 0], [1, 0.01], [1, 0.02], [1, 0.03]], dtype=np.float32)
    left, right, _ = similar_pairs(rows, 0.8, max_per_node=1)
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [(0, 1)] or len(left) <= 2
    assert np.bincount(np.concatenate([left, right])).max() <= 1


def test_rows_without_direction_have_no_pairs() -> None:
    rows = np.array([[0, 0], [np.nan, 1], [1, 0], [1, 0]], dtype=np.float32)
    left, right, cosine = similar_pairs(rows)
    assert (left.tolist(), right.tolist(), cosine.tolist()) == ([2], [3], [1.0])


def test_a_threshold_that_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError):
        similar_pairs(vectors(1, 2), threshold=0.0)
