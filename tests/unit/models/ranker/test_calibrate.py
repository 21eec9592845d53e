"""Confidence: rising, bounded, and right as often as it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.ranker.infer import doubt_threshold, expected_calibration_error, isotonic, reliability


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=60))
def test_confidence_never_falls_as_the_score_rises(rows: list[tuple[float, bool]]) -> None:
    scores, right = np.array([row[0] for row in rows]), np.array([float(row[1]) for row in rows])
    knots, chances = isotonic(scores, right)
    assert (np.diff(chances) >= 0).all()
    assert (chances > 0).all()
    assert (chances < 1).all()
    asked = np.linspace(-6, 6, 50)
    assert (np.diff(np.interp(asked, knots, chances)) >= -1e-12).all()


def test_what_is_right_one_time_in_four_is_said_with_a_quarter() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(size=20_000)
    right = (random.random(20_000) < 1 / (1 + np.exp(-scores))).astype(float)
    half = np.arange(20_000) < 10_000
    chances = np.interp(scores[~half], *isotonic(scores[half], right[half]))
    assert expected_calibration_error(chances, right[~half]) < 0.02
    assert np.interp(-1.0986, *isotonic(scores, right)) == pytest.approx(0.25, abs=0.05)


def test_the_error_is_the_distance_between_what_was_said_and_what_came() -> None:
    chance, right = np.array([0.9, 0.9, 0.1, 0.1]), np.array([1.0, 0.0, 0.0, 0.0])
    assert expected_calibration_error(chance, right) == pytest.approx((0.4 * 2 + 0.1 * 2) / 4)
    assert reliability(chance, right) == [(pytest.approx(0.1), 0.0, 2), (pytest.approx(0.9), 0.5, 2)]


def test_doubt_silences_no_more_than_it_may_of_what_can_be_answered() -> None:
    best = np.concatenate([np.linspace(0.5, 0.99, 50), np.linspace(0.01, 0.6, 50)])
    can = np.arange(100) < 50
    cut = doubt_threshold(best, can, most_lost=0.1)
    assert (best[can] < cut).sum() == 5
    assert (best[~can] < cut).sum() > 40
    assert doubt_threshold(best, np.zeros(100, np.bool_)) == 0.0
