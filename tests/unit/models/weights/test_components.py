"""The parts of a weight: similarity, support, freshness, and what an unknown one counts."""

import math

import numpy as np
import pytest

from models.weights import NEUTRAL, fill, freshness, neutral_of, similarity, support

NONE = np.array([np.nan], dtype=np.float32)


def longs(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def codes(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint8)


def test_similarity_is_the_cosine_of_the_ends() -> None:
    vectors = np.array([[1, 0], [3, 4], [0, 2], [-1, 0]], dtype=np.float32)
    found = similarity(vectors, longs(0, 0, 0, 1), longs(1, 2, 3, 1))
    assert found == pytest.approx(
        [0.6, 0.0, 0.0, 1.0], abs=1e-7
    )  # the opposite counts as unrelated


def test_similarity_to_what_has_no_vector_is_unknown() -> None:
    vectors = np.array([[1, 0], [0, 0]], dtype=np.float32)
    found = similarity(vectors, longs(-1, 0, 0), longs(0, -1, 1))
    assert np.isnan(found).all()  # nor does a vector of length 0 point anywhere
    assert np.isnan(similarity(np.zeros((0, 0), np.float32), longs(-1), longs(-1))).all()


def test_support_grows_with_the_logarithm_and_ends_at_one() -> None:
    found = support(longs(0, 1, 3, 15, 4_000), np.full(5, np.nan), full=15)
    assert found.tolist() == [0.0, 0.25, 0.5, 1.0, 1.0]


def test_a_weak_association_supports_less() -> None:
    assert support(longs(3, 3), np.array([np.nan, 0.2], np.float32), full=15) == pytest.approx(
        [0.5, 0.1], abs=1e-7
    )


def test_freshness_falls_by_e_in_each_time_constant_of_the_type() -> None:
    tau = np.array([100.0, 1000.0])
    found = freshness(longs(0, 100, 100, 1000), codes(0, 0, 1, 1), tau)
    assert found == pytest.approx([1.0, math.exp(-1), math.exp(-0.1), math.exp(-1)], abs=1e-6)


def test_an_event_after_as_of_is_fresh_and_one_long_ago_is_not() -> None:
    found = freshness(longs(-400, 700_000), codes(0, 0), np.array([30.0]))
    assert found.tolist() == [1.0, 0.0]


def test_unknown_values_count_the_median_of_the_known() -> None:
    values = np.array([0.1, np.nan, 0.9, 0.3], dtype=np.float32)
    assert neutral_of(values) == 0.3
    assert fill(values, 0.3) == pytest.approx([0.1, 0.3, 0.9, 0.3])
    assert neutral_of(NONE) == NEUTRAL
