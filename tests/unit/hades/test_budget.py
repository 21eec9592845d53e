"""The account of a turn: nothing beyond a cap, every denial with its reason, time by a clock that
tests turn.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hades.budget import Caps, Turn
from schemas.plan import Reason


class Clock:
    """Time that only moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_reads_are_granted_up_to_the_cap_and_then_denied_with_a_reason():
    turn = Turn(Caps(5, 10, 1000))
    with turn.stage("seeds") as stage:
        assert turn.grant_reads(3) == 3
        assert turn.reasons == []
        assert turn.grant_reads(4) == 2
        assert turn.grant_reads(1) == 0
    assert (stage.reads, stage.capped, turn.reads_left) == (5, True, 0)
    assert turn.reasons == [Reason.BUDGET_DOCS]


def test_what_happens_between_stages_is_counted_too():
    turn = Turn(Caps(5, 10, 1000))
    turn.grant_reads(2)
    turn.count_work(3)
    with turn.stage("graph"):
        turn.grant_reads(1)
    assert (turn.reads_spent, turn.work_spent, turn.work_left) == (3, 3, 7)


def test_a_stage_ends_with_its_own_time_and_the_turn_with_the_turns():
    clock = Clock()
    turn = Turn(Caps(5, 10, 1000), clock)
    with turn.stage("seeds", 200) as seeds:
        clock.seconds += 0.199
        assert not turn.expired()
        clock.seconds += 0.001
        assert turn.expired()
        assert turn.ms_left == 0.0
    assert seeds.early_stop
    assert round(seeds.ms) == 200
    with turn.stage("graph", 5000) as graph:
        assert not turn.expired()
        clock.seconds += 0.8
        assert turn.expired()
    assert graph.early_stop
    assert turn.reasons == [Reason.TIMEOUT]


def test_a_stage_that_ends_because_it_has_enough_says_so():
    turn = Turn(Caps(5, 10, 1000))
    with turn.stage("graph") as stage:
        turn.note_early_end(Reason.COVERAGE_REACHED)
    assert (stage.early_stop, stage.capped, turn.reasons) == (
        True,
        False,
        [Reason.COVERAGE_REACHED],
    )


@given(st.integers(0, 50), st.lists(st.integers(0, 20)))
def test_no_sequence_of_requests_exceeds_the_cap_and_a_reason_stands_exactly_when_one_was_cut(
    cap, requests
):
    turn = Turn(Caps(cap, 1, 1000))
    granted = [turn.grant_reads(wanted) for wanted in requests]
    assert sum(granted) == turn.reads_spent == min(cap, sum(requests))
    assert (Reason.BUDGET_DOCS in turn.reasons) == (sum(requests) > cap)
