"""The gate: a better ranker passes, a degraded or lucky one is refused, and the reason says why."""

from __future__ import annotations

import numpy as np
import pytest

from hades.build.ranker.questions import Quality, decide, quality

HAND = "weights by hand"
SETS = ["here"] * 100 + ["there"] * 100


def graded(mean: float, seed: int = 0, n: int = 200) -> Quality:
    random = np.random.default_rng(seed)
    return Quality(*(np.clip(random.normal(mean, 0.2, n), 0.0, 1.0) for _ in range(2)))


def shifted(one: Quality, by: float, rows: slice = slice(None)) -> Quality:
    mrr, recall = one.mrr.copy(), one.recall.copy()
    mrr[rows] += by
    recall[rows] += by
    return Quality(mrr, recall)


def test_figures_are_reciprocal_rank_and_recall_at_five() -> None:
    found = quality([list("abcdefg"), list("xy")], [frozenset("bg"), frozenset("z")])
    assert found.mrr.tolist() == [0.5, 0.0]
    assert found.recall.tolist() == [0.5, 0.0]


def test_a_difference_of_nothing_has_no_sign() -> None:
    base = graded(0.6, 1)
    for other in (base, shifted(base, 1e-6)):
        assert decide(base, {HAND: other}, SETS).reason.startswith(
            f"not better than {HAND}: 0.0000, interval from 0.0000"
        )


def test_a_better_ranker_passes_and_its_figures_are_kept() -> None:
    base = graded(0.6)
    verdict = decide(shifted(base, 0.05), {HAND: base, "the champion": shifted(base, 0.02)}, SETS)
    assert verdict.is_better
    assert verdict.reason == "better than weights by hand and the champion"
    assert verdict.figures[HAND]["mrr"]["mean"] == pytest.approx(0.05)
    assert verdict.figures["the champion"]["sets"]["there"]["recall"] == pytest.approx(0.03)


def test_a_degraded_ranker_is_refused() -> None:
    base = graded(0.6)
    verdict = decide(shifted(base, -0.05), {HAND: base}, SETS)
    assert not verdict.is_better
    assert "not better than weights by hand: -0.05" in verdict.reason


def test_one_that_differs_by_chance_is_refused() -> None:
    verdict = decide(graded(0.6, 1), {HAND: graded(0.6, 2)}, SETS)
    assert not verdict.is_better
    assert "interval from" in verdict.reason


def test_one_that_beats_the_hand_but_not_the_champion_is_refused() -> None:
    base = graded(0.6)
    verdict = decide(shifted(base, 0.05), {HAND: base, "the champion": shifted(base, 0.06)}, SETS)
    assert "not better than the champion" in verdict.reason


def test_one_that_pays_with_a_whole_set_is_refused() -> None:
    base = graded(0.6)
    uneven = shifted(shifted(base, 0.2, slice(0, 100)), -0.02, slice(100, 200))
    verdict = decide(uneven, {HAND: base}, SETS)
    assert not verdict.is_better
    assert "worse than weights by hand on there" in verdict.reason


def test_a_few_questions_tell_nothing() -> None:
    base = graded(0.6, n=10)
    assert "10 questions tell nothing" in decide(shifted(base, 0.2), {HAND: base}, ["here"] * 10).reason
