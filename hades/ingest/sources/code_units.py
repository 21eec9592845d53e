"""The lines of a code file divided into units: functions, methods, class heads and regions at module level.

Each line that is not blank belongs to exactly one unit. A unit is a run of whole lines, so that its span cites the file
exactly. Class-level statements between two methods are a unit of the class; statements between two functions are a unit
of the module. Comments, decorators and attributes directly above a definition belong to it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from hades.ingest.sources.code_facts import CodeFacts, SectionFact, SymbolFact, one_line

UNIT_CHARS = 3_000  # longer units are divided at statements: about four times what the default embedder reads
UNIT_LINES = 100
PLAIN_CHARS = 1 << 20  # of a file that is not parsed: a few hundred units
_HEADER_CHARS = 300
_LINE_END = re.compile(r"\r\n?|\n")
_LETTER = re.compile(r"[^\W_]")
_NO_OWNER = -1

StatementLines = Callable[[], Collection[int]]


class Lines:
    """Where the lines of a text begin; lines are counted from 0."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.starts = [0, *(found.end() for found in _LINE_END.finditer(text))]

    def __len__(self) -> int:
        return len(self.starts)

    def at(self, position: int) -> int:
        """The line that holds a character."""
        return bisect_right(self.starts, position) - 1

    def end(self, line: int) -> int:
        """Where a line ends, its line break included."""
        return self.starts[line + 1] if line + 1 < len(self.starts) else len(self._text)

    def text(self, line: int) -> str:
        """A line with its line break."""
        return self._text[self.starts[line] : self.end(line)]


class _Run(NamedTuple):
    """Lines [first, last] of one owner; neither the first nor the last is blank."""

    owner: int
    first: int
    last: int


def code_units(
    text: str,
    module: str,
    symbols: Sequence[SymbolFact],
    lead_lines: Collection[int],
    statement_lines: StatementLines,
    limit: int = UNIT_CHARS,
) -> tuple[SectionFact, ...]:
    """The units of a file in the order of its text.

    `symbols` are sorted by start, outer before inner. `lead_lines` hold only a comment, a decorator or an attribute.
    `statement_lines` gives the lines on which a statement begins; it is asked only when a unit is too long.
    """
    lines = Lines(text)
    owners = _owners(lines, symbols, lead_lines)
    units: list[SectionFact] = []
    seen: set[int] = set()
    statements: Collection[int] | None = None
    for run in _runs(lines, owners):
        symbol = symbols[run.owner] if run.owner != _NO_OWNER else None
        parts = [(run.first, run.last)]
        if _is_long(lines, run.first, run.last, limit):
            statements = statement_lines() if statements is None else statements
            parts = list(_divide(lines, run.first, run.last, statements, limit))
        for first, last in parts:
            is_later = run.owner in seen
            seen.add(run.owner)
            units.append(_unit(text, lines, first, last, module, symbol, is_later))
    return tuple(units)


def line_units(text: str, heading: str, kind: str, limit: int = UNIT_CHARS) -> tuple[SectionFact, ...]:
    """Units of a text without known structure: runs of lines, divided where an unindented line follows a blank one."""
    lines = Lines(text)
    runs = _runs(lines, [_NO_OWNER] * len(lines))
    starts: list[int] | None = None
    units = []
    for run in runs:
        parts = [(run.first, run.last)]
        if _is_long(lines, run.first, run.last, limit):
            starts = _paragraph_starts(lines) if starts is None else starts
            parts = list(_divide(lines, run.first, run.last, frozenset(starts), limit))
        units += [_section(text, lines, first, last, kind, (heading,)) for first, last in parts]
    return tuple(units)


def plain_facts(text: str, module: str, problem: str, limit: int = PLAIN_CHARS) -> CodeFacts:
    """A file that was not parsed: its lines as units, up to the limit."""
    return CodeFacts(module, sections=line_units(text[:limit], module, "module"), problem=problem)


