"""The line of the default ranking: nothing to learn is the shipped ranking, and a column that tells is weighed."""

from __future__ import annotations

import numpy as np

from hades.retrieval.ranking.default_ranking import standard
from models.rankings import Choice, fit_line


def choices(count: int = 40, told: int = 0) -> list[Choice]:
    """Questions whose gold is where column `told` is highest, and about which the worth says nothing."""
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
    first = [sum(one.ranking(given)[0] == "part 0" for one in held) for given in (line, np.zeros(3))]
    assert first[0] > first[1]


def test_where_nothing_can_be_chosen_the_line_is_zero():
    none = [Choice(np.zeros(2), np.ones((2, 3)), np.zeros((1, 2), np.bool_))]
    assert fit_line(none, 3).tolist() == [0.0, 0.0, 0.0]
    assert standard(np.ones(4)).tolist() == [0.0] * 4


def test_a_ranking_names_the_part_that_a_candidate_serves():
    one = Choice(np.array([0.0, 1.0, 2.0]), np.zeros((3, 1)), np.array([[True, False, False], [False, False, True]]))
    assert one.ranking(np.zeros(1)) == ("part 1", "1", "part 0")
    assert one.parts == {"part 0", "part 1"}
