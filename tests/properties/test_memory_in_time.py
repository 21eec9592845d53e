"""What was true and what was known at a moment stays the answer for ever, however much is added
later.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

from hypothesis import example, given
from hypothesis import strategies as st

from hades.memory.history.rows import NEWEST
from hades.memory.history.states import NewState
from hades.memory.memory import Memory
from schemas.ids import Mask, is_visible
from schemas.memory import MemoryEdge
from tests.properties.conftest import writing
from tests.unit.hades.memory.kept import T1, Clock

DAY = timedelta(days=1)
_numbers = count()

days = st.integers(0, 30)
operations = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 1), days, st.none() | st.integers(1, 9)),
    st.tuples(st.just("link"), st.integers(0, 1), days, st.none() | st.integers(1, 9)),
    st.tuples(st.just("close"), st.integers(0, 5), days, st.none()),
    st.tuples(st.just("close now"), st.integers(0, 5), days, st.none()),
    st.tuples(st.just("fact"), st.integers(0, 2), days, st.none() | st.integers(1, 9)),
)
probes = st.lists(st.tuples(days, days), min_size=1, max_size=2)
Ask = Callable[[], object]


@example([("link", 0, 0, 9), ("close now", 0, 0, None)], [(0, 0)])
@given(st.lists(operations, min_size=2, max_size=6), probes)
@writing(5)
def test_answers_are_equal_however_much_is_added_later(
    memory: Memory,
    clock: Clock,
    done: list[tuple[str, int, int, int | None]],
    asked: list[tuple[int, int]],
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
    memory: Memory,
    topics: list[str],
    edges: list[MemoryEdge],
    operation: tuple[str, int, int, int | None],
    number: int,
) -> None:
    kind, which, day, length = operation
    start = T1 + day * DAY
    until = start + length * DAY if length else None
    if kind == "add":
        memory.add(topics[which], f"said {number}", valid_from=start, valid_until=until)
    elif kind == "link":
        edges.append(
            memory.link(
                topics[which], topics[1 - which], "blocked_by", valid_from=start, valid_until=until
            )
        )
    elif kind == "fact":
        object_ = f"{topics[0]} object {which}"
        memory.assert_fact(
            topics[0], "works_at", object_, valid_from=start + number * timedelta(hours=1)
        )
    elif edges:
        edge = edges[which % len(edges)]
        if kind == "close":
            memory.close(edge.id, at=max(start, edge.valid_from or start))
        else:
            close_now(memory, edge)


def close_now(memory: Memory, edge: MemoryEdge) -> None:
    """Closed without a moment, an edge is true no longer; one that had ended keeps its end."""
    before, asked_at = memory.beliefs(edge.id)[-1], memory.now()
    if before.valid_from is None or before.valid_from > asked_at:
        return
    end = memory.close(edge.id).valid_until
    if before.valid_until is not None and before.valid_until <= asked_at:
        assert end == before.valid_until
    else:
        assert end is not None
        assert asked_at < end < memory.now()
    true_now = memory.edges(edge.source, mask=Mask(as_of=memory.now(), known_at=NEWEST))
    assert edge.id not in [other.id for other in true_now]


def question(memory: Memory, topics: list[str], as_of: datetime, known_at: datetime) -> Ask:
    def ask() -> object:
        mask = Mask(as_of=as_of, known_at=known_at)
        states = [memory.at(topic, as_of, known_at=known_at) for topic in topics]
        return states, [memory.edges(topic, mask=mask) for topic in topics]

    return ask


def agree_with_every_row(memory: Memory, topics: list[str]) -> None:
    """At some moments, the answers are those of a walk over every row; one object at a time of a
    functional fact.
    """
    rows = [
        belief
        for edge in memory.edges(topics[0], everything=True)
        for belief in memory.beliefs(edge.id)
    ]
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
            one
            for one in memory.history(topics[0])
            if is_visible(mask, one.valid_from, one.valid_until, None, None)
        ]
        expected = max(held, key=lambda one: (one.valid_from, one.version), default=None)
        assert memory.at(topics[0], mask.as_of) == expected
