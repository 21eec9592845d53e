"""Promotion, change and facts that exclude each other: nothing is touched that was not said."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from hades.memory.history.edges import INVERSIONS, NewEdge
from hades.memory.history.facts import Outcome, judge
from hades.memory.history.rows import MemoryRefused
from hades.memory.memory import Memory
from hades.ports.services import Completion
from tests.unit.hades.memory.kept import T1, T2, T3, Clock, memory_on


class Echo:
    """A language model that answers with what it was asked for."""

    model = "echo"

    def __init__(self) -> None:
        self.prompt = ""

    def complete(self, prompt: str, *, max_tokens: int) -> Completion:
        self.prompt = prompt
        return Completion("written by a model", 1, 1)


def test_neighbours_a_new_version_left_behind_are_not_kept(memory: Memory) -> None:
    memory.add("project", "The parser is half done.")
    memory.add("lunch", "Noodles on Friday.")
    memory.link("project", "lunch", "relates_to")
    done = memory.promote("project", "moved on", "The renderer comes next.")
    assert (done.state.content, done.edges) == ("The renderer comes next.", [])


def test_a_language_model_is_told_history_and_neighbours(memory: Memory, clock: Clock) -> None:
    model = Echo()
    told = memory_on(memory.store, clock, language_model=model)
    for number in range(7):
        told.add("project", f"state number {number}")
    told.add("bug", "loses comments")
    told.link("project", "bug", "causes")
    assert told.promote("project", "because").state.content == "written by a model"
    assert "state number 1" not in model.prompt
    assert all(f"v{version}: state number {version - 1}" in model.prompt for version in range(3, 8))
    assert "bug: loses comments" in model.prompt


def test_a_version_that_comes_while_a_model_thinks_is_not_overlooked(
    memory: Memory, clock: Clock
) -> None:
    class Slow(Echo):
        def complete(self, prompt: str, *, max_tokens: int) -> Completion:
            if "meanwhile" not in prompt:
                memory.add("project", "meanwhile")
            return super().complete(prompt, max_tokens=max_tokens)

    model = Slow()
    memory.add("project", "first")
    done = memory_on(memory.store, clock, language_model=model).promote("project", "because")
    assert done.state.version == 3
    assert "v2: meanwhile" in model.prompt


def test_the_inversion_table_is_closed() -> None:
    named = (
        "contradicts",
        "rejected_because",
        "blocked_by",
        "relates_to",
        "evolves_to",
        "works_at",
    )
    assert [INVERSIONS.get(name) for name in named] == [
        "supports",
        "viable_after_fix",
        "enabled_by",
        None,
        None,
        None,
    ]


def test_a_change_ends_only_what_it_names(memory: Memory, clock: Clock) -> None:
    for topic in ("x", "bugs/bug_y", "teams/core", "review"):
        memory.add(topic, f"about {topic}")
    blocked = memory.link("x", "bugs/bug_y", "blocked_by", valid_from=T1)
    other = memory.link("x", "teams/core", "blocked_by", valid_from=T1)
    plain = memory.link("x", "review", "relates_to", valid_from=T1)
    clock.at = T2
    done = memory.change("x", "Bug Y was fixed")
    assert [edge.id for edge in done.obsolete_edges] == [blocked.id]
    assert [(edge.relationship_type, edge.target) for edge in done.new_edges] == [
        ("enabled_by", f"memory_states/{memory.latest('bugs/bug_y').id}")  # type: ignore[union-attr]
    ]
    assert done.reasons == [
        "blocked_by bugs/bug_y ended: the change names bugs/bug_y; blocked_by ended, so enabled_by",
        "blocked_by teams/core stays: the change does not name teams/core",
        "relates_to review stays: relates_to has no inversion; state the new fact to have an edge "
        "for it",
    ]
    active = {edge.id for edge in memory.edges("x")}
    assert {other.id, plain.id} < active
    assert blocked.id not in active


def test_the_end_of_a_contradiction_is_not_support(memory: Memory) -> None:
    memory.add("claim", "water boils at 90 degrees")
    memory.add("paper", "measured at 100 degrees")
    edge = memory.link("claim", "paper", "contradicts")
    done = memory.change("claim", "the paper was withdrawn")
    assert (done.new_edges, [one.id for one in done.obsolete_edges]) == ([], [edge.id])
    assert "does not imply supports" in done.reasons[0]


def test_a_relation_that_is_not_functional_excludes_nothing(memory: Memory) -> None:
    memory.assert_fact("ana", "has_trait", "patience", valid_from=T1)
    assert memory.assert_fact("ana", "has_trait", "humour", valid_from=T1).conflicts == []
    assert len(memory.edges("ana")) == 2


def test_a_fact_in_the_middle_leaves_what_is_before_and_after(memory: Memory, clock: Clock) -> None:
    memory.assert_fact("ana", "lives_in", "rome", valid_from=T1)
    memory.assert_fact("ana", "lives_in", "oslo", valid_from=T2, valid_until=T3)
    clock.at = T3 + timedelta(days=1)
    topics = {f"memory_states/{memory.latest(name).id}": name for name in ("rome", "oslo")}  # type: ignore[union-attr]
    periods = [
        (topics[edge.target], edge.valid_from, edge.valid_until)
        for edge in memory.edges("ana", everything=True)
    ]
    assert periods == [("rome", T1, T2), ("oslo", T2, T3), ("rome", T3, None)]


def test_a_fact_that_loses_is_believed_where_nothing_excludes_it(memory: Memory) -> None:
    memory.assert_fact("ana", "works_at", "north", valid_from=T2)
    early = memory.assert_fact("ana", "works_at", "south", valid_from=T1)
    assert [(edge.valid_from, edge.valid_until) for edge in early.edges] == [(T1, T2)]
    assert [one.outcome for one in memory.conflicts()] == [Outcome.OLD]


def test_the_same_fact_said_again_is_not_a_second_one(memory: Memory) -> None:
    first = memory.assert_fact("ana", "has_trait", "patience", valid_from=T2)
    assert memory.assert_fact("ana", "has_trait", "patience", valid_from=T3).edges == first.edges
    longer = memory.assert_fact("ana", "has_trait", "patience", valid_from=T1)
    assert [(edge.valid_from, edge.valid_until) for edge in longer.edges] == [(T1, T2)]


def test_when_neither_is_sure_a_person_is_asked_and_decides(memory: Memory, clock: Clock) -> None:
    old = memory.assert_fact("ana", "works_at", "north", valid_from=T1, confidence=0.3).edges[0]
    new = memory.assert_fact("ana", "works_at", "south", valid_from=T2, confidence=0.4).edges[0]
    assert old is not None
    assert new is not None
    waiting = memory.conflicts(open_only=True)
    assert [(one.outcome, one.old_edge, one.new_edge) for one in waiting] == [
        (Outcome.ASK, old.id, new.id)
    ]
    clock.at = T3
    assert len(memory.edges("ana")) == 2, "nobody is overruled while the question is open"
    with pytest.raises(MemoryRefused, match="'both' is not a decision"):
        memory.resolve(waiting[0].id, "both", who="ben", why="")
    memory.resolve(waiting[0].id, "new", who="ben", why="asked her")
    assert [edge.id for edge in memory.edges("ana")] == [new.id]
    assert memory.conflicts(open_only=True) == []
    assert [(one.outcome, one.reason) for one in memory.conflicts()] == [(Outcome.NEW, "asked her")]


def test_confidence_then_source_then_recency_decide() -> None:
    def claim(confidence: float, source: str = "", at: datetime = T1) -> NewEdge:
        return NewEdge(
            "a", "b", "works_at", strength=confidence, valid_from=at, metadata={"source": source}
        )

    trust = {"register": 0.9, "rumour": 0.1}
    assert judge(claim(0.9), claim(0.6), trust)[0] is Outcome.OLD
    assert judge(claim(0.8, "rumour"), claim(0.7, "register"), trust)[0] is Outcome.NEW
    assert judge(claim(0.8), claim(0.75, at=T2), trust)[0] is Outcome.NEW
    assert judge(claim(0.8, at=T2), claim(0.8, at=T1), trust)[0] is Outcome.OLD
    assert judge(claim(0.8), claim(0.8), trust)[0] is Outcome.ASK
    assert judge(claim(0.4), claim(0.1), trust)[0] is Outcome.ASK


def test_facts_of_one_day_are_told_apart_by_the_time_of_day() -> None:
    morning, evening = (
        NewEdge("a", "b", "works_at", valid_from=T1 + timedelta(hours=hour)) for hour in (9, 18)
    )
    assert (
        judge(morning, evening)[1] == "true since 2024-01-10 18:00:00 against 2024-01-10 09:00:00"
    )
    assert judge(morning, NewEdge("a", "b", "works_at", valid_from=T2))[1] == (
        "true since 2024-03-05 against 2024-01-10"
    )


def test_a_conflict_names_the_fact_that_it_met(memory: Memory) -> None:
    memory.assert_fact("ana", "works_at", "north", valid_from=T1, source="register")
    memory.assert_fact("ana", "works_at", "south", valid_from=T2)
    (conflict,) = memory.conflicts()
    assert conflict.claim["object"] == "south"
    assert conflict.against == {
        **conflict.claim,
        "object": "north",
        "valid_from": "2024-01-10T00:00:00.000000Z",
        "source": "register",
    }


def test_trust_in_a_source_decides_and_is_kept_with_the_fact(memory: Memory) -> None:
    register = memory.assert_fact(
        "ana", "works_at", "north", valid_from=T1, source="register", trust=0.9
    )
    rumour = memory.assert_fact(
        "ana", "works_at", "south", valid_from=T1, source="rumour", trust=0.2
    )
    assert [outcome for _, (outcome, _) in rumour.conflicts] == [Outcome.OLD]
    assert register.edges[0].metadata == {"source": "register", "trust": 0.9}
    with pytest.raises(MemoryRefused, match="trust 2 is not between 0 and 1"):
        memory.assert_fact("ana", "works_at", "east", trust=2)
