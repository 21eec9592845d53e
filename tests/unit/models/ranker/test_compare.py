"""Two rankings compared, and what a new ranker would have earned, held against readers whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from models.ranker.compare import Difference, LoggedResults, by_examination, difference, inverse_propensity
from models.weights.learn import propensities, swap_places
from tests.unit.models.weights.simulated_readers import examination, found_good

RANKS = np.arange(1, 7)
POWER = 1.0


def table(*rows: tuple[int, float, float, float]) -> LoggedResults:
    columns = list(zip(*rows, strict=True))
    return LoggedResults(np.array(columns[0]), *(np.array(column) for column in columns[1:]))


def explored(chance: np.random.Generator, turns: int, share: float) -> tuple[np.ndarray, ...]:
    """The place each shown result came from, what readers found good, and the chance of each place."""
    place = swap_places(turns, len(RANKS), share, chance)
    return place, found_good(WORTH[place], POWER, chance), propensities(place, share)


WORTH = np.array([0.2, 0.7, 0.3, 0.6, 0.5, 0.4])
BETTER = np.array([1, 0, 3, 2, 4, 5])  # the new ranker's order: two pairs of neighbours the other way round
TRUTH = float((WORTH[BETTER] * examination(RANKS, POWER)).sum())


def test_weights_make_up_for_what_was_shown_too_seldom() -> None:
    found = inverse_propensity(table((0, 1.0, 0.5, 1.0), (0, 0.0, 0.5, 1.0), (1, 1.0, 0.25, 0.5)))
    assert (found.value, found.questions) == (2.0, 2)
    assert found.low <= found.value <= found.high


def test_the_value_of_a_ranker_that_never_served_is_told_within_a_tenth() -> None:
    place, good, propensity = explored(np.random.default_rng(0), 6_000, 0.4)
    question = np.repeat(np.arange(6_000), 6)
    target = (place == BETTER).astype(float)
    found = inverse_propensity(LoggedResults(question, good.ravel().astype(float), propensity.ravel(), target.ravel()))
    assert found.value == pytest.approx(TRUTH, rel=0.1)
    assert found.low < TRUTH < found.high
    assert found.high - found.low < 0.2 * TRUTH


def test_without_exploration_how_ranks_are_looked_at_stands_in() -> None:
    chance = np.random.default_rng(1)
    good = found_good(np.tile(WORTH, (6_000, 1)), POWER, chance)
    new_rank = np.tile(np.argsort(BETTER) + 1, 6_000)
    question, rank = np.repeat(np.arange(6_000), 6), np.tile(RANKS, 6_000)
    found = inverse_propensity(by_examination(question, good.ravel().astype(float), rank, new_rank, POWER))
    assert found.value == pytest.approx(TRUTH, rel=0.1)
    assert found.low < TRUTH < found.high
    taken = np.tile(WORTH, (6_000, 1)) * examination(RANKS, POWER)
    assert taken.sum(axis=1)[0] < found.low  # and it says that the new one is better


def test_cutting_large_weights_lowers_the_estimate_and_says_how_many_were_cut() -> None:
    rows = table((0, 1.0, 0.01, 1.0), (1, 1.0, 1.0, 1.0))
    assert inverse_propensity(rows).value == 50.5
    cut = inverse_propensity(rows, clip=10.0)
    assert (cut.value, cut.clipped) == (5.5, 0.5)
    assert inverse_propensity(rows).effective < cut.effective < 2.0


def test_a_result_that_cannot_have_been_shown_is_refused() -> None:
    with pytest.raises(ValueError, match="propensity is 0"):
        table((0, 1.0, 0.0, 1.0))


def test_a_result_left_out_by_the_new_ranker_earns_nothing() -> None:
    logged = by_examination(np.array([0, 0]), np.array([1.0, 1.0]), np.array([1, 2]), np.array([0, 1]), 1.0)
    assert inverse_propensity(logged).value == 2.0


def test_an_empty_log_says_nothing() -> None:
    nothing = LoggedResults(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
    found = inverse_propensity(nothing)
    assert (found.value, found.questions, found.high) == (0.0, 0, np.inf)


def test_a_difference_is_the_mean_over_sets_with_an_interval_and_a_chance() -> None:
    random = np.random.default_rng(0)
    theirs = random.random(300)
    sets = ["large"] * 250 + ["small"] * 49 + ["one"]
    better = difference(theirs + 0.1 + 0.02 * random.standard_normal(300), theirs, sets)
    assert better.mean == pytest.approx(0.1, abs=0.02)
    assert better.low < better.mean < better.high
    assert better.low > 0.05
    assert better.p < 0.001
    assert difference(theirs, theirs, sets) == Difference(0.0, 0.0, 0.0, 1.0)
    noise = difference(theirs + 0.1 * random.standard_normal(300), theirs, [*sets[:299], "small"])
    assert noise.low < 0 < noise.high
    assert noise.p > 0.01
