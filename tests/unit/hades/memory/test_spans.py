"""Spans of time with others taken out."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from hades.memory.history.rows import Span, without
from schemas.ids import contains
from tests.unit.hades.memory.kept import T1

DAY = timedelta(days=1)


def at(number: int) -> datetime:
    return T1 + number * DAY


def span(start: int, length: int | None) -> Span:
    return at(start), None if length is None else at(start + length)


spans = st.builds(span, st.integers(0, 12), st.none() | st.integers(0, 6))


@given(spans, st.lists(spans, max_size=4))
def test_a_moment_is_left_when_it_was_there_and_nobody_took_it(
    whole: Span, taken: list[Span]
) -> None:
    left = without(whole, taken)
    assert left == sorted(left)
    for number in range(24):
        moment = at(0) + number * DAY / 2 + timedelta(hours=1)
        was_taken = any(contains(start, end, moment) for start, end in taken)
        assert any(contains(start, end, moment) for start, end in left) == (
            contains(*whole, moment) and not was_taken
        )
