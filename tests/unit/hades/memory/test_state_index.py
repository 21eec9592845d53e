"""The index of all states: the same answers as the store's own search, fresh after every write, also of others."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from hades.memory.history.rows import topic_key
from hades.memory.history.states import NewState
from hades.memory.memory import Memory
from hades.memory.recall import index as index_holder
from hades.memory.recall import index as state_index
from hades.memory.recall.graph import enhance
from hades.memory.recall.index import index_of
from hades.memory.recall.index_arrays import SignCodes, Standing
from hades.ports.store import Mode
from hades.providers.hashing import HashingEmbedder
from hades.providers.tokens import MiniLmTokenizer
from hades.stores.sqlite.store import SqliteStore
from models.kernels import unit_rows
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


def test_a_second_question_reads_no_row_of_the_store(seen: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    seen.tokenizer = MiniLmTokenizer()
    seen.add_many([NewState(f"t{number % 10}", f"the wombat number {number} sleeps") for number in range(30)])
    for number in range(9):
        seen.link(f"t{number}", f"t{number + 1}", "relates_to")
    before = topics(seen, "wombat number 7"), seen.retrieve_within_budget("why wombat 7?", 2_000).text

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a row was read")

    for name in ("get", "scan", "search", "nearest", "neighbours", "last"):
        monkeypatch.setattr(SqliteStore, name, refuse)
    assert (topics(seen, "wombat number 7"), seen.retrieve_within_budget("why wombat 7?", 2_000).text) == before


def test_the_index_and_the_store_find_the_same_topics(seen: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    words = [f"word{number}" for number in range(60)]
    seen.add_many([NewState(f"t{number % 40}", " ".join(chance.choices(words, k=6))) for number in range(120)])
    questions = [" ".join(chance.choices(words, k=3)) for _ in range(12)]
    indexed = [set(topics(seen, question)) for question in questions]
    _search_by_store(monkeypatch)
    stored = [set(topics(seen, question)) for question in questions]
    shared = sum(len(one & two) for one, two in zip(indexed, stored, strict=True))
    assert shared >= 0.8 * sum(map(len, stored))


def test_many_states_are_compared_by_their_codes_first(seen: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(2)
    words = [f"word{number}" for number in range(80)]
    seen.add_many([NewState(f"t{number}", " ".join(chance.choices(words, k=8))) for number in range(300)])
    question = " ".join(chance.choices(words, k=4))
    exact = topics(seen, question)
    monkeypatch.setattr(state_index, "EXACT", 10)
    monkeypatch.setattr(state_index, "_PRE_SELECTED", 150)
    assert topics(seen, question)[:3] == exact[:3]


def test_codes_find_what_comparing_every_vector_finds() -> None:
    chance = np.random.default_rng(5)
    centres = chance.standard_normal((40, 96))
    vectors = unit_rows(centres[chance.integers(0, 40, 5_000)] + chance.standard_normal((5_000, 96)))
    codes = SignCodes(96)
    codes.extend(vectors[:3_000])
    codes.extend(vectors[3_000:])
    allowed = chance.random(5_000) < 0.7
    shared = 0
    for asked in unit_rows(centres[:20] + chance.standard_normal((20, 96))):
        simple = np.where(allowed, vectors @ asked, -np.inf).argsort()[-10:]
        found = codes.nearest(asked, allowed, 500)
        assert 500 <= len(found) < 1_000
        assert allowed[found].all()
        shared += len(np.intersect1d(simple, found))
    assert shared >= 0.97 * 20 * 10
    assert len(codes.nearest(vectors[0], np.zeros(5_000, bool), 500)) == 0


def test_the_index_and_the_store_walk_the_same_edges(seen: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(3)
    names = [f"topic {number}" for number in range(12)]
    for round_ in range(3):
        seen.add_many([NewState(name, f"{name} in round {round_}") for name in names])
        for _ in range(15):
            one, other = chance.sample(names, 2)
            seen.link(one, other, chance.choice(["supports", "causes"]), strength=round(chance.random(), 2))
    for edge in seen.edges(names[0])[:2]:
        seen.close(edge.id)
    found = seen.search("topic 3 in round 1", limit=5)
    indexed = [enhance(seen.reader(), found, 2, newest=newest).as_dict()["matches"] for newest in (None, 1)]
    _search_by_store(monkeypatch)
    stored = [enhance(seen.reader(), found, 2, newest=newest).as_dict()["matches"] for newest in (None, 1)]
    assert indexed == stored
    every, newest = (sum(len(match["related_states"]) for match in one) for one in indexed)
    assert every > newest > 10


def test_a_search_by_the_store_counts_links_as_the_index_does(seen: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("hub", "leaf"):
        seen.add(name, f"the red {name}")
    for number in range(8):
        seen.add(f"n{number}", "other")
        seen.link(f"n{number}", "hub", "relates_to")
    seen.add("hub", "the red hub again")  # the edges point at the version before
    indexed = {one.state.topic: one.strength for one in seen.search("the red")}
    _search_by_store(monkeypatch)
    stored = {one.state.topic: one.strength for one in seen.search("the red")}
    assert stored["hub"] > stored["leaf"]
    assert stored == pytest.approx(indexed)


def test_a_question_sees_one_state_of_the_store(seen: Memory, clock: Clock, tmp_path: Path) -> None:
    seen.add("a", "the wombat sleeps")
    other = memory_on(SqliteStore.open(tmp_path / "graph.db", Mode.READ_WRITE), clock, EMBEDDER)
    with index_of(seen.store, EMBEDDER.model.tag):
        assert topics(seen, "wombat") == ["a"]
        other.add("b", "a wombat digs")
        assert topics(seen, "wombat") == ["a"]
    assert set(topics(seen, "wombat")) == {"a", "b"}


def _search_by_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no index be built from here on."""
    monkeypatch.setattr(index_holder, "MOST", 0)
    index_holder._held.clear()


def test_links_and_recency_enter_the_strength(seen: Memory) -> None:
    seen.add("hub", "the red barn")
    seen.add("leaf", "the red house", importance=0.1)
    for number in range(8):
        seen.add(f"n{number}", "other")
        seen.link(f"n{number}", "hub", "relates_to")
    with index_of(seen.store, EMBEDDER.model.tag) as index:
        assert index is not None
        assert index.edges.links(topic_key("hub"), Standing.of(seen.mask(), seen.now())) == 8
    found = {one.state.topic: one.strength for one in seen.search("the red")}
    assert found["hub"] > found["leaf"]
