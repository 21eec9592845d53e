"""One weight from four parts, calibrated to a median of one half, and the cost that follows from
it.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.weights import BIAS_STEP, PARTS, bias_for, costs, logits, squash

units = st.floats(0.0, 1.0)
ONE_TYPE = {
    name: np.array([value], np.float32)
    for name, value in zip(PARTS, (4.0, 3.0, 2.0, 1.0), strict=True)
}


def parts_of(*rows: tuple[float, float, float, float]) -> dict[str, np.ndarray]:
    return dict(zip(PARTS, np.array(rows, dtype=np.float32).T, strict=True))


def no_types(rows: int) -> np.ndarray:
    return np.zeros(rows, dtype=np.uint8)


@given(st.lists(st.tuples(units, units, units, units), min_size=1, max_size=40), st.floats(-8, 8))
def test_weights_are_the_logistic_function_of_the_weighted_parts(rows: list, bias: float) -> None:
    found = squash(logits(parts_of(*rows), no_types(len(rows)), ONE_TYPE), bias)
    for row, weight in zip(rows, found.tolist(), strict=True):
        total = bias + sum(factor * part for factor, part in zip((4, 3, 2, 1), row, strict=True))
        assert weight == pytest.approx(1 / (1 + math.exp(-total)), rel=5e-6)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=200), st.sampled_from([0.3, 0.5]))
def test_half_of_the_edges_weigh_no_more_than_the_median_but_for_the_grid(
    sums: list[float], median: float
) -> None:
    values = np.array(sums, dtype=np.float32)
    weights = squash(values, bias_for(values, median))
    assert np.quantile(weights, 0.5, method="lower") <= median + BIAS_STEP / 8 + 1e-6
    assert np.quantile(weights, 0.5, method="higher") >= median - BIAS_STEP / 8 - 1e-6


def test_weights_of_extreme_sums_stay_between_zero_and_one() -> None:
    low, middle, high = squash(np.array([-1e9, 0.0, 1e9], dtype=np.float32), 0.0).tolist()
    assert 0.0 < low < 1e-30
    assert (middle, high) == (0.5, 1.0)


@given(st.lists(units, min_size=1, max_size=40), st.floats(0.01, 1.0))
def test_cost_is_never_negative_and_falls_with_the_weight(
    weights: list[float], boost: float
) -> None:
    found = costs(
        np.sort(np.array(weights, np.float32)),
        no_types(len(weights)),
        np.array([boost], np.float32),
        1e-6,
    )
    assert (found >= 0).all()
    assert (np.diff(found) <= 0).all()
    assert np.isfinite(found).all()


def test_cost_is_the_negative_logarithm_of_weight_times_boost() -> None:
    weights, boosts = np.array([0.5, 1.0, 0.0], np.float32), np.array([1.0, 0.8], np.float32)
    found = costs(weights, np.array([1, 0, 0], dtype=np.uint8), boosts, 1e-6)
    assert found == pytest.approx([-math.log(0.4), 0.0, -math.log(1e-6)], abs=1e-6)
    assert math.copysign(1, found[1]) == 1  # not minus zero
