"""The index of all states: fresh after every write, also of others; one question sees one state of
the store.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hades.memory.history.states import NewState
from hades.memory.memory import Memory
from hades.memory.recall.search import embed_question, search_asked
from hades.ports.store import Mode
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
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


def test_a_second_question_reads_no_row_of_the_store(
    seen: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen.tokenizer = MiniLmTokenizer()
    seen.add_many(
        [NewState(f"t{number % 10}", f"the wombat number {number} sleeps") for number in range(30)]
    )
    for number in range(9):
        seen.link(f"t{number}", f"t{number + 1}", "relates_to")
    before = (
        topics(seen, "wombat number 7"),
        seen.retrieve_within_budget("why wombat 7?", 2_000).text,
    )

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a row was read")

    for name in ("get", "scan", "last"):
        monkeypatch.setattr(SqliteStore, name, refuse)
    assert (
        topics(seen, "wombat number 7"),
        seen.retrieve_within_budget("why wombat 7?", 2_000).text,
    ) == before


def test_a_question_sees_one_state_of_the_store(seen: Memory, clock: Clock, tmp_path: Path) -> None:
    seen.add("a", "the wombat sleeps")
    other = memory_on(SqliteStore.open(tmp_path / "graph.db", Mode.READ_WRITE), clock, EMBEDDER)
    reader = seen.reader()
    asked = embed_question(reader, "wombat")
    assert [one.state.topic for one in search_asked(reader, asked)] == ["a"]
    other.add("b", "a wombat digs")
    assert [one.state.topic for one in search_asked(reader, asked)] == ["a"]
    assert set(topics(seen, "wombat")) == {"a", "b"}


def test_links_and_recency_enter_the_strength(seen: Memory) -> None:
    seen.add("hub", "the red barn")
    seen.add("leaf", "the red house", importance=0.1)
    for number in range(8):
        seen.add(f"n{number}", "other")
        seen.link(f"n{number}", "hub", "relates_to")
    seen.add("hub", "the red barn again")  # the edges point at the version before
    found = {one.state.topic: one.strength for one in seen.search("the red")}
    assert found["hub"] > found["leaf"]
