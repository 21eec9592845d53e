"""Figures of a ranking, against values computed by hand, and the properties that every ranking has."""

import math

import numpy as np
import pytest

from hades.evaluation.metrics import all_gold_at, compare, interval, ndcg_at
from models.ranker.infer import recall_at, reciprocal_rank

RANKED = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize(("k", "recall", "all_gold"), [(1, 0.0, 0.0), (2, 0.5, 0.0), (4, 1.0, 1.0), (9, 1.0, 1.0)])
def test_recall_counts_the_gold_among_the_first_k(k, recall, all_gold):
    gold = frozenset({"b", "d"})
    assert (recall_at(RANKED, gold, k), all_gold_at(RANKED, gold, k)) == (recall, all_gold)


def test_reciprocal_rank_is_of_the_first_gold():
    assert reciprocal_rank(RANKED, frozenset({"d", "c"})) == 1 / 3
    assert reciprocal_rank(RANKED, frozenset({"z"})) == 0.0


def test_ndcg_discounts_by_the_logarithm_of_the_place():
    found = 1 / math.log2(3) + 1 / math.log2(5)  # places 2 and 4
    best = 1 / math.log2(2) + 1 / math.log2(3)
    assert ndcg_at(RANKED, frozenset({"b", "d"}), 5) == pytest.approx(found / best)
    assert ndcg_at(RANKED, frozenset({"a", "b"}), 5) == pytest.approx(1.0)


def test_interval_holds_the_mean_and_is_had_again():
    values = np.array([0.0, 1.0] * 50)
    low, high = interval(values)
    assert low < 0.5 < high
    assert high - low == pytest.approx(2 * 1.96 * 0.05, abs=0.02)  # standard error of the mean: 0.5 / sqrt(100)
    assert interval(values) == (low, high)
    assert interval(np.ones(10)) == (1.0, 1.0)


def test_a_clear_gain_is_significant_and_none_is_not():
    ours, theirs = np.array([1.0] * 20 + [0.0] * 20), np.zeros(40)
    better = compare(ours, theirs)
    assert better.difference == 0.5
    assert 0.0 < better.low < 0.5 < better.high
    assert better.p < 0.001
    assert compare(theirs, theirs).p == 1.0
    worse = compare(theirs, ours)
    assert (worse.difference, worse.p) == (-0.5, better.p)
