"""Times as people write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from math import ceil, floor

from schemas.ids import overlap


def parse_moment(text: str) -> datetime | None:
    """A time in ISO 8601, in UTC where it names no zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None

    if moment.tzinfo is not None:
        return moment

    return moment.replace(tzinfo=UTC)


def as_moment(moment_or_text: str | date | None, name: str) -> datetime | None:
    """A time as people write it, or a date, which is its beginning; in UTC where it names no zone.

    What is no time is a `ValueError`, which calls it by `name`.
    """
    if moment_or_text is None:
        return None

    if isinstance(moment_or_text, date):
        written = moment_or_text.isoformat()
    else:
        written = str(moment_or_text)

    moment = parse_moment(written)
    if moment is None:
        raise ValueError(
            f"{name} is {moment_or_text!r}; give a time such as 2026-01-31 or 2026-01-31T12:00:00Z"
        )

    return moment


Bounds = tuple[datetime, datetime]


@dataclass(frozen=True)
class Word:
    """One expression at text[at:to] and its [start, end). A month without a year has no bounds,
    only its number.

    `is_range` when it names both ends itself, as 1916-20 does.
    """

    at: int
    to: int
    bounds: Bounds | None
    month: int = 0
    is_range: bool = False


def words_of_time(text: str, told_at: datetime | None = None) -> Iterator[Word]:
    """Every expression of the text, in order, the longest reading of each; relative ones only with
    `told_at`.
    """
    # In lower case letter by letter, so that places stay.
    lowered = text.lower()
    if not text.isascii():
        pairs = ((letter, letter.lower()) for letter in text)
        lowered = "".join(low if len(low) == 1 else letter for letter, low in pairs)

    for match in _expressions(told_at is not None).finditer(lowered):
        name = match.lastgroup
        assert name is not None
        if name == "bare" and not text[match.start()].isupper():
            continue  # the verbs may and march

        try:
            if name not in _NEEDS_TELLING:
                bounds: Bounds | None = _read(name, match)
            else:
                if told_at:
                    bounds = _read_relative(name, match, told_at)
                else:
                    bounds = None
        except (ValueError, OverflowError):  # 31 June; before the first year
            continue

        if bounds is not None or name == "bare":
            month = _month(match.group()) if name == "bare" else 0
            yield Word(
                match.start(),
                match.end(),
                bounds,
                month,
                is_range=name == "short",
            )


def month_of(year: int, month: int) -> Bounds:
    """A whole month."""
    return _day(year, month, 1), _day(year + month // 12, month % 12 + 1, 1)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SEASONS = {
    "spring": 3,
    "summer": 6,
    "autumn": 9,
    "fall": 9,
    "winter": 12,
}
_COUNTS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "couple": 2,
    "three": 3,
    "few": 3,
    "several": 4,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
}
# The share of a decade, century or year that its parts take; they overlap, as they do in speech.
_PARTS = {
    "early": (0.0, 0.4),
    "beginning": (0.0, 0.4),
    "start": (0.0, 0.4),
    "mid": (0.3, 0.7),
    "middle": (0.3, 0.7),
    "late": (0.6, 1.0),
    "end": (0.6, 1.0),
    "first": (0.0, 0.5),
    "second": (0.5, 1.0),
}
_YEAR = (
    r"(?<![\d.,$£€])(?:1\d{3}|20\d{2})"
    r"(?!\d|[.,]\d|\s?%|\s(?:km|kg|ft|feet|people|men|women|met|mile|acre|ton)\w*)"
)
_NAME = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_NUMBER = r"(?:3[01]|[12]\d|0?[1-9])(?:\s?(?:st|nd|rd|th))?"
_PART = (
    r"(?:early|mid|late|(?:the\s+)?(?:beginning|start|middle|end|(?:first|second)\s+half)\s+of)"
    r"(?:\s*-\s*|\s+)"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)day"
