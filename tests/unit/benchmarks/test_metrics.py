"""Figures of a ranking against values computed by hand, the exponent of the context, and what
confidence tells.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.cases import Case
from benchmarks.evaluation.metrics import (
    all_gold_at,
    estimate_alpha,
    interval,
    ndcg_at,
    score,
    summarise_abstention,
)
from benchmarks.evaluation.rankers import Ranking
from models.ranker.infer import auroc, difference, recall_at, reciprocal_rank
from schemas.answer import ContextFactor, Conveyance

RANKED = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("k", "recall", "all_gold"), [(1, 0.0, 0.0), (2, 0.5, 0.0), (4, 1.0, 1.0), (9, 1.0, 1.0)]
)
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
    assert high - low == pytest.approx(
        2 * 1.96 * 0.05, abs=0.02
    )  # standard error of the mean: 0.5 / sqrt(100)
    assert interval(values) == (low, high)
    assert interval(np.ones(10)) == (1.0, 1.0)


def test_a_clear_gain_is_significant_and_none_is_not():
    ours, theirs = np.array([1.0] * 20 + [0.0] * 20), np.zeros(40)
    better = difference(ours, theirs)
    assert better.mean == 0.5
    assert 0.0 < better.low < 0.5 < better.high
    assert better.p < 0.001
    assert difference(theirs, theirs).p == 1.0
    worse = difference(theirs, ours)
    assert (worse.mean, worse.p) == (-0.5, better.p)


def _conveyed(context, who=1.0, what=0.5, where=0.8):
    factor = ContextFactor(
        local=context, intent=context, action=context, ground=context, value=context
    )
    return Conveyance(what=what, where=where, who=who, time=0.1, context=factor, value=0.0)


@given(st.floats(0.2, 3.0), st.lists(st.floats(0.1, 1.0), min_size=2, max_size=6))
def test_answers_made_with_an_exponent_give_it_back(alpha, contexts):
    one = [_conveyed(context) for context in contexts]
    other = [_conveyed(context / 2) for context in contexts]
    quality = {
        name: [row.what * row.where * row.context.value**alpha for row in rows]
        for name, rows in (("a", one), ("b", other))
    }
    found = estimate_alpha(quality, {"a": one, "b": other})
    assert found["estimate"] == pytest.approx(alpha, abs=1e-3)
    assert found["pairs"] == len(contexts)


def test_only_answers_to_the_same_reader_are_compared():
    found = estimate_alpha(
        {"a": [0.5], "b": [0.9]}, {"a": [_conveyed(0.5)], "b": [_conveyed(0.9, who=0.5)]}
    )
    assert found == {"estimate": None, "pairs": 0, "assumed": 1.7}


def test_auroc_is_the_chance_that_an_answerable_question_is_surer():
    assert auroc(np.array([0.9, 0.8]), np.array([0.1, 0.2])) == 1.0
    assert auroc(np.array([0.1]), np.array([0.9])) == 0.0
    assert auroc(np.array([0.5, 0.9]), np.array([0.5])) == pytest.approx(0.75)  # a tie counts half


def test_adversarial_questions_count_as_unanswerable_and_baselines_have_no_confidence():
    cases = [
        Case("1", "who?", frozenset({"a"})),
        Case("2", "when?", frozenset({"b"})),
        Case("3", "why?", frozenset({"c"}), is_answerable=False),
    ]
    ours = [
        Ranking(("a",), 1.0, confidence=0.9),
        Ranking((), 1.0, confidence=0.4),
        Ranking(("c",), 1.0, confidence=0.2),
    ]
    theirs = [Ranking(("a",), 1.0)] * 3
    scores = {"auto": score(cases, ours, (5,)), "bm25": score(cases, theirs, (5,))}
    found = summarise_abstention(cases, scores, {"auto": [0.3]})
    assert list(found) == ["auto"]
    row = found["auto"]
    assert (row["answerable"], row["unanswerable"]) == (2, 2)
    assert (row["wrong_abstention"], row["abstained"], row["auroc"]) == (0.5, 1.0, 1.0)
    assert row["ece"] == pytest.approx(0.25)  # .9 where it was found, .4 where it was not
