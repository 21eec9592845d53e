"""A working set: filled once, asked without a store, grows where one looks, stays small, forgets in
time.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from hades.memory.history.edges import NewEdge
from hades.memory.history.rows import MemoryRefused
from hades.memory.history.states import NewState
from hades.memory.recall.working_set import WorkingMemory
from hades.providers.hashing import HashingEmbedder


class NoStore:
    """Whatever is asked of it is a mistake."""

    def __getattr__(self, name):
        raise AssertionError(f"the store was asked to {name}")


@pytest.fixture
def lived(memory, clock):
    memory.embedder = HashingEmbedder()
    memory.add_many(
        NewState(
            "project/alpha",
            f"Alpha step {number} took place.",
            importance=0.9 if number == 3 else 0.4,
        )
        for number in range(1, 31)
    )
    memory.add_many(
        [
            NewState("people/ana", "Ana leads alpha."),
            NewState("people/ben", "Ben tests."),
            NewState("office/lyon", "The office in Lyon opened."),
        ]
    )
    memory.link_many(
        [
            NewEdge("project/alpha", "people/ana", "relates_to"),
            NewEdge("people/ana", "office/lyon", "relates_to"),
        ]
    )
    return memory


def versions(working, topic="project/alpha"):
    return [state.version for state in working.history(topic)]


def test_it_begins_with_the_newest_the_last_ten_the_important_and_the_related(lived):
    working = lived.working("project/alpha")
    assert versions(working) == [3, *range(21, 31)]
    assert working.latest("people/ana").content == "Ana leads alpha."
    assert working.latest("office/lyon") is None
    assert working.latest("people/ben") is None


def test_questions_touch_no_store(lived):
    working = lived.working("project/alpha")
    working.store = NoStore()
    assert working.query("who leads alpha?")[0].state.topic == "people/ana"
    assert (
        working.query("alpha step 3")[0].state.version,
        working.query("alpha step 3")[0].matched[-2:],
    ) == (30, "03")
    assert working.latest("project/alpha").version == 30
    assert [
        (edge.relationship_type, state.topic) for edge, state in working.related("project/alpha")
    ] == [("relates_to", "people/ana")]
    assert working.report()["items"] == len(working) == 12
    with pytest.raises(AssertionError, match="the store was asked"):
        working.explore("people/ana")


def test_it_grows_where_connections_are_explored(lived):
    working = lived.working("project/alpha")
    assert [state.topic for state in working.explore("people/ana")] == [
        "office/lyon",
        "project/alpha",
    ]
    assert working.latest("office/lyon") is not None
    assert sorted(state.topic for _, state in working.related("people/ana")) == [
        "office/lyon",
        "project/alpha",
    ]


def test_what_is_of_no_use_leaves_in_time_and_what_is_used_stays(lived, clock):
    working = lived.working("project/alpha")
    for _ in range(4):
        clock.at += timedelta(minutes=9)
        working.latest("people/ana")
    clock.at += timedelta(minutes=15)
    assert working.latest("people/ana") is not None
    assert versions(working) == []
    assert working.report()["expired"] == 11
    clock.at += timedelta(days=1)
    assert working.query("ana") == []
    assert working.preload("project/alpha").latest("project/alpha").version == 30


def test_it_never_holds_more_than_it_may(lived, clock):
    lived.add_many([NewState(f"n/{number}", f"note {number}") for number in range(150)])
    lived.link_many(
        [NewEdge("project/alpha", f"n/{number}", "relates_to") for number in range(150)]
    )
    working = WorkingMemory(lived.store, lived.embedder, clock, most=50)
    working.preload("project/alpha")
    assert len(working) == 50
    assert working.evicted > 0
    with pytest.raises(MemoryRefused, match="1 to 999"):
        WorkingMemory(lived.store, None, clock, most=1000)