_COUNT_NAMES = "|".join(name for name in _COUNTS if len(name) > 2)
_COUNT = rf"(?:\d{{1,3}}|(?:an?\s+)?(?:couple|few)(?:\s+of)?|{_COUNT_NAMES}|an?)"
# By what a form begins with, so that a word that begins none is passed over at once. The first that
# fits counts.
_FORMS: dict[str, dict[str, str]] = {
    r"(?=\d)": {
        "iso": r"(?<!-)\d{4}-\d{2}-\d{2}(?![\d-])",
        "day": rf"(?<![.,]){_NUMBER}\s+(?:of\s+)?{_NAME}\s*,?\s*{_YEAR}",
        "decade": r"(?<![.,$])(?:1\d|20)\d0\s?['’]?s\b",
        "century": r"(?:[5-9]|1\d|2[01])(?:st|nd|rd|th)[\s-]+century\b",
        "short": r"(?<![.,$])(?:1\d{3}|20\d{2})\s?[-–—/]\s?\d{2}(?![\d-])",
        "year": _YEAR,
    },
    r"(?=[jfmasond][aepuco][nbrylgptvc])": {
        "date": rf"{_NAME}\s+{_NUMBER}\s*,?\s+{_YEAR}",
        "month": rf"{_NAME}\s*(?:of\s+|,\s*)?{_YEAR}",
        "bare": _NAME,
    },
    r"(?=[sfaw][pulai][rmtln])": {
        "season": rf"(?:spring|summer|autumn|fall|winter)\s+(?:of\s+|,\s*)?{_YEAR}"
    },
    r"(?=[emltbfs][hainet])": {
        "decade_part": rf"{_PART}(?:the\s+)?(?:1\d|20)\d0\s?['’]?s\b",
        "century_part": rf"{_PART}(?:the\s+)?(?:[5-9]|1\d|2[01])(?:st|nd|rd|th)[\s-]+century\b",
        "part": rf"{_PART}{_YEAR}",
    },
}
_RELATIVE: dict[str, dict[str, str]] = {
    "": {
        "near": r"(?:yesterday|today|tonight|tomorrow|last\s+night"
        r"|this\s+(?:morning|afternoon|evening))\b",
        "ago": rf"{_COUNT}\s+(?:day|week|month|year)s?\s+ago\b",
        "named": r"(?:last|this|past|next|previous)\s+"
        rf"(?:{_WEEKDAY}|weekend|week|month|year|{_NAME})",
    }
}
_NEEDS_TELLING = frozenset(
    {"bare", *_RELATIVE[""]}
)  # the forms that need the moment of the telling


@cache
def _expressions(has_moment: bool) -> re.Pattern[str]:
    """One pattern of all forms, relative ones where that moment is known; every one begins where a
    word does.
    """
    kinds = []
    for begins, forms in ({**_RELATIVE, **_FORMS} if has_moment else _FORMS).items():
        named_forms = []
        for name, form in forms.items():
            named_forms.append(f"(?P<{name}>{form})")

        kinds.append(f"{begins}(?:{'|'.join(named_forms)})")

    return re.compile(rf"(?<!\w)(?:{'|'.join(kinds)})")


_DIGITS = re.compile(r"\d+")
_LETTERS = re.compile(r"[a-z]+")


