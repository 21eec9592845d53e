"""Times as people write them, read into half-open intervals: "from 1811 to 1827", "in May 2023", "the early 1980s".

Pure functions of the text: what is told relative to the telling ("last week", "two years ago") is read only when the
moment of the telling is given. A coarse time is the whole of it: 1827 is a year, and "to 1827" ends when it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from hades.text.date_words import Word, month_of, words_of_time
from schemas.intervals import overlap

Interval = tuple[datetime | None, datetime | None]


@dataclass(frozen=True)
class DateMention:
    """A time that a text states at text[at:to]: [start, end), an absent side is open.

    `is_scope` when it is said as a stretch of time, by two ends or by one, not as a date in passing.
    """

    at: int
    to: int
    start: datetime | None
    end: datetime | None
    is_scope: bool = False

    @property
    def interval(self) -> Interval:
        """Both ends, as `schemas.intervals.overlap` takes them."""
        return self.start, self.end


def times_in(text: str, told_at: datetime | None = None) -> list[DateMention]:
    """Every time that a text states, in order."""
    words = list(words_of_time(text, told_at))
    found: list[DateMention] = []
    place = 0
    while place < len(words):
        first = words[place]
        second = words[place + 1] if place + 1 < len(words) else None
        told = _range(text, first, second) if second is not None else None
        if told is None:
            told = _alone(text, first)
            place += 1
        else:
            place += 2
        if told is not None:
            found.append(told)
    return found


def time_asked(question: str, asked_at: datetime | None = None) -> Interval | None:
    """The time that a question is about; None where it names none.

    Of several the last that is a stretch of time, else the last: what stands before it says which thing is meant.
    """
    found = times_in(question, asked_at)
    scopes = [told for told in found if told.is_scope]
    return (scopes or found)[-1].interval if found else None


def end_years(interval: Interval) -> tuple[int | None, int | None]:
    """The first and the last calendar year that an interval touches; None for an open side."""
    start, end = interval
    first = None if start is None else start.year
    return first, None if end is None else (end - timedelta(microseconds=1)).year


def years_of(interval: Interval, most: int = 40) -> list[int]:
    """The calendar years that an interval touches; of a long or open one only those at its ends."""
    first, last = end_years(interval)
    if first is None or last is None or last - first >= most:
        return [year for year in (first, last) if year is not None]
    return list(range(first, last + 1))


def closeness(asked: Interval, told: Interval) -> float:
    """How well a stated time fits the time asked for: shared over spanned, in [0, 1]; 0 where they do not meet.

    An open side is taken to end with the other interval, so that "since 1990" fits 1995 to 1997 in part.
    """
    if not overlap(asked, told):
        return 0.0
    starts, ends = [one[0] for one in (asked, told)], [one[1] for one in (asked, told)]
    low = min((start for start in starts if start is not None), default=None)
    high = max((end for end in ends if end is not None), default=None)
    if low is None or high is None or low >= high:
        return 1.0
    inner_low = max((start for start in starts if start is not None), default=low)
    inner_high = min((end for end in ends if end is not None), default=high)
    return max(0.0, (inner_high - inner_low) / (high - low))


def fit(asked: Interval, told: Iterable[DateMention]) -> float:
    """The best closeness of any stated time."""
    return max((closeness(asked, one.interval) for one in told), default=0.0)


_JOINED = re.compile(r"\s*(?:(?:to|until|till|til|through|thru|up\s+to|[-–—]{1,2})|(and))\s*(?:the\s+)?", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+(?:the\s+)?(?:years?\s+)?$", re.IGNORECASE)
_STILL = re.compile(r"\s*(?:to|until|till|through|[-–—])\s*(?:the\s+)?(?:present|now|today|date)\b", re.IGNORECASE)
_ONWARDS = re.compile(r"\s+(?:on|onwards?|forward)\b", re.IGNORECASE)
_BEFORE = re.compile(
    r"\b(before|prior\s+to|until|till|up\s+to|by|after|since|from|between)\s+(?:(?:the|in|year|about|around|circa)\s+)*$",
    re.IGNORECASE,
)
_LOOK_BACK = 40  # characters before an expression in which its preposition stands


def _range(text: str, first: Word, second: Word) -> DateMention | None:
    """Two expressions that are the ends of one stretch; a month without a year takes that of the other end."""
    joint = _JOINED.fullmatch(text, first.to, second.at)
    if joint is None or second.bounds is None:
        return None
    if joint[1] and not _BETWEEN.search(text[max(0, first.at - _LOOK_BACK) : first.at]):
        return None
    end = second.bounds[1]
    if first.month and not second.month:
        last = end - timedelta(microseconds=1)
        start = month_of(last.year - (first.month > last.month), first.month)[0]
    elif first.bounds is not None:
        start = first.bounds[0]
    else:
        return None
    return DateMention(first.at, second.to, start, end, is_scope=True) if start < end else None


def _alone(text: str, word: Word) -> DateMention | None:
    """One expression, with what its preposition makes of it."""
    if word.bounds is None:
        return None
    start, end = word.bounds
    if still := _STILL.match(text, word.to):
        return DateMention(word.at, still.end(), start, None, is_scope=True)
    found = _BEFORE.search(text[max(0, word.at - _LOOK_BACK) : word.at])
    said = found[1].lower().split()[0] if found else ""
    if said in ("before", "prior"):
        return DateMention(word.at, word.to, None, start, is_scope=True)
    if said in ("until", "till", "up", "by"):
        return DateMention(word.at, word.to, None, end, is_scope=True)
    if said == "after":
        return DateMention(word.at, word.to, end, None, is_scope=True)
    if said == "since" or (said == "from" and _ONWARDS.match(text, word.to)):
        return DateMention(word.at, word.to, start, None, is_scope=True)
    return DateMention(word.at, word.to, start, end, is_scope=word.is_range)
