"""Beliefs from judged answers: counts, intervals, and that what is said is what is seen."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hades.retrieval.ranking.feedback import (
    Beliefs,
    Judgement,
    edge_key,
    judgements_in,
    learn_beliefs,
)


def test_each_judgement_moves_the_mean_and_narrows_the_interval():
    edge = edge_key("entities/b", "entities/a")
    assert edge == ("entities/a", "entities/b")
    beliefs = learn_beliefs([Judgement((edge,), True)] * 3 + [Judgement((edge,), False)])
    posterior = beliefs.of([edge])
    assert (posterior.alpha, posterior.beta, posterior.mean) == (4.0, 2.0, pytest.approx(2 / 3))
    low, high = posterior.interval()
    assert 0 < low < posterior.mean < high < 1
    more = (
        learn_beliefs([Judgement((edge,), True)] * 30 + [Judgement((edge,), False)] * 10)
        .of([edge])
        .interval()
    )
    assert more[1] - more[0] < high - low


def test_what_was_never_judged_has_the_prior():
    beliefs = Beliefs(prior=(2.0, 6.0))
    assert beliefs.of([("doc_chunks/x",)]).mean == 0.25
    assert not beliefs.knows([("doc_chunks/x",)])


def test_judgements_are_read_from_the_logs_of_turns():
    path = {
        "rank": 1,
        "score": 1.0,
        "reliability": 1.0,
        "origin": "beam",
        "nodes": ["c", "a", "b"],
        "edges": ["r/1", "r/2"],
    }
    shown = {
        "paths": [path],
        "passages": [{"rank": 1, "score": 1.0, "id": "p"}, {"rank": 2, "score": 0.5, "id": "q"}],
    }
    said = {
        "good": {"paths": [1], "passages": []},
        "bad": {"paths": [], "passages": [2]},
        "at": "2026-01-01T00:00:00Z",
    }
    logs = [
        {"results": json.dumps(shown), "feedback": json.dumps(said)},
        {"results": "{}", "feedback": "{}"},
    ]
    assert judgements_in(logs) == [
        Judgement((("a", "c"), ("a", "b")), True),
        Judgement((("q",),), False),
    ]


def test_chances_learned_from_feedback_are_calibrated_and_intervals_hold_the_truth():
    chance = np.random.default_rng(3)
    truth = chance.random(400)  # drawn from the prior, as a posterior assumes
    trials = chance.random((400, 12)) < truth[:, None]
    beliefs = learn_beliefs(
        Judgement(((f"e{row}",),), bool(good))
        for row, seen in enumerate(trials)
        for good in seen[:11]
    )
    posteriors = [beliefs.of([(f"e{row}",)]) for row in range(400)]
    likely = np.array([one.mean for one in posteriors]) >= 0.5
    assert trials[likely, 11].mean() > 0.7 > 0.3 > trials[~likely, 11].mean()
    inside = [one.interval(0.9) for one in posteriors]
    held = np.mean([low <= p <= high for (low, high), p in zip(inside, truth, strict=True)])
    assert 0.86 <= held <= 0.94