def _day(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def _one_day(start: datetime) -> Bounds:
    return start, start + timedelta(days=1)


def _years(first: int, last: int) -> Bounds:
    return _day(first), _day(last + 1)


def _numbers(match: re.Match[str]) -> list[int]:
    numbers = []
    for digits in _DIGITS.findall(match.group()):
        numbers.append(int(digits))

    return numbers


def _words_of(match: re.Match[str]) -> list[str]:
    return _LETTERS.findall(match.group())


def _month(text: str) -> int:
    """The first month that a text names, from 1."""
    prefixes = (word[:3] for word in _LETTERS.findall(text.lower()))
    return next(_MONTHS.index(word) + 1 for word in prefixes if word in _MONTHS)


def _part(spoken: list[str], units: int) -> tuple[int, int]:
    """Which units, half-open, the named part of a whole covers; all of them without a name."""
    low, high = next((_PARTS[word] for word in spoken if word in _PARTS), (0.0, 1.0))
    return floor(low * units), ceil(high * units)


def _read(name: str, match: re.Match[str]) -> Bounds:
    """What a form says by itself."""
    numbers = _numbers(match)
    spoken_words = _words_of(match)
    year = numbers[0]
    match name:
        case "iso":
            return _one_day(_day(*numbers))
        case "day" | "date":
            day, year = numbers
            return _one_day(_day(year, _month(match.group()), day))
        case "month":
            return month_of(year, _month(match.group()))
        case "season":
            first = _SEASONS[spoken_words[0]]
            return _day(year, first), month_of(year + (first + 1) // 12, (first + 1) % 12 + 1)[1]
        case "decade" | "decade_part":
            low, high = _part(spoken_words, 10)
            return _years(year + low, year + high - 1)
        case "century" | "century_part":
            low, high = _part(spoken_words, 100)
            return _years(100 * (year - 1) + 1 + low, 100 * (year - 1) + high)
        case "part":
            low, high = _part(spoken_words, 12)
            return _day(year, low + 1), month_of(year, high)[1]
        case (
            "short"
        ):  # 1916-20 is a range of years; 1916-05, whose end would lie before it, is a month
            last = year - year % 100 + numbers[1]
            if last > year:
                return _years(year, last)
            if 1 <= numbers[1] <= 12:
                return month_of(year, numbers[1])

            return _years(year, year)
    return _years(year, year)


def _read_relative(
    name: str,
    match: re.Match[str],
    told_at: datetime,
) -> Bounds:
    """What a relative form means, given the moment of the telling."""
    spoken_words = _words_of(match)
    match name:
        case "near":
            away = {
                "yesterday": -1,
                "last": -1,
                "tomorrow": 1,
            }.get(spoken_words[0], 0)
            return _one_day(_midnight(told_at) + timedelta(days=away))
        case "ago":
            digits = _numbers(match)
            if digits:
                count = digits[0]
            else:
                count = max(_COUNTS.get(word, 0) for word in spoken_words)

            return _read_ago(
                count,
                spoken_words[-2].rstrip("s"),
                told_at,
            )
        case "named":
            return _read_named(
                spoken_words[0],
                spoken_words[1],
                told_at,
            )
    month = _month(match.group())  # the one nearest before the telling, its own included
    return month_of(told_at.year - (month > told_at.month), month)


def _read_ago(count: int, unit: str, told_at: datetime) -> Bounds:
    """The unit that long ago: two weeks ago is the week around that day, two years ago that
    year.
    """
    if unit == "year":
        return _years(told_at.year - count, told_at.year - count)
    if unit == "month":
        return _months_from(told_at, -count)

    middle = _midnight(told_at) - timedelta(days=count * (7 if unit == "week" else 1))
    about = timedelta(days=3 if unit == "week" else 0)
    return middle - about, middle + about + timedelta(days=1)


def _read_named(side: str, name: str, told_at: datetime) -> Bounds:
    step = {"this": 0, "next": 1}.get(side, -1)
    today = _midnight(told_at)
    monday = today - timedelta(days=today.weekday())

    if name == "year":
        return _years(told_at.year + step, told_at.year + step)
    if name == "month":
        return _months_from(told_at, step)

    if name in ("week", "weekend"):
        start = monday + timedelta(days=7 * step + (5 if name == "weekend" else 0))
        return start, start + timedelta(days=2 if name == "weekend" else 7)

    if name[:3] in _WEEKDAYS and name.endswith("day"):
        return _weekday(today, _WEEKDAYS.index(name[:3]), step)

    month = _MONTHS.index(name[:3]) + 1
    if step < 0:
        is_later = month > told_at.month
    else:
        is_later = month >= told_at.month

    return month_of(
        told_at.year + (step if step and is_later == (step < 0) else 0),
        month,
    )


def _weekday(today: datetime, day: int, step: int) -> Bounds:
    """The last, this or next such day, today left out of the last and the next."""
    days = day - today.weekday()
    if step < 0:
        days = days % 7 - 7
    elif step > 0:
        days = days % 7 or 7

    return _one_day(today + timedelta(days=days))


def _months_from(moment: datetime, months: int) -> Bounds:
    place = moment.year * 12 + moment.month - 1 + months
    return month_of(place // 12, place % 12 + 1)


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(
        hour=0,
        minute=0,
        second=0,
        microsecond=0,
    )


# Times as people write them, read into half-open intervals: "from 1811 to 1827", "in May 2023",
# "the early 1980s". Pure functions of the text: what is relative to the telling ("last week",
# "two years ago") is read only when the moment of the telling is given. A coarse time is the whole
# of it: 1827 is a year, and "to 1827" ends when it does.
Interval = tuple[datetime | None, datetime | None]


@dataclass(frozen=True)
class DateMention:
    """A time that a text states at text[at:to]: [start, end), an absent side is open.

    `is_scope` when it is a stretch of time, by two ends or by one, not as a date in
    passing.
    """

    at: int
    to: int
    start: datetime | None
    end: datetime | None
    is_scope: bool = False

    @property
    def interval(self) -> Interval:
        """Both ends, as `schemas.ids.overlap` takes them."""
        return self.start, self.end


def times_in(text: str, told_at: datetime | None = None) -> list[DateMention]:
    """Every time that a text states, in order."""
    mentions: list[DateMention] = []
    opening: Word | None = None  # an expression that may begin a range

    for word in words_of_time(text, told_at):
        if opening:
            stretch = _range_mention(text, opening, word)
        else:
            stretch = None

        if opening and not stretch:
            alone = _single_mention(text, opening)
        else:
            alone = None

        mentions += filter(None, (stretch, alone))
        opening = None if stretch else word

    last = _single_mention(text, opening) if opening else None
    return [*mentions, last] if last else mentions


def time_asked(question: str, asked_at: datetime | None = None) -> Interval | None:
    """The time that a question is about; None where it names none.

    Of several the last that is a stretch of time, else the last: what stands before it says which
    thing is meant.
    """
    mentions = times_in(question, asked_at)

    scopes = []
    for mention in mentions:
        if mention.is_scope:
            scopes.append(mention)

    if mentions:
        return (scopes or mentions)[-1].interval

    return None


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


def closeness(asked_for: Interval, stated: Interval) -> float:
    """How well a stated time fits the time asked for: shared over spanned, in [0, 1]; 0 where they
    do not meet.

    An open side is taken to end with the other interval, so that "since 1990" fits 1995 to 1997 in
    part.
    """
    if not overlap(asked_for, stated):
        return 0.0

    starts = []
    for start, _ in (asked_for, stated):
        if start is not None:
            starts.append(start)

    ends = []
    for _, end in (asked_for, stated):
        if end is not None:
            ends.append(end)

    if not starts or not ends or min(starts) >= max(ends):
        return 1.0

    return max(0.0, (min(ends) - max(starts)) / (max(ends) - min(starts)))


_JOINED = re.compile(
    r"\s*(?:(?:to|until|till|til|through|thru|up\s+to|[-–—]{1,2})|(and))\s*(?:the\s+)?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\bbetween\s+(?:the\s+)?(?:years?\s+)?$", re.IGNORECASE)
_STILL = re.compile(
    r"\s*(?:to|until|till|through|[-–—])\s*(?:the\s+)?(?:present|now|today|date)\b",
    re.IGNORECASE,
)
_ONWARDS = re.compile(r"\s+(?:on|onwards?|forward)\b", re.IGNORECASE)
_BEFORE = re.compile(
    r"\b(before|prior\s+to|until|till|up\s+to|by|after|since|from|between)\s+"
    r"(?:(?:the|in|year|about|around|circa)\s+)*$",
    re.IGNORECASE,
)
_LOOK_BACK = 40  # characters before an expression in which its preposition stands


def _range_mention(
    text: str,
    first: Word,
    second: Word,
) -> DateMention | None:
    """Two expressions that are the ends of one stretch; a month without a year takes that of the
    other end.
    """
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

    if start < end:
        return DateMention(
            first.at,
            second.to,
            start,
            end,
            is_scope=True,
        )

    return None


def _single_mention(text: str, word: Word) -> DateMention | None:
    """One expression, with what its preposition makes of it."""
    if word.bounds is None:
        return None

    start, end = word.bounds
    if still := _STILL.match(text, word.to):
        return DateMention(
            word.at,
            still.end(),
            start,
            None,
            is_scope=True,
        )

    preposition_match = _BEFORE.search(text[max(0, word.at - _LOOK_BACK) : word.at])
    if preposition_match:
        preposition = preposition_match[1].lower().split()[0]
    else:
        preposition = ""

    sides: Interval = start, end
    if preposition in ("before", "prior"):
        sides = None, start
    elif preposition in ("until", "till", "up", "by"):
        sides = None, end
    elif preposition == "after":
        sides = end, None
    elif preposition == "since" or (preposition == "from" and _ONWARDS.match(text, word.to)):
        sides = start, None

    return DateMention(
        word.at,
        word.to,
        *sides,
        is_scope=word.is_range or None in sides,
    )
