"""A plan over the caps of its profile is refused by the constructor and lowered, with a reason, by
`clamp`.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hades.retrieval.core.types import PlanError, caps_of, clamp
from schemas.plan import CAPPED, HARD_CAPS, Plan, Profile, Reason, over_caps

ONLINE = HARD_CAPS[Profile.ONLINE]


def value_at(plan: Plan, place: tuple[str, ...]) -> int:
    value: object = plan
    for part in place:
        value = getattr(value, part)
    assert isinstance(value, int)
    return value


def nested(place: tuple[str, ...], value: int) -> dict[str, object]:
    return {place[0]: value} if len(place) == 1 else {place[0]: {place[1]: value}}


def test_online_caps_are_the_high_ends_of_the_specification():
    caps = (
        ONLINE.k,
        ONLINE.hops,
        ONLINE.fanout,
        ONLINE.beam,
        ONLINE.m,
        ONLINE.final_context,
        ONLINE.docs_max,
    )
    assert caps == (8, 2, 3, 16, 24, 8, 160)


def test_each_profile_starts_inside_its_own_caps():
    for profile in Profile:
        assert list(over_caps(Plan(profile=profile))) == []


def test_token_budgets_of_the_profiles():
    tokens = {str(profile): Plan(profile=profile).budget.tokens_max for profile in Profile}
    assert (tokens["agent"], tokens["paths"], tokens["long"]) == (4096, 1020, 100_000)


def test_evaluation_has_room_for_recall_at_ten_and_five_hundred_candidates():
    plan = Plan(profile=Profile.EVALUATION)
    assert plan.final_context >= 10
    assert plan.budget.docs_max >= 500
    assert HARD_CAPS[Profile.EVALUATION].m >= 500


def test_what_is_given_wins_over_the_profile_and_the_rest_comes_from_it():
    plan = Plan.model_validate({"profile": "long", "graph": {"hops": 3}})
    assert (plan.graph.hops, plan.graph.fanout, plan.budget.tokens_max) == (3, 4, 100_000)


@pytest.mark.parametrize("place", CAPPED)
def test_a_plan_above_a_cap_cannot_be_made(place):
    cap = getattr(ONLINE, place[-1])
    with pytest.raises(ValidationError) as caught:
        Plan.model_validate(nested(place, cap + 1))
    assert [error["loc"] for error in caught.value.errors()] == [place]


@pytest.mark.parametrize("place", CAPPED)
def test_clamping_lowers_to_the_cap_and_says_so(place):
    cap = getattr(ONLINE, place[-1])
    plan = clamp(nested(place, cap * 10))
    assert value_at(plan, place) == cap
    assert plan.reasons == (Reason.PLAN_CLAMPED,)


def test_a_plan_inside_the_caps_is_left_alone():
    assert clamp({"retriever": {"k": 8}}).reasons == ()
    assert clamp({}) == Plan()


def test_the_callers_profile_wins_over_the_one_the_plan_names():
    plan = clamp({"profile": "offline", "graph": {"hops": 5}}, Profile.ONLINE)
    assert (plan.profile, plan.graph.hops) == ("online", 2)
    assert plan.reasons == (Reason.PLAN_CLAMPED,)


def test_timeouts_that_do_not_fit_the_turn_shrink_in_proportion():
    plan = clamp({"budget": {"latency_ms": 120}})
    times = (plan.retriever.timeout_ms, plan.graph.timeout_ms, plan.reranker.timeout_ms)
    assert sum(times) <= 120
    assert times[1] == times[2] > times[0]
    assert plan.reasons == (Reason.STAGES_SHORTENED,)
    beyond = clamp({"budget": {"latency_ms": 120}, "graph": {"hops": 9}})
    assert beyond.reasons == (Reason.PLAN_CLAMPED, Reason.STAGES_SHORTENED)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"retriever": {"k": 0}}, ["retriever.k", "0", "greater than or equal to 1"]),
        ({"retriever": {"seeds": 4}}, ["retriever.seeds"]),
        ({"profile": "fast"}, ["'fast'", "online"]),
        ({"graph": {"hops": "two"}}, ["graph.hops", "'two'"]),
        ({"graph": 3}, ["graph"]),
    ],
)
def test_what_is_no_matter_of_caps_is_refused(raw, words):
    with pytest.raises(PlanError) as caught:
        clamp(raw)
    assert [word for word in words if word not in str(caught.value)] == []


@given(
    st.sampled_from(list(Profile)),
    st.fixed_dictionaries(
        {}, optional={"q": st.integers(1, 10**6), "final_context": st.integers(1, 10**6)}
    ),
    st.fixed_dictionaries(
        {},
        optional={name: st.integers(1, 10**9) for name in ("docs_max", "work_max", "tokens_max")},
    ),
    st.fixed_dictionaries(
        {},
        optional={name: st.integers(1, 10**6) for name in ("hops", "fanout", "beam", "timeout_ms")},
    ),
    st.integers(3, 10**7),
)
def test_a_clamped_plan_never_exceeds_its_profile(profile, top, budget, graph, latency):
    plan = clamp({**top, "budget": {**budget, "latency_ms": latency}, "graph": graph}, profile)
    assert list(over_caps(plan)) == []
    assert (
        plan.retriever.timeout_ms + plan.graph.timeout_ms + plan.reranker.timeout_ms
        <= plan.budget.latency_ms
    )
    assert clamp(plan.model_dump()) == plan
    assert caps_of(plan).docs_max == plan.budget.docs_max
