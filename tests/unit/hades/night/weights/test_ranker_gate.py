"""The gate: a better ranker passes, a degraded or lucky one is refused, and the reason says why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hades.night.exam.questions import ExamQuestion
from hades.night.ranker.questions import Quality, decide, quality
from hades.night.ranker.stage import RecordedTurn, fit_abstention
from models.rankings import Choice

HAND = "weights by hand"
SETS = ["here"] * 100 + ["there"] * 100


def graded(mean: float, seed: int = 0, n: int = 200) -> Quality:
    random = np.random.default_rng(seed)
    return figures(*(np.clip(random.normal(mean, 0.2, n), 0.0, 1.0) for _ in range(2)))


def figures(mrr: np.ndarray, recall: np.ndarray) -> Quality:
    return {"quality": (mrr + recall) / 2.0, "mrr": mrr, "recall": recall}


def shifted(one: Quality, by: float, rows: slice = slice(None)) -> Quality:
    mrr, recall = one["mrr"].copy(), one["recall"].copy()
    mrr[rows] += by
    recall[rows] += by
    return figures(mrr, recall)


def test_figures_are_reciprocal_rank_and_recall_at_five() -> None:
    found = quality([list("abcdefg"), list("xy")], [frozenset("bg"), frozenset("z")])
    assert found["mrr"].tolist() == [0.5, 0.0]
    assert found["recall"].tolist() == [0.5, 0.0]


def test_a_difference_of_nothing_has_no_sign() -> None:
    base = graded(0.6, 1)
    for other in (base, shifted(base, 1e-6)):
        assert decide(base, {HAND: other}, SETS)["reason"].startswith(
            f"not better than {HAND}: 0.0000, interval from 0.0000"
        )


def test_a_better_ranker_passes_and_its_figures_are_kept() -> None:
    base = graded(0.6)
    verdict = decide(shifted(base, 0.05), {HAND: base, "the champion": shifted(base, 0.02)}, SETS)
    assert verdict["is_better"]
    assert verdict["reason"] == "better than weights by hand and the champion"
    assert verdict["figures"][HAND]["mrr"]["mean"] == pytest.approx(0.05)
    assert verdict["figures"]["the champion"]["sets"]["there"]["recall"] == pytest.approx(0.03)


def test_a_rule_of_abstention_is_judged_by_both_kinds_of_questions() -> None:
    kinds = ["answerable"] * 100 + ["not answerable"] * 100
    silent = np.array([1.0] * 100 + [0.0] * 100)
    for answered, abstained, passes in ((100, 20, True), (97, 30, False), (100, 0, False)):
        right = np.array(
            [1.0] * answered
            + [0.0] * (100 - answered)
            + [1.0] * abstained
            + [0.0] * (100 - abstained)
        )
        verdict = decide(
            {"quality": right, "decided": right},
            {"the rule": {"quality": silent, "decided": silent}},
            kinds,
        )
        assert verdict["is_better"] is passes, verdict["reason"]


def test_turns_in_which_nothing_was_doubted_teach_no_abstention() -> None:
    sides = [
        ExamQuestion("link", f"{n}?", (("c",),), key=f"{n:064x}", is_answerable=n % 2 == 0)
        for n in range(40)
    ]
    choice = Choice(np.zeros(2), np.zeros((2, 5)), np.array([[True, False]]))
    asked = [RecordedTurn(one, np.zeros(3, np.float32), np.arange(2), choice) for one in sides]
    assert fit_abstention(asked, None).verdict["reason"] == "not fitted: too few questions"
    doubted = [
        replace(one, margin=1.0, signals=np.array([0.1, 0.1, 0.1, 0.0, 1.0])) for one in asked
    ]
    assert fit_abstention(doubted, None).arrays["abstain"].shape == (5,)


BASE = graded(0.6)
UNEVEN = shifted(shifted(BASE, 0.2, slice(0, 100)), -0.02, slice(100, 200))


@pytest.mark.parametrize(
    ("challenger", "rivals", "reason"),
    [
        (shifted(BASE, -0.05), {HAND: BASE}, "not better than weights by hand: -0.05"),
        (graded(0.6, 1), {HAND: graded(0.6, 2)}, "interval from"),  # it differs by chance
        (
            shifted(BASE, 0.05),
            {HAND: BASE, "the champion": shifted(BASE, 0.06)},
            "not better than the champion",
        ),
        (shifted(BASE, 0.008), {HAND: BASE}, "hardly better than weights by hand: +0.0080"),
        (UNEVEN, {HAND: BASE}, "worse than weights by hand on there"),
        (shifted(graded(0.6, n=10), 0.2), {HAND: graded(0.6, n=10)}, "10 questions tell nothing"),
    ],
)
def test_one_that_is_not_better_everywhere_is_refused(
    challenger: Quality, rivals: dict, reason: str
) -> None:
    verdict = decide(challenger, rivals, SETS[: len(challenger["mrr"])])
    assert not verdict["is_better"]
    assert reason in verdict["reason"]
