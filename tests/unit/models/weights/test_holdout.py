"""Comparing two scorings on choices that taught neither."""

import numpy as np
import pytest

from models.weights import Pairs, accuracy_by_turn, compare


def choices(*rows: tuple[int, int, int, float]) -> Pairs:
    turn, preferred, other = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    return Pairs(
        turn, preferred, other, np.array([row[3] for row in rows]), np.ones(len(rows), bool)
    )


def test_accuracy_is_the_weighted_share_of_pairs_ordered_right_and_a_tie_counts_half() -> None:
    scores = np.array([2.0, 1.0, 1.0])
    told = accuracy_by_turn(scores, choices((4, 0, 1, 3.0), (4, 1, 0, 1.0), (9, 1, 2, 1.0)))
    assert told.tolist() == [0.75, 0.5]


def test_the_difference_is_paired_and_each_turn_counts_once() -> None:
    before, after = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    seen = choices(*[(0, 0, 1, 1.0)] * 9, (1, 1, 0, 1.0), (2, 0, 1, 1.0))
    found = compare(before, after, seen)
    assert (found.turns, found.before, found.after) == (
        3,
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
    )
    assert found.difference == pytest.approx(1 / 3)
    assert found.low < found.difference < found.high


def test_too_few_turns_leave_the_interval_open() -> None:
    scores = np.array([0.3, 0.1])
    assert compare(scores, scores, choices()).turns == 0
    assert compare(scores, scores, choices((0, 0, 1, 1.0))).high == np.inf
