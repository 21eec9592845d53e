"""Nexus: tiers fused, each result says what each tier gave, modes differ in what they spend."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.retrieval.core.words import OUT
from hades.retrieval.ranking.feedback import (
    MODES,
    Judgement,
    Tier,
    edge_key,
    fuse,
    learn_beliefs,
    nexus,
)
from hades.snapshot.view import GraphView
from tests.unit.hades.retrieval.films import asked, metered, published, titles

MOTHER = "When did the mother of the director of Glass Harbour die?"
ACTOR = "Where was the Irish actor of Glass Harbour born?"
EVEN = dict.fromkeys(Tier, 1.0)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("films")


@pytest.fixture(scope="module")
def view(home: Path) -> GraphView:
    return published(home)


def test_ranks_are_fused_reciprocally():
    found = fuse({Tier.VECTOR: [(1, 0.9), (2, 0.1)], Tier.GRAPH: [(2, 5.0), (3, 4.0)]}, EVEN)
    assert [one.node for one in found] == [2, 1, 3]
    assert found[0].score == 1.0
    assert found[0].tiers["graph"] == pytest.approx((1 / 11) / (1 / 11 + 1 / 12))
    assert found[1].tiers == {"vector": 1.0}


RANKING = st.lists(
    st.tuples(st.integers(0, 9), st.floats(0, 1)), max_size=8, unique_by=lambda one: one[0]
)


@given(st.dictionaries(st.sampled_from(Tier), RANKING))
def test_what_is_fused_is_sorted_each_once_and_its_shares_sum_to_one(rankings):
    found = fuse(rankings)
    assert len({one.node for one in found}) == len(found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(sum(one.tiers.values()) == pytest.approx(1.0) for one in found)


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_gives_no_more_than_its_results(view, home, mode):
    found = nexus(metered(view), asked(ACTOR, home), mode=mode)
    assert len(found) == min(MODES[mode].results, 10)
    assert titles(view, [found[0].node]) == ["Peter Dunn"]
    assert {"vector", "graph"} <= set(found[0].tiers)


def test_judged_passages_move_and_carry_their_interval(view, home):
    question = asked(MOTHER, home)
    before = [one.node for one in nexus(metered(view), question)]
    loser = before[4]
    identifier = view.ids(np.array([loser]))[0]
    beliefs = learn_beliefs([Judgement(((identifier,),), True)] * 20)
    after = nexus(metered(view), question, beliefs=beliefs)
    place = [one.node for one in after].index(loser)
    assert place < 4
    told = after[place].tiers
    assert told["belief_low"] < told["belief"] < told["belief_high"]
    assert told["belief"] == pytest.approx(21 / 22)
    execution = nexus(metered(view), question, "execution", beliefs)
    assert all("belief" not in one.tiers for one in execution)


def test_a_judged_path_moves_the_passages_that_mention_both_ends_of_its_edges(view, home):
    question = asked(MOTHER, home)
    before = [one.node for one in nexus(metered(view), question)]
    ends = [
        set(view.ids(view.expand(np.array([one]), direction=OUT, types=["mentions"]).target))
        for one in before
    ]
    loser, edge = next(
        (place, edge_key(*both))
        for place in range(2, len(before))
        for both in combinations(sorted(ends[place]), 2)
        if sum(set(both) <= one for one in ends) == 1
    )
    beliefs = learn_beliefs([Judgement((edge,), True)] * 20)
    after = [one.node for one in nexus(metered(view), question, beliefs=beliefs)]
    assert after.index(before[loser]) < loser


def test_a_bad_vote_lowers_a_good_one_raises_and_the_unjudged_stay_between(
    view: GraphView, home: Path
):
    question = asked(ACTOR, home)
    before = [one.node for one in nexus(metered(view), question)]
    third = before[2]
    key = (view.ids(np.array([third]))[0],)
    places = {}
    for good in (True, False):
        beliefs = learn_beliefs([Judgement((key,), good)] * 5)
        found = [one.node for one in nexus(metered(view), question, beliefs=beliefs)]
        places[good] = found.index(third) if third in found else len(found)
    assert places[True] < 2 + 1
    assert places[False] > 2 - 1
    assert places[True] < places[False]
