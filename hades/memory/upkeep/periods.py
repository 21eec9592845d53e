"""The spans that summaries are made of: days, ISO weeks, and months of whole weeks; all in UTC, all half-open."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

RAW, DAILY, WEEKLY, MONTHLY = range(4)
NAMES = {DAILY: "daily", WEEKLY: "weekly", MONTHLY: "monthly"}
_WEEK = timedelta(days=7)


@dataclass(frozen=True, order=True)
class Period:
    """A day, a week or a month."""

    level: int
    start: datetime
    end: datetime

    @property
    def name(self) -> str:
        """As in a summary's topic: 2024-03-05, 2024-W10 or 2024-03."""
        if self.level == DAILY:
            return f"{self.start:%Y-%m-%d}"
        if self.level == WEEKLY:
            year, week, _ = self.start.isocalendar()
            return f"{year}-W{week:02d}"
        return f"{self.start + timedelta(days=3):%Y-%m}"


def period_of(level: int, moment: datetime) -> Period:
    """The period of a level that holds a moment. A week belongs to the month of its Thursday, as to its ISO year."""
    day = moment.astimezone(UTC).date()
    if level == DAILY:
        return Period(level, _midnight(day), _midnight(day + timedelta(days=1)))
    monday = day - timedelta(days=day.weekday())
    if level == WEEKLY:
        return Period(level, _midnight(monday), _midnight(monday + _WEEK))
    thursday = monday + timedelta(days=3)
    first = _first_week(thursday.year, thursday.month)
    following = thursday.replace(day=1) + timedelta(days=32)
    return Period(level, _midnight(first), _midnight(_first_week(following.year, following.month)))


def _first_week(year: int, month: int) -> date:
    """The Monday of the first week whose Thursday lies in the month."""
    first = date(year, month, 1)
    thursday = first + timedelta(days=(3 - first.weekday()) % 7)
    return thursday - timedelta(days=3)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
