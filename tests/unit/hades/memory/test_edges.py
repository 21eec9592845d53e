"""Edges: append-only beliefs, half-open intervals, supersession without circles."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hades.memory.history.rows import MemoryRefused, UnknownMemory
from hades.memory.memory import Memory
from hades.ports.store import Direction
from tests.unit.hades.memory.kept import T1, T2, Clock

DAY = timedelta(days=1)


@pytest.fixture
def pair(memory: Memory) -> Memory:
    """A memory with two topics."""
    memory.add("a", "about a")
    memory.add("b", "about b")
    return memory


def test_kinds_follow_from_the_relation(pair: Memory) -> None:
    kinds = {
        name: pair.link("a", "b", name).kind
        for name in ("causes", "references", "relates_to", "works_at")
    }
    assert kinds == {
        "causes": "causal",
        "references": "reference",
        "relates_to": "cross_topic",
        "works_at": "cross_topic",
    }


def test_the_same_edge_twice_is_one_edge(pair: Memory) -> None:
    first = pair.link("a", "b", "relates_to", description="said once")
    assert pair.link("a", "b", "relates_to", description="said once") == first
    other = pair.link("a", "b", "relates_to", description="said better")
    assert (other.id, other.revision) == (first.id, 2)
    assert [edge.description for edge in pair.edges("a")] == ["said better"]


def test_direction_is_respected_and_both_ways_means_both(pair: Memory) -> None:
    pair.link("a", "b", "causes")
    pair.link("a", "b", "interacted_with", bidirectional=True)
    seen = {
        way: [edge.relationship_type for edge in pair.edges("b", direction=way)]
        for way in (Direction.OUT, Direction.IN, Direction.ANY)
    }
    assert seen == {
        Direction.OUT: ["interacted_with"],
        Direction.IN: ["causes", "interacted_with"],
        Direction.ANY: ["causes", "interacted_with"],
    }


def test_an_edge_cannot_end_before_it_begins(pair: Memory) -> None:
    edge = pair.link("a", "b", "blocked_by", valid_from=T2)
    with pytest.raises(MemoryRefused, match="give a later moment"):
        pair.close(edge.id, at=T1)


def test_closing_without_a_moment_ends_an_edge_now_also_one_with_a_planned_end(
    pair: Memory, clock: Clock
) -> None:
    edge = pair.link("a", "b", "works_at", valid_from=T1, valid_until=T2 + 9 * DAY)
    clock.at = T2
    assert pair.close(edge.id, why="left today").valid_until == clock.at
    assert pair.edges("a") == []


def test_closing_an_edge_that_has_ended_keeps_its_end(pair: Memory, clock: Clock) -> None:
    edge = pair.link("a", "b", "works_at", valid_from=T1, valid_until=T2)
    clock.at = T2 + DAY
    assert pair.close(edge.id).valid_until == T2
    assert pair.close(edge.id, at=T2 + DAY).valid_until == T2 + DAY


def test_supersession_cannot_go_in_a_circle(pair: Memory) -> None:
    first, second, third = (
        pair.link("a", "b", name) for name in ("causes", "supports", "references")
    )
    pair.close(first.id, superseded_by=second.id)
    pair.close(second.id, superseded_by=third.id)
    with pytest.raises(MemoryRefused, match="goes in a circle"):
        pair.close(third.id, superseded_by=first.id)
    with pytest.raises(MemoryRefused, match="goes in a circle"):
        pair.close(third.id, superseded_by=third.id)
    assert [pair.beliefs(one.id)[-1].superseded_by for one in (first, second, third)] == [
        second.id,
        third.id,
        None,
    ]


def test_a_topic_is_audited_with_its_versions_and_edges(pair: Memory) -> None:
    state = pair.add("a", "more about a", who="ana", why="review")
    edge = pair.link("a", "b", "causes", who="ben")
    acts = [(act.action, act.subject, act.who) for act in pair.audit("a")]
    assert acts == [
        ("add", pair.trace("a").states[0], ""),
        ("add", state.id, "ana"),
        ("link", edge.id, "ben"),
    ]
    assert [act.action for act in pair.audit(edge.id)] == ["link"]
    assert pair.audit("nobody/wrote/of/it") == []


def test_names_that_are_not_there_are_named(pair: Memory) -> None:
    with pytest.raises(UnknownMemory, match="no topic or state 'c'"):
        pair.link("a", "c", "causes")
    with pytest.raises(UnknownMemory, match="no edge 'nope'"):
        pair.close("nope")
    with pytest.raises(MemoryRefused, match="'Blocked By' is not a relation"):
        pair.link("a", "b", "Blocked By")
