"""What a home learns: nothing to learn is the shipped ranking, a column or signal that tells is
weighed.
"""

from __future__ import annotations

import numpy as np
import pytest

from hades.retrieval.ranking.default_ranking import standard
from models.rankings import LEAST_OWN, LEAST_SURE, Choice, fit_line, fit_margin


def choices(count: int = 40, told: int = 0) -> list[Choice]:
    """Questions whose gold is where column `told` is highest, and about which the worth says
    nothing.
    """
    rng = np.random.default_rng(7)
    made = []
    for _ in range(count):
        columns = rng.normal(size=(8, 3))
        gold = np.zeros((1, 8), np.bool_)
        gold[0, columns[:, told].argmax()] = True
        made.append(Choice(standard(rng.normal(size=8)), columns, gold))
    return made


def test_a_column_that_tells_is_weighed_and_a_stronger_ridge_moves_less():
    line, tame = fit_line(choices(), 3, ridge=0.1), fit_line(choices(), 3, ridge=3.0)
    assert line.argmax() == 0
    assert 0.0 < tame[0] < line[0]
    held = choices(60)[40:]
    first = [
        sum(one.ranking(given)[0] == "part 0" for one in held) for given in (line, np.zeros(3))
    ]
    assert first[0] > first[1]


def test_where_nothing_can_be_chosen_the_line_is_zero():
    none = [Choice(np.zeros(2), np.ones((2, 3)), np.zeros((1, 2), np.bool_))]
    assert fit_line(none, 3).tolist() == [0.0, 0.0, 0.0]
    assert standard(np.ones(4)).tolist() == [0.0] * 4


def test_a_ranking_names_the_part_that_a_candidate_serves():
    one = Choice(
        np.array([0.0, 1.0, 2.0]),
        np.zeros((3, 1)),
        np.array([[True, False, False], [False, False, True]]),
    )
    assert one.ranking(np.zeros(1)) == ("part 1", "1", "part 0")
    assert one.parts == {"part 0", "part 1"}


def margins(count: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shipped margins that answer everything, two signals of which the first tells, and what has an
    answer.
    """
    rng = np.random.default_rng(3)
    is_answerable = np.arange(count) % 2 == 0
    tells = np.where(is_answerable, rng.normal(2.0, 1.0, count), rng.normal(-2.0, 1.0, count))
    return (
        3.0 + rng.normal(size=count),
        np.column_stack([tells, rng.normal(size=count), np.ones(count)]),
        is_answerable,
    )


def test_a_signal_that_tells_says_when_not_to_answer_people():
    shipped, signals, is_answerable = margins()
    learned = shipped + signals @ fit_margin(
        shipped, signals, is_answerable, np.ones(len(shipped), np.bool_), ridge=0.01
    )
    assert (shipped < 0).sum() == 0
    assert np.mean(learned[is_answerable] < 0) <= LEAST_SURE
    assert np.mean(learned[~is_answerable] < 0) > 0.5


@pytest.mark.parametrize(
    "own", [slice(0), slice(0, 2 * LEAST_OWN - 2), slice(1, None, 2)]
)  # none, few, none answerable
def test_an_exam_makes_no_answerable_question_less_sure_than_the_shipped_rule_has_it(own: slice):
    shipped, signals, is_answerable = margins()
    is_own = np.zeros(len(shipped), np.bool_)
    is_own[own] = True
    rule = fit_margin(shipped, signals, is_answerable, is_own)
    before, now = (
        np.quantile(one[is_answerable], LEAST_SURE) for one in (shipped, shipped + signals @ rule)
    )
    assert rule[0] > abs(rule[1])
    assert now >= before - 1e-6 > 0.0
