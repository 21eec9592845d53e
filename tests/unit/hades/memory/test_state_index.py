"""The index of all states: the same answers as the store's own search, fresh after every write, also of others."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hades.memory.history.states import NewState
from hades.memory.recall import index_holder, state_index
from hades.memory.recall.index_holder import index_of
from hades.memory.service import Memory
from hades.ports.store import Mode
from hades.providers.hashing import HashingEmbedder
from hades.stores.sqlite.store import SqliteStore
from tests.unit.hades.memory.kept import Clock, memory_on

EMBEDDER = HashingEmbedder(dimension=64)


@pytest.fixture
def seen(memory: Memory, clock: Clock) -> Memory:
    return memory_on(memory.store, clock, EMBEDDER)


def topics(memory: Memory, query: str) -> list[str]:
    return [one.state.topic for one in memory.search(query, limit=5)]


def test_a_write_is_found_by_the_next_question_and_an_erased_state_is_not(seen: Memory) -> None:
    seen.add("a", "the wombat sleeps")
    assert topics(seen, "wombat") == ["a"]
    seen.add("b", "a wombat digs")
    seen.add("a", "the badger sleeps")
    assert set(topics(seen, "wombat")) == {"a", "b"}
    seen.erase("a", who="ana", why="asked")
    assert topics(seen, "wombat badger") == ["b"]


def test_another_process_is_followed(seen: Memory, clock: Clock, tmp_path: Path) -> None:
    seen.add("a", "the wombat sleeps")
    assert topics(seen, "wombat") == ["a"]
    other = memory_on(SqliteStore.open(tmp_path / "graph.db", Mode.READ_WRITE), clock, EMBEDDER)
    other.add("b", "a wombat digs")
    other.add("a", "it left")
    assert set(topics(seen, "wombat digs")) == {"a", "b"}
    assert seen.search("wombat")[0].state.content in ("it left", "a wombat digs")


def test_the_index_and_the_store_find_the_same_topics(seen: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    words = [f"word{number}" for number in range(60)]
    seen.add_many([NewState(f"t{number % 40}", " ".join(chance.choices(words, k=6))) for number in range(120)])
    questions = [" ".join(chance.choices(words, k=3)) for _ in range(12)]
    indexed = [set(topics(seen, question)) for question in questions]
    monkeypatch.setattr(index_holder, "MOST", 0)
    index_holder._held.clear()
    stored = [set(topics(seen, question)) for question in questions]
    shared = sum(len(one & two) for one, two in zip(indexed, stored, strict=True))
    assert shared >= 0.8 * sum(map(len, stored))


def test_many_states_are_compared_by_a_projection_first(seen: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(2)
    words = [f"word{number}" for number in range(80)]
    seen.add_many([NewState(f"t{number}", " ".join(chance.choices(words, k=8))) for number in range(300)])
    question = " ".join(chance.choices(words, k=4))
    exact = topics(seen, question)
    monkeypatch.setattr(state_index, "EXACT", 10)
    monkeypatch.setattr(state_index, "_PRE_SELECTED", 150)
    assert topics(seen, question)[:3] == exact[:3]


def test_links_and_recency_enter_the_strength(seen: Memory) -> None:
    seen.add("hub", "the red barn")
    seen.add("leaf", "the red house", importance=0.1)
    for number in range(8):
        seen.add(f"n{number}", "other")
        seen.link(f"n{number}", "hub", "relates_to")
    with index_of(seen.store, EMBEDDER.model.tag) as index:
        assert index is not None
        assert index.links(seen.latest("hub").key.rpartition("_")[0], seen.mask()) == 8  # type: ignore[union-attr]
    found = {one.state.topic: one.strength for one in seen.search("the red")}
    assert found["hub"] > found["leaf"]
