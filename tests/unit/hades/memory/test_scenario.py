"""The complete scenario of specification 003, end to end: now, then, and when it changed."""

from __future__ import annotations

from datetime import timedelta

from hades.memory.memory import Memory
from schemas.ids import Mask
from tests.unit.hades.memory.kept import T1, T2, T3, Clock
from tests.unit.hades.memory.scenario import REFACTORING, X, Y, tell


def test_asked_now_the_answer_is_viable_and_says_what_was_true_before(
    memory: Memory, clock: Clock
) -> None:
    told = tell(memory, clock)
    answer = memory.why(X)
    assert (answer["state_id"], answer["version"]) == (told.x2.id, 2)
    assert (
        answer["current_answer"]
        == "Approach X is viable now that bug Y is fixed (since 2024-03-05)"
    )
    assert (
        answer["reasoning"] == "viable after fix refactoring/2024_q1: the refactoring fixed bug Y"
    )
    assert answer["historical_context"] == (
        "was rejected because bugs/bug_y from 2024-01-10 until 2024-03-05, which is no longer true"
    )
    (holds,), (ended,) = answer["edges"], answer["obsolete_edges"]
    assert (holds["type"], holds["target"], holds["active"]) == (
        "viable_after_fix",
        REFACTORING,
        True,
    )
    assert (ended["type"], ended["target"], ended["active"]) == ("rejected_because", Y, False)
    assert (ended["valid_until"], ended["superseded_by"]) == ("2024-03-05", told.viable.id)


def test_without_edges_the_version_before_is_what_was_true_before(
    memory: Memory, clock: Clock
) -> None:
    memory.add("deploys", "Deploys happen on Tuesday.", valid_from=T1)
    assert (
        memory.why("deploys", mask=Mask(as_of=T1))["historical_context"]
        == "nothing earlier is on record"
    )
    memory.add("deploys", "Deploys happen on Friday.", valid_from=T1 + timedelta(days=2))
    told = memory.why("deploys", mask=Mask(as_of=T1 + timedelta(days=3)))
    assert told["historical_context"].startswith("Deploys happen on Tuesday. (version 1, until ")


def test_asked_as_of_the_first_day_the_rejection_holds(memory: Memory, clock: Clock) -> None:
    told = tell(memory, clock)
    then = T1 + timedelta(hours=1)
    state = memory.query_at_time(X, then)
    assert state is not None
    assert state.id == told.x1.id
    assert [edge.id for edge in memory.edges(X, mask=Mask(as_of=then))] == [told.rejection.id]
    assert (
        memory.why(X, mask=Mask(as_of=then))["reasoning"]
        == "rejected because bugs/bug_y: approach X triggers bug Y"
    )
    assert memory.query_at_time(X, T1 - timedelta(days=1)) is None


def test_the_moment_it_became_viable_is_found(memory: Memory, clock: Clock) -> None:
    told = tell(memory, clock)
    change = memory.find_edge_change(X, "rejected_because", "viable_after_fix")
    assert change is not None
    at, ended, began = change
    assert (at, ended.id, began.id) == (T2, told.rejection.id, told.viable.id)
    assert memory.find_edge_change(X, "blocked_by", "enabled_by") is None


def test_what_was_believed_before_the_fix_was_heard_of_is_still_there(
    memory: Memory, clock: Clock
) -> None:
    told = tell(memory, clock)
    believed_then = memory.edges(X, mask=Mask(as_of=T3, known_at=T1 + timedelta(hours=1)))
    assert [(edge.id, edge.valid_until, edge.retracted_at) for edge in believed_then] == [
        (told.rejection.id, None, None)
    ]
    beliefs = memory.beliefs(told.rejection.id)
    assert [(edge.valid_until, edge.superseded_by) for edge in beliefs] == [
        (None, None),
        (T2, None),
        (T2, told.viable.id),
    ]
    assert beliefs[0].retracted_at == beliefs[1].recorded_at


def test_every_step_says_who_and_why(memory: Memory, clock: Clock) -> None:
    told = tell(memory, clock)
    steps = [(act.action, act.who, act.why) for act in memory.audit(told.rejection.id)]
    assert steps == [
        ("link", "ana", ""),
        ("close", "ben", "bug Y is fixed"),
        ("close", "ben", "the reason is gone"),
    ]
    assert [(act.action, act.why) for act in memory.audit(told.x1.id)] == [("add", "design review")]
