"""The learner on choices that a reader can check by hand."""

import math

import numpy as np
import pytest

from models.weights import CALM, Pairs, Results, learn_offsets, scores_of

FLAT = np.zeros(4)
# Three results: edges {0, 1}, {1, 2} and {3}.
RESULTS = Results(np.array([0, 2, 4, 5]), np.array([0, 1, 1, 2, 3]))


def pairs(*rows: tuple[int, int, int, float], lifts: bool = True) -> Pairs:
    turn, preferred, other = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    return Pairs(
        turn, preferred, other, np.array([row[3] for row in rows]), np.full(len(rows), lifts)
    )


def learned(
    chosen: Pairs, prior: np.ndarray = FLAT, rate: float = 0.5, radius: float = 1.0
) -> list[float]:
    return learn_offsets(prior, RESULTS, chosen, rate=rate, radius=radius).tolist()


def test_edges_of_the_preferred_gain_edges_of_the_other_lose_and_shared_ones_stay() -> None:
    first, shared, third, apart = learned(pairs((0, 0, 1, 1.0)))
    step = 0.5 * 0.5 / math.sqrt(CALM + 0.25)  # both score 0, so the surprise is one half
    assert (first, third) == (pytest.approx(step), pytest.approx(-step))
    assert (shared, apart) == (0.0, 0.0)


def test_a_choice_that_the_weights_foretold_teaches_less() -> None:
    expected, surprising = np.array([3.0, 0.0, 0.0, -3.0]), np.array([-3.0, 0.0, 0.0, 3.0])
    little, much = (learned(pairs((0, 0, 2, 1.0)), prior)[0] for prior in (expected, surprising))
    assert 0.0 < little < 0.05 < 0.3 < much < 0.5


def test_what_was_merely_not_rejected_does_not_gain() -> None:
    offsets = learned(pairs((0, 0, 2, 1.0), lifts=False))
    assert offsets[:2] == [0.0, 0.0]
    assert offsets[3] < 0.0


def test_a_result_scores_the_mean_of_its_edges() -> None:
    found = scores_of(
        np.array([1.0, 3.0, 5.0, 7.0]), Results(np.array([0, 2, 4, 4]), np.array([0, 1, 1, 2]))
    )
    assert found[:2].tolist() == [2.0, 4.0]
    assert np.isnan(found[2])
