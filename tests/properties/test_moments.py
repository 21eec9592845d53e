"""Reading times: never fails, always gives sound intervals, and reads back what was written."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hades.text.dates import closeness, time_asked, times_in, years_of
from schemas.ids import overlap

DAYS = st.dates(date(1000, 1, 1), date(2098, 12, 31))
MOMENTS = st.none() | st.datetimes(
    datetime(1001, 1, 1), datetime(2098, 12, 31), timezones=st.just(UTC)
)
_SAID = (
    "from to between and in before after since until early late mid the 1990 1995 20 May March 3 "
    "last next week year "
    "ago two yesterday Friday 1980s 19th century - – , . summer of 2004-05-06 present half first"
)
WORDS = st.sampled_from(_SAID.split())
INTERVALS = st.tuples(MOMENTS, MOMENTS).filter(lambda ends: None in ends or ends[0] < ends[1])


def midnight(one: date) -> datetime:
    return datetime(one.year, one.month, one.day, tzinfo=UTC)


@given(st.lists(WORDS, max_size=20).map(" ".join) | st.text(max_size=80), MOMENTS)
def test_any_text_gives_sound_intervals_in_order(text: str, told_at: datetime | None):
    told = times_in(text, told_at)
    assert all(one.start is None or one.end is None or one.start < one.end for one in told)
    assert all(one.start is not None or one.end is not None for one in told)
    assert all(before.to <= after.at for before, after in pairwise(told))
    assert all(0 <= one.at < one.to <= len(text) for one in told)
    assert times_in(text, told_at) == told


@given(DAYS)
def test_a_day_is_read_the_same_however_it_is_written(one: date):
    name = f"{one:%B}"
    spellings = [
        one.isoformat(),
        f"{one.day} {name} {one.year}",
        f"{name} {one.day}, {one.year}",
        f"on {one.day} {name[:3]} , {one.year}",
    ]
    expected = (midnight(one), midnight(one) + timedelta(days=1))
    assert [[told.interval for told in times_in(text)] for text in spellings] == [[expected]] * 4


@given(st.integers(1000, 2098), st.integers(1, 300))
def test_a_range_holds_both_of_its_ends(first: int, length: int):
    last = min(first + length, 2099)
    for text in (
        f"from {first} to {last}",
        f"between {first} and {last}",
        f"{first}–{last}",
        f"{first} until {last}",
    ):
        assert time_asked(text) == (
            datetime(first, 1, 1, tzinfo=UTC),
            datetime(last + 1, 1, 1, tzinfo=UTC),
        )


@given(INTERVALS, INTERVALS)
def test_closeness_is_symmetric_bounded_and_zero_only_apart(one, other):
    value = closeness(one, other)
    assert value == closeness(other, one)
    assert 0.0 <= value <= 1.0
    assert overlap(one, other) or value == 0.0
    if None not in one:
        assert closeness(one, one) == 1.0


@given(INTERVALS)
def test_years_lie_in_their_interval(interval):
    for year in years_of(interval):
        whole = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
        assert overlap(interval, whole)
