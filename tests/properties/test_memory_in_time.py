"""What was true and what was known at a moment stays the answer for ever, however much is added later."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hades.memory.history.edges import NewEdge
from hades.memory.history.states import NewState
from hades.memory.memory import Memory
from schemas.ids import Mask, is_visible
from schemas.memory import MemoryEdge
from tests.homes import empty_store
from tests.properties.conftest import writing
from tests.unit.hades.memory.kept import T1, Clock, memory_on

FACTS = Path(__file__).parents[2].parent / "shared" / "data" / "yago_temporal" / "facts.jsonl.gz"
DAY = timedelta(days=1)
_numbers = count()

days = st.integers(0, 30)
operations = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 1), days, st.none() | st.integers(1, 9)),
    st.tuples(st.just("link"), st.integers(0, 1), days, st.none() | st.integers(1, 9)),
    st.tuples(st.just("close"), st.integers(0, 5), days, st.none()),
    st.tuples(st.just("fact"), st.integers(0, 2), days, st.none() | st.integers(1, 9)),
)
probes = st.lists(st.tuples(days, days), min_size=1, max_size=2)
Ask = Callable[[], object]


@given(st.lists(operations, min_size=2, max_size=6), probes)
@writing(5)
def test_answers_are_equal_however_much_is_added_later(
    memory: Memory, clock: Clock, done: list[tuple[str, int, int, int | None]], asked: list[tuple[int, int]]
) -> None:
    prefix = f"example {next(_numbers)}/"
    clock.at = T1
    topics = [f"{prefix}{name}" for name in "ab"]
    memory.add_many([NewState(topic, "first", valid_from=T1 - DAY) for topic in topics])
    edges: list[MemoryEdge] = []
    answers: list[tuple[Ask, object]] = []
    for number, operation in enumerate(done):
        clock.at += DAY
        apply(memory, topics, edges, operation, number)
        known = memory.now()
        for as_of, back in asked:
            ask = question(memory, topics, T1 + as_of * DAY, max(T1, known - back * DAY))
            answers.append((ask, ask()))
    assert [ask() for ask, _ in answers] == [answer for _, answer in answers]
    agree_with_every_row(memory, topics)
    assert memory.check() == []


def apply(
    memory: Memory, topics: list[str], edges: list[MemoryEdge], operation: tuple[str, int, int, int | None], number: int
) -> None:
    kind, which, day, length = operation
    start = T1 + day * DAY
    until = start + length * DAY if length else None
    if kind == "add":
        memory.add(topics[which], f"said {number}", valid_from=start, valid_until=until)
    elif kind == "link":
        edges.append(memory.link(topics[which], topics[1 - which], "blocked_by", valid_from=start, valid_until=until))
    elif kind == "fact":
        object_ = f"{topics[0]} object {which}"
        memory.assert_fact(topics[0], "works_at", object_, valid_from=start + number * timedelta(hours=1))
    elif edges:
        edge = edges[which % len(edges)]
        memory.close(edge.id, at=max(start, edge.valid_from or start))


def question(memory: Memory, topics: list[str], as_of: datetime, known_at: datetime) -> Ask:
    def ask() -> object:
        mask = Mask(as_of=as_of, known_at=known_at)
        states = [memory.at(topic, as_of, known_at=known_at) for topic in topics]
        return states, [memory.edges(topic, mask=mask) for topic in topics]

    return ask


def agree_with_every_row(memory: Memory, topics: list[str]) -> None:
    """At some moments, the answers are those of a walk over every row; one object at a time of a functional fact."""
    rows = [belief for edge in memory.edges(topics[0], everything=True) for belief in memory.beliefs(edge.id)]
    for day in range(0, 40, 10):
        mask = memory.mask(Mask(as_of=T1 + day * DAY + timedelta(minutes=5)))
        walked = {
            row.key
            for row in rows
            if is_visible(mask, row.valid_from, row.valid_until, row.recorded_at, row.retracted_at)
        }
        active = memory.edges(topics[0], mask=mask)
        assert {edge.key for edge in active} == walked
        assert sum(edge.relationship_type == "works_at" for edge in active) <= 1
        assert mask.as_of is not None
        held = [
            one for one in memory.history(topics[0]) if is_visible(mask, one.valid_from, one.valid_until, None, None)
        ]
        expected = max(held, key=lambda one: (one.valid_from, one.version), default=None)
        assert memory.at(topics[0], mask.as_of) == expected


@pytest.mark.skipif(not FACTS.exists(), reason="the yago_temporal facts are not on this machine")
def test_real_histories_answer_the_same_after_more_is_learned(tmp_path: Path) -> None:
    clock = Clock()
    store = empty_store(tmp_path / "graph.db")
    memory = memory_on(store, clock)
    with gzip.open(FACTS, "rt", encoding="utf-8") as lines:
        facts = [json.loads(line) for line in lines][:3_000]
    names = sorted({name for subject, _, object_, _, _ in facts for name in (subject, object_)})
    memory.add_many([NewState(name, name, valid_from=year(0)) for name in names])
    half = len(facts) // 2
    memory.link_many([link(fact) for fact in facts[:half]])
    known = memory.now()
    busy = sorted({fact[0] for fact in facts}, key=lambda name: (-sum(fact[0] == name for fact in facts), name))[:15]
    asked = [(name, Mask(as_of=year(step), known_at=known)) for name in busy for step in (0, 90, 187)]
    before = [memory.edges(name, mask=mask) for name, mask in asked]
    assert sum(map(len, before)) > 10
    for (name, mask), edges in zip(asked, before, strict=True):
        assert {edge_of(memory, edge) for edge in edges} == {
            fact_of(fact) for fact in facts[:half] if name in (fact[0], fact[2]) and holds(fact, mask)
        }
    memory.link_many([link(fact) for fact in facts[half:]])
    memory.add_many([NewState(name, f"{name}, looked at again") for name in busy])
    for edges in before[:5]:
        for edge in edges[:1]:
            memory.close(edge.id)
    assert [memory.edges(name, mask=mask) for name, mask in asked] == before
    assert memory.check() == []
    store.close()


def year(step: int) -> datetime:
    return datetime(1800 + step, 1, 1, tzinfo=UTC)


def link(fact: list[object]) -> NewEdge:
    subject, relation, object_, first, last = fact
    words = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in str(relation))
    return NewEdge(str(subject), str(object_), words, valid_from=year(int(first)), valid_until=year(int(last) + 1))  # type: ignore[call-overload]


def holds(fact: list[int], mask: Mask) -> bool:
    assert mask.as_of is not None
    return year(fact[3]) <= mask.as_of < year(fact[4] + 1)


def fact_of(fact: list[object]) -> tuple[object, object, object]:
    return fact[0], fact[2], year(int(str(fact[3])))


def edge_of(memory: Memory, edge: MemoryEdge) -> tuple[object, object, object]:
    ends = {state.key: state.topic for state in memory.states([edge.source, edge.target])}
    return ends[edge.source.partition("/")[2]], ends[edge.target.partition("/")[2]], edge.valid_from
