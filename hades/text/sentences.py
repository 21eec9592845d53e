"""Where sentences end: a full stop inside a number, a name or an abbreviation ends none."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A closing mark, quotes or brackets behind it, then a blank and what may open a sentence.
_END = re.compile(r"[.!?…][.!?…]*[\"'”’)\]]*(?=\s+[\"'“‘(\[]*[^\W_a-z]|\s*$|\s*\n)|\n\s*\n|[。！？]+")
_MAY_END = re.compile(
    r"[.!?…\n。！？]"
)  # where an end may begin: one class of characters is searched for several times faster
_ABBREVIATION = re.compile(
    r"(?:mrs?|ms|dr|prof|st|sr|jr|vs|etc|inc|ltd|corp|gen|col|sgt|capt|rev|hon|figs?|eqs?|nos|vols?|pp|eds?|al|cf|"
    r"approx|dept|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec|(?:[a-z]\.)+[a-z])",
    re.IGNORECASE,
)
_LONGEST_ABBREVIATION = 6  # letters, of those without a full stop inside


def sentences(text: str) -> list[tuple[int, int]]:
    """Spans [start, end) of the sentences of a text, without the blanks around them; together they hold every word."""
    return list(each_sentence(text))


def each_sentence(text: str) -> Iterator[tuple[int, int]]:
    """The spans of `sentences` one at a time, for callers that need the first ones only."""
    start, written = 0, len(text.rstrip())
    for match in _ends(text):
        if text[match.start()] == "." and match.end() < written and _is_abbreviation(text, start, match.start()):
            continue
        if (first := _pass_blanks(text, start, match.end())) < match.end():
            yield first, _drop_blanks(text, match.end())
        start = match.end()
    if (first := _pass_blanks(text, start, written)) < written:
        yield first, written


def first_sentence(text: str) -> str:
    """The first sentence of a text; all of it when it has only one."""
    return next((text[begin:end] for begin, end in each_sentence(text)), "")


def _ends(text: str) -> Iterator[re.Match[str]]:
    """What `_END.finditer(text)` finds."""
    place = 0
    for begin in _MAY_END.finditer(text):
        if begin.start() >= place and (match := _END.match(text, begin.start())) is not None:
            yield match
            place = match.end()


def _is_abbreviation(text: str, start: int, stop: int) -> bool:
    """Whether the full stop at `stop` belongs to `Dr.`, `e.g.` or the initial `J.`; the sentence begins at `start`."""
    if stop - start > _LONGEST_ABBREVIATION and text[stop - _LONGEST_ABBREVIATION - 1 : stop].isalpha():
        return False  # most words: one with a full stop inside ends with a single letter
    end = stop - 1 if text[stop - 1 : stop] == "\n" and stop > start else stop
    first = end
    while first > start and (text[first - 1].isalnum() or text[first - 1] in "._"):
        first -= 1
    spelled = text[first:end]
    return _ABBREVIATION.fullmatch(spelled) is not None or (len(spelled) == 1 and spelled.isupper() and spelled != "I")


def _pass_blanks(text: str, start: int, end: int) -> int:
    """The place of the first character of a span that is no blank; its end where there is none."""
    while start < end and text[start].isspace():
        start += 1
    return start


def _drop_blanks(text: str, end: int) -> int:
    """Behind the last character before `end` that is no blank; there is one."""
    while text[end - 1].isspace():
        end -= 1
    return end
