"""Readers whose preferences are known: the learner finds their order, and a closed loop amplifies
nothing.
"""

import numpy as np
import pytest
from scipy.stats import kendalltau

from models.weights import Pairs, Results, learn_offsets
from tests.unit.models.weights.simulated_readers import found_good

SHOWN = 6
ONE_EDGE_EACH = Results(np.arange(21), np.arange(20))


def choices(shown: np.ndarray, good: np.ndarray, power: float) -> Pairs:
    """Good above everything else of its list, counting as the rank was unlikely to be looked at."""
    turn, rank, other = np.nonzero(good[:, :, None] & ~np.eye(shown.shape[1], dtype=bool))
    weight = 0.5 * ((rank + 1) / SHOWN) ** power / (shown.shape[1] - 1)
    return Pairs(turn, shown[turn, rank], shown[turn, other], weight, np.ones(len(turn), bool))


@pytest.mark.parametrize(("power", "seed"), [(0.5, 0), (1.0, 0)])
def test_the_order_of_readers_preferences_is_recovered_from_biased_choices(
    power: float, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    worth = chance.permutation(np.linspace(0.1, 0.9, 20))
    prior = chance.normal(0.0, 0.5, 20)
    shown = np.argsort(chance.random((2_500, 20)), axis=1)[:, :SHOWN]
    shown = np.take_along_axis(
        shown, np.argsort(-prior[shown], axis=1), axis=1
    )  # the prior decides who stands first
    good = found_good(worth[shown], power, chance)

    def order_after(correction: float) -> float:
        found = learn_offsets(
            prior, ONE_EDGE_EACH, choices(shown, good, correction), rate=0.25, radius=2.0
        )
        return float(kendalltau(prior + found, worth).statistic)

    assert kendalltau(prior, worth).statistic < 0.4
    assert order_after(power) >= 0.9
    assert (
        order_after(0.0) < 0.8
    )  # without the correction, what stood first looks better than it is


def night(chance: np.random.Generator, worth: np.ndarray, score: np.ndarray, turns: int) -> tuple:
    """What the best six of one night's weights were found to be."""
    shown = np.tile(np.argsort(-score, kind="stable")[:SHOWN], (turns, 1))
    return shown, found_good(worth[shown], 1.0, chance)


def test_what_is_always_shown_and_never_preferred_never_gains() -> None:
    chance = np.random.default_rng(5)
    worth = np.linspace(0.2, 0.7, 20)
    worth[0] = 0.0
    prior = np.linspace(1.0, -1.0, 20)  # the worthless one stands first
    logs, offsets = [], np.zeros(20)
    for _ in range(30):
        logs.append(night(chance, worth, prior + offsets, 25))
        shown, good = (np.concatenate(parts) for parts in zip(*logs, strict=True))
        before = offsets
        offsets = learn_offsets(
            prior, ONE_EDGE_EACH, choices(shown, good, 1.0), rate=0.25, radius=1.5
        )
        assert offsets[0] <= before[0] <= 0.0
    assert offsets[0] < -0.5  # it left the list, after which nothing is said of it
    assert np.argsort(-(prior + offsets))[0] != 0
    never_good = np.setdiff1d(np.arange(20), shown[good])
    assert (offsets[never_good] <= 0.0).all()


def test_of_two_equally_good_results_the_one_that_began_ahead_does_not_run_away() -> None:
    chance = np.random.default_rng(8)
    worth, prior = np.full(20, 0.1), np.full(20, -3.0)
    worth[:2], prior[:2] = 0.6, (0.5, 0.0)
    logs, offsets = [], np.zeros(20)
    for _ in range(20):
        logs.append(night(chance, worth, prior + offsets, 50))
        shown, good = (np.concatenate(parts) for parts in zip(*logs, strict=True))
        offsets = learn_offsets(
            prior, ONE_EDGE_EACH, choices(shown, good, 1.0), rate=0.25, radius=1.5
        )
    gap = (prior + offsets)[0] - (prior + offsets)[1]
    assert abs(gap) < 0.25
