"""The confidence of an answer: what tells answerable questions from others, and how far its figure can be believed."""

import numpy as np
import pytest

from hades.evaluation.cases import Case
from hades.evaluation.metrics import score, summarise_abstention
from hades.evaluation.rankers import Ranking
from models.ranker.infer import auroc


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
