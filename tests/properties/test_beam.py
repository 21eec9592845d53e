"""What holds for the beam on every graph and under every plan (requirement X-31)."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hades.retrieval.core.types import Question, Seed
from hades.retrieval.walks.beam import BeamRules, search_beam
from schemas.plan import Reason
from tests.patience import examples
from tests.properties.made_up_views import MadeUpView, views
from tests.unit.hades.retrieval.graphs import metered

RULES = st.builds(
    BeamRules,
    hops=st.integers(0, 4),
    fanout=st.integers(1, 4),
    beam=st.integers(1, 6),
    look=st.integers(1, 20),
)


@settings(max_examples=examples(100), deadline=None)
@given(views(), RULES, st.integers(0, 200))
def test_no_cap_is_ever_exceeded(view: MadeUpView, rules: BeamRules, work: int) -> None:
    account = metered(view, work=work)
    seeds = [Seed(node, 0.9 - node / 100) for node in range(min(3, view.n_nodes))]
    found = search_beam(account, Question("q"), seeds, rules)
    assert len(found.paths) <= rules.beam
    assert account.turn.work_spent <= work
    assert account.turn.reads_spent == 0
    for path in found.paths:
        assert 1 <= len(path.edges) <= rules.hops
        assert len(set(path.nodes)) == len(path.nodes)


@settings(max_examples=examples(50), deadline=None)
@given(views(), RULES)
@example(MadeUpView(3, [0, 0], [1, 2], [0.5, 0.5]), BeamRules(hops=1, fanout=1, beam=1, look=1))
def test_every_trim_has_a_reason_and_nothing_else_does(view: MadeUpView, rules: BeamRules) -> None:
    seeds = [Seed(0, 1.0)]
    account = metered(view)
    search_beam(account, Question("q"), seeds, rules)
    wide = BeamRules(hops=rules.hops, fanout=100, beam=1000, look=100)
    unlimited = metered(view)
    everything = search_beam(unlimited, Question("q"), seeds, wide)
    if account.turn.reasons == []:
        found = search_beam(metered(view), Question("q"), seeds, rules)
        assert {path.nodes for path in found.paths} == {path.nodes for path in everything.paths}
    else:
        assert account.turn.reasons == [Reason.CAP_EXCEEDED]


@settings(max_examples=examples(33), deadline=None)
@given(views(), RULES)
def test_the_same_question_has_the_same_answer(view: MadeUpView, rules: BeamRules) -> None:
    seeds = [Seed(node, 0.5) for node in range(min(3, view.n_nodes))]
    first, second = (
        search_beam(metered(view), Question("q"), order, rules) for order in (seeds, seeds[::-1])
    )
    assert first == second