def _owners(lines: Lines, symbols: Sequence[SymbolFact], lead_lines: Collection[int]) -> list[int]:
    """The symbol that owns each line: the innermost one, except that a line with two symbols goes to the first."""
    owners = [_NO_OWNER] * len(lines)
    around: list[tuple[int, int, int]] = []  # symbol, end, first line
    for index, symbol in enumerate(symbols):
        while around and around[-1][1] <= symbol.start:
            around.pop()
        first, last = lines.at(symbol.start), lines.at(max(symbol.start, symbol.end - 1))
        outer = around[-1][0] if around else _NO_OWNER
        head = around[-1][2] if around else -1
        around.append((index, symbol.end, first))
        if first == head:
            continue
        while first - 1 > head and first - 1 in lead_lines and owners[first - 1] == outer:
            first -= 1
        for line in range(first, last + 1):
            if owners[line] == outer:
                owners[line] = index
    return owners


def _runs(lines: Lines, owners: Sequence[int]) -> Iterator[_Run]:
    """Lines of one owner that only blank lines part."""
    owner, first, last = _NO_OWNER, -1, -1
    for line, here in enumerate(owners):
        text = lines.text(line)
        if not text.strip():
            continue
        if first >= 0 and not _LETTER.search(text):
            here = owner  # a closing bracket stays with what it closes
        if first >= 0 and here != owner:
            yield _Run(owner, first, last)
            first = -1
        if first < 0:
            owner, first = here, line
        last = line
    if first >= 0:
        yield _Run(owner, first, last)


def _is_long(lines: Lines, first: int, last: int, limit: int) -> bool:
    return last - first >= UNIT_LINES or lines.end(last) - lines.starts[first] > limit


def _divide(lines: Lines, first: int, last: int, statements: Collection[int], limit: int) -> Iterator[tuple[int, int]]:
    """Parts within the limits, each ending before the least indented statement of the later half of its room."""
    while _is_long(lines, first, last, limit):
        room = first + 1
        while room <= last and not _is_long(lines, first, room, limit):
            room += 1
        half = first + max(1, (room - first) // 2)
        places = [line for line in range(half, room + 1) if line in statements and line <= last]
        if not places:
            places = [line for line in range(half, room + 1) if line <= last and lines.text(line).strip()]
        if not places:
            break
        cut = min(places, key=lambda line: (_indent(lines.text(line)), -line)) if len(places) > 1 else places[0]
        yield first, _last_text_line(lines, cut - 1)
        first = cut
    yield first, last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_text_line(lines: Lines, line: int) -> int:
    while not lines.text(line).strip():
        line -= 1
    return line


def _paragraph_starts(lines: Lines) -> list[int]:
    starts = []
    for line in range(1, len(lines)):
        text = lines.text(line)
        if text.strip() and (not lines.text(line - 1).strip() or not text[0].isspace()):
            starts.append(line)
    return starts


def _unit(
    text: str, lines: Lines, first: int, last: int, module: str, symbol: SymbolFact | None, is_later: bool
) -> SectionFact:
    """One unit; a later part of a symbol repeats its signature and the first line of its documentation."""
    if symbol is None:
        return _section(text, lines, first, last, "module", (module,) if module else ())
    local = symbol.qualified_name.removeprefix(f"{module}.")
    headings = [local]
    if is_later:
        headings += filter(None, (symbol.signature, one_line(symbol.docstring.partition("\n")[0], _HEADER_CHARS)))
    return _section(text, lines, first, last, symbol.kind, tuple(headings), local, symbol.signature)


def _section(
    text: str,
    lines: Lines,
    first: int,
    last: int,
    kind: str,
    headings: tuple[str, ...],
    symbol: str | None = None,
    signature: str = "",
) -> SectionFact:
    start = lines.starts[first]
    end = start + len(text[start : lines.end(last)].rstrip())
    return SectionFact(start, end, kind, headings, symbol, signature)
