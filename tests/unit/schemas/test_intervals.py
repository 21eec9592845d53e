"""Half-open intervals on two axes, and the point a reader stands at."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.ids import Mask, contains, is_visible, iso, overlap

DAY = datetime(2024, 5, 1, tzinfo=UTC)
MOMENTS = st.integers(0, 6).map(lambda days: DAY + timedelta(days=days))
BOUNDS = st.none() | MOMENTS


def test_interval_holds_its_start_and_not_its_end():
    end = DAY + timedelta(days=1)
    assert contains(DAY, end, DAY)
    assert not contains(DAY, end, end)
    assert contains(None, None, DAY)


@given(BOUNDS, BOUNDS, BOUNDS, BOUNDS)
def test_overlap_means_a_shared_moment(a_start, a_end, b_start, b_end):
    grid = [DAY + timedelta(hours=12 * step) for step in range(-2, 16)]
    shared = any(
        contains(a_start, a_end, moment) and contains(b_start, b_end, moment) for moment in grid
    )
    if _is_forward(a_start, a_end) and _is_forward(b_start, b_end):
        assert overlap((a_start, a_end), (b_start, b_end)) == shared


def _is_forward(start, end):
    return start is None or end is None or start < end


def test_the_two_axes_are_independent():
    later = DAY + timedelta(days=2)
    assert is_visible(Mask(as_of=DAY), DAY, later, later, None)
    assert not is_visible(Mask(known_at=DAY), DAY, later, later, None)
    assert not is_visible(Mask(as_of=later), DAY, later, None, None)
    assert is_visible(Mask(known_at=later), DAY, DAY, later, None)


def test_mask_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="known_at has no time zone"):
        Mask(known_at=datetime(2024, 5, 1))


@given(MOMENTS, MOMENTS, st.integers(0, 999_999), st.integers(-12, 12))
def test_text_order_is_time_order(first, second, micros, hours):
    first = (first + timedelta(microseconds=micros)).astimezone(timezone(timedelta(hours=hours)))
    assert (iso(first) < iso(second)) == (first < second)
    assert len(iso(first)) == len("2024-05-01T00:00:00.000000Z")
