"""Searching memory: nothing is hidden for being weak, the newest version is looked up, vectors of
one model only.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from hades.memory.history.rows import MemoryRefused
from hades.memory.recall.search import strength
from hades.providers.hashing import HashingEmbedder
from schemas.ids import Mask
from tests.unit.hades.memory.kept import T1, T2, T3
from tests.unit.hades.memory.scenario import REFACTORING, X, Y, tell


@pytest.fixture
def told(memory, clock):
    memory.embedder = HashingEmbedder()
    tell(memory, clock)
    return memory


def topics(found):
    return [one.state.topic for one in found]


def test_each_topic_comes_once_as_it_is_now(told):
    found = told.search("why was approach X rejected because of bug Y?")
    assert sorted(topics(found)) == sorted([X, Y, REFACTORING])
    assert {one.state.topic: one.state.version for one in found} == {X: 2, Y: 2, REFACTORING: 1}
    assert [one.similarity for one in found] == sorted(
        (one.similarity for one in found), reverse=True
    )


def test_the_newest_version_is_looked_up_even_when_an_older_one_matched(told):
    found = told.search("looked at and rejected, it triggers")[0]
    assert (found.state.topic, found.state.version) == (X, 2)
    assert told.state(found.matched).version == 1


def test_a_window_asks_when_the_matching_version_began(told):
    assert topics(told.search("bug Y", (T1 - timedelta(days=1), T1 + timedelta(days=1)))) == [Y, X]
    assert REFACTORING in topics(told.search("bug Y", (T2 - timedelta(days=1), None)))
    assert told.search("bug Y", (None, T1)) == []
    with pytest.raises(MemoryRefused, match="not after"):
        told.search("bug Y", (T2, T1))


def test_a_reader_in_the_past_sees_what_held_then(told):
    then = told.search("approach X", mask=Mask(as_of=T1 + timedelta(days=1)))
    assert {one.state.topic: one.state.version for one in then} == {X: 1, Y: 1}
    known = told.search("approach X", mask=Mask(known_at=T1 + timedelta(days=1)))
    assert {one.state.topic: one.state.version for one in known} == {X: 1, Y: 1}


def test_vectors_of_another_model_are_never_compared(told):
    other = HashingEmbedder(dimension=64)
    told.embedder = other
    assert all(one.semantic is None for one in told.search("bug Y corrupts data"))
    told.add("notes/new", "Bug Y corrupts data in a new way")
    found = {one.state.topic: one.semantic for one in told.search("bug Y corrupts data")}
    assert found["notes/new"] is not None
    assert found[X] is None


def test_an_empty_question_is_refused(memory):
    with pytest.raises(MemoryRefused, match="question is empty"):
        memory.search("  ")


def test_a_memory_without_strength_is_still_found_everywhere(told, clock):
    old = told.add("bugs/ancient", "The wombat overflow breaks the parser", importance=0.0)
    told.link(X, old.id, "relates_to", strength=0.0)
    clock.at = T3 + timedelta(days=40_000)
    assert strength(old, clock.at) == pytest.approx(0.0, abs=1e-12)
    assert told.search("wombat overflow")[0].state.id == old.id
    assert told.search("wombat overflow", priority=0.5)[0].state.id == old.id
    enhanced = told.graph_enhanced_retrieval("approach X viable", matches=1).matches[0]
    assert old.id in [one.state.id for one in enhanced.related_states]
    assert told.history("bugs/ancient") == [told.latest("bugs/ancient")]
    assert old.id in told.trace("bugs/ancient").states


def test_age_lowers_strength_and_importance_holds_it_up(told):
    plain, important = (
        told.add(f"n/{level}", "something", importance=level) for level in (0.2, 0.9)
    )
    ages = [plain.timestamp + timedelta(days=days) for days in (0, 30, 300, 30_000)]
    fading = [strength(plain, moment) for moment in ages]
    assert fading == sorted(fading, reverse=True)
    assert fading[:2] == pytest.approx([1.0, 0.6])
    assert fading[-1] == pytest.approx(0.2)
    assert strength(important, ages[-1]) == pytest.approx(0.9)
    assert strength(plain, ages[-1], links=8) == pytest.approx(0.6)


def test_embedding_again_covers_every_state(told):
    told.embedder = HashingEmbedder(dimension=64)
    states = sum(len(told.history(topic)) for topic in told.topics())
    assert told.reembed() == states
    assert all(one.semantic is not None for one in told.search("bug Y corrupts data"))
    assert told.reembed() == 0
    assert told.check() == []
