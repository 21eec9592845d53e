"""What a code parser finds, in plain values that cross a process boundary, and the units of a file;
loads no schema.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

Span = tuple[int, int]  # [start, end) in characters of a text; `schemas` is not loaded here
COMMENT_CHARS = 40
SIGNATURE_CHARS = 400
_LICENCE = re.compile(
    r"copyright|licen[sc]ed?\b|spdx-|all rights reserved",
    re.IGNORECASE,
)
_CONTINUATION = re.compile(rb"[\x80-\xbf]")


class Symbol(NamedTuple):
    """A function, method or class, and what it calls by the names written there."""

    name: str
    qualified_name: str  # module.Class.method, without collision suffix
    kind: str  # a value of `FuncKind`
    start: int
    end: int
    signature: str = ""
    docstring: str = ""
    calls: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    call_spans: tuple[Span, ...] = ()  # where each of `calls` stands first


class ModuleImport(NamedTuple):
    """`import module` or `from module import name as alias`; relative imports are resolved to
    absolute names.
    """

    module: str
    name: str | None = None
    alias: str | None = None
    symbol: str | None = None  # qualified name of the function it stands in; None at module level
    span: Span = (0, 0)


class Section(NamedTuple):
    """A region of a text that is chunked on its own, under its headings."""

    start: int
    end: int
    kind: str  # a value of `ChunkKind`
    headings: tuple[str, ...] = ()
    # Qualified name, inside its file, of the function or class it is a unit of.
    symbol: str | None = None
    signature: str = ""


class CodeFacts(NamedTuple):
    """One source file. `prose` are the spans of docstrings and comments; `problem` says why it was
    not parsed.
    """

    module: str
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[ModuleImport, ...] = ()
    sections: tuple[Section, ...] = ()
    prose: tuple[Span, ...] = ()
    problem: str = ""


class CharOffsets:
    """Characters for UTF-8 byte offsets: parsers count bytes, spans count characters."""

    def __init__(self, encoded: bytes) -> None:
        self._continuations = (
            []
            if encoded.isascii()
            else [match.start() for match in _CONTINUATION.finditer(encoded)]
        )

    def __getitem__(self, byte: int) -> int:
        if self._continuations:
            return byte - bisect_left(self._continuations, byte)
        return byte


def prose_spans(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans in order, trimmed, none twice; of two that overlap the one that begins first stays."""
    prose: list[Span] = []
    for start, end in sorted({trim(text, start, end) for start, end in spans}):
        if start < end and (not prose or start >= prose[-1][1]):
            prose.append((start, end))

    return tuple(prose)


def unique_imports(facts: Iterable[ModuleImport]) -> tuple[ModuleImport, ...]:
    """Each import once, at its first place."""
    first_facts: dict[ModuleImport, ModuleImport] = {}
    for fact in facts:
        first_facts.setdefault(fact._replace(span=(0, 0)), fact)

    return tuple(first_facts.values())


def trim(text: str, start: int, end: int) -> Span:
    """The span without white space at its ends."""
    piece = text[start:end]
    end = start + len(piece.rstrip()) if piece.strip() else start
    return start + len(piece) - len(piece.lstrip()), end


def one_line(text: str, limit: int = SIGNATURE_CHARS) -> str:
    """Text on one line, cut at the limit."""
    return " ".join(text[: 4 * limit].split())[:limit]


def is_worth_reading(
    comment: str,
    lines: int,
    at_top: bool,
) -> bool:
    """Whether a comment says something: two lines or forty characters, words rather than rules, no
    licence header.
    """
    letters = sum(map(str.isalpha, comment[:2000]))
    if letters < COMMENT_CHARS // 2 or (lines < 2 and len(comment) < COMMENT_CHARS):
        return False

    return not (at_top and _LICENCE.search(comment))


# The lines of a code file divided into units: functions, methods, class heads and regions at module
# level. Each line that is not blank belongs to exactly one unit. A unit is a run of whole lines, so
# that its span cites the file exactly. Class-level statements between two methods are a unit of the
# class; statements between two functions are a unit of the module. Comments, decorators and
# attributes directly above a definition belong to it.
# longer units are divided at statements: about four times what the default embedder reads
UNIT_CHARS = 3_000
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
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def __len__(self) -> int:
        return len(self.starts)

    def at(self, position: int) -> int:
        """The line that holds a character."""
        return bisect_right(self.starts, position) - 1

    def end(self, line: int) -> int:
        """Where a line ends, its line break included."""
        if line + 1 < len(self.starts):
            return self.starts[line + 1]
        return len(self._text)

    def text(self, line: int) -> str:
        """A line with its line break."""
        return self._text[self.starts[line] : self.end(line)]


def code_units(
    text: str,
    module: str,
    symbols: Sequence[Symbol],
    lead_lines: Collection[int],
    statement_lines: StatementLines,
) -> tuple[Section, ...]:
    """The units of a file in the order of its text.

    `symbols` are sorted by start, outer before inner. `lead_lines` hold only a comment, a decorator
    or an attribute. `statement_lines` gives the lines on which a statement begins; it is called
    only when a unit is too long.
    """
    lines = Lines(text)
    owners = _owners(lines, symbols, lead_lines)
    units: list[Section] = []
    begun: set[int] = set()
    statements: Collection[int] | None = None

    for owner, begin, end in _runs(lines, owners):
        symbol = symbols[owner] if owner != _NO_OWNER else None
        parts = [(begin, end)]
        if _is_long(lines, begin, end):
            if statements is None:
                statements = statement_lines()
            parts = list(_divide(lines, begin, end, statements))

        for first, last in parts:
            is_later = owner in begun
            begun.add(owner)
            start = lines.starts[first]
            end = start + len(text[start : lines.end(last)].rstrip())
            units.append(_unit(start, end, module, symbol, is_later))

    return tuple(units)


def line_units(
    text: str,
    heading: str,
    kind: str,
) -> tuple[Section, ...]:
    """Units of a text without known structure: runs of lines, divided where an unindented line
    follows a blank one.
    """

    def paragraph_starts() -> set[int]:
        written = [lines.text(line) for line in range(len(lines))]
        pairs = enumerate(pairwise(written), start=1)
        return {
            line
            for line, (above, line_text) in pairs
            if line_text.strip() and (not above.strip() or not line_text[0].isspace())
        }

    lines = Lines(text)
    units = code_units(text, heading, (), (), paragraph_starts)
    return tuple(unit._replace(kind=kind, headings=(heading,)) for unit in units)


def plain_facts(text: str, module: str, problem: str) -> CodeFacts:
    """A file that was not parsed: its first lines as units."""
    return CodeFacts(
        module,
        sections=line_units(text[:PLAIN_CHARS], module, "module"),
        problem=problem,
    )


def _owners(
    lines: Lines,
    symbols: Sequence[Symbol],
    lead_lines: Collection[int],
) -> list[int]:
    """The symbol that owns each line: the innermost one, except that a line with two symbols goes
    to the first.
    """
    owners = [_NO_OWNER] * len(lines)

    around: list[tuple[int, int, int]] = []  # symbol, end, first line
    for index, symbol in enumerate(symbols):
        while around and around[-1][1] <= symbol.start:
            around.pop()

        first = lines.at(symbol.start)
        last = lines.at(max(symbol.start, symbol.end - 1))
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


def _runs(lines: Lines, owners: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Owner, first and last line of each run of lines of one owner that only blank lines part; it
    ends at none.
    """
    owned: list[tuple[int, int]] = []
    for line, owner in enumerate(owners):
        text = lines.text(line)
        if owned and not _LETTER.search(text):  # a closing bracket stays with what it closes
            owner = owned[-1][0]
        if text.strip():
            owned.append((owner, line))

    for owner, run in groupby(owned, key=itemgetter(0)):
        rows = [line for _, line in run]
        yield owner, rows[0], rows[-1]


def _is_long(lines: Lines, first: int, last: int) -> bool:
    return last - first >= UNIT_LINES or lines.end(last) - lines.starts[first] > UNIT_CHARS


def _divide(
    lines: Lines,
    first: int,
    last: int,
    statements: Collection[int],
) -> Iterator[tuple[int, int]]:
    """Parts within the limits, each ending before the least indented statement of the later half of
    its room.
    """
    while _is_long(lines, first, last):
        room = first + 1
        while room <= last and not _is_long(lines, first, room):
            room += 1

        half = first + max(1, (room - first) // 2)
        places = [line for line in range(half, room + 1) if line in statements and line <= last]
        if not places:
            places = [
                line for line in range(half, room + 1) if line <= last and lines.text(line).strip()
            ]

        if not places:
            break

        cut = min(
            places, key=lambda line: (len(lines.text(line)) - len(lines.text(line).lstrip()), -line)
        )
        yield first, next(line for line in range(cut - 1, -1, -1) if lines.text(line).strip())
        first = cut

    yield first, last


def _unit(
    start: int,
    end: int,
    module: str,
    symbol: Symbol | None,
    is_later: bool,
) -> Section:
    """One unit; a later part of a symbol repeats its signature and the first line of its
    documentation.
    """
    if symbol is None:
        return Section(
            start,
            end,
            "module",
            (module,) if module else (),
        )

    local = symbol.qualified_name.removeprefix(f"{module}.")
    headings = [local]
    if is_later:
        first_line = symbol.docstring.partition("\n")[0]
        headings += filter(None, (symbol.signature, one_line(first_line, _HEADER_CHARS)))

    return Section(
        start,
        end,
        symbol.kind,
        tuple(headings),
        symbol=local,
        signature=symbol.signature,
    )


_BETWEEN = ("@", "#[", "template")  # what may stand between a doc comment and what it documents
_MARKS = re.compile(r"^[ \t]*(?:/\*+!?|\*+/|\*|///?!?|#+)?[ \t]?|\*+/$", re.MULTILINE)


@dataclass
class Comment:
    """Comments on adjoining lines, with nothing else on them."""

    start: int
    end: int
    first_row: int
    last_row: int


class CommentBlocks:
    """Comments in the order of the text, joined into blocks as they come."""

    def __init__(self, text: str) -> None:
        self._text, self._lines = text, text.split("\n")
        self._blocks: list[Comment] = []
        self._documenting: set[int] = set()

    def add(self, start: int, end: int, row: int) -> None:
        """One comment; behind code on the same line it is a remark on that line and is left out."""
        if self._text[self._text.rfind("\n", 0, start) + 1 : start].strip():
            return

        content = self._text[start:end].rstrip()
        last_row = row + content.count("\n")
        last = self._blocks[-1] if self._blocks else None
        continues = last is not None and last.last_row == row - 1 and not content.startswith("/*")

        if (
            last is not None
            and continues
            and self._text[last.start : last.start + 2] == content[:2]
        ):
            last.end, last.last_row = start + len(content), last_row
        else:
            self._blocks.append(Comment(start, start + len(content), row, last_row))

    @cached_property
    def _by_last_row(self) -> dict[int, Comment]:
        return {block.last_row: block for block in self._blocks}

    def document(self, row: int) -> str:
        """The words that document what begins on this line: the block right above it, attributes
        between allowed.
        """
        while row > 0 and self._lines[row - 1].lstrip().startswith(_BETWEEN):
            row -= 1

        comment = self._by_last_row.get(row - 1)
        if comment is None:
            return ""

        self._documenting.add(comment.start)
        return _MARKS.sub("", self._text[comment.start : comment.end]).strip()

    def prose(self) -> Iterator[Span]:
        """Spans of the comments that document a symbol or say something, without the marks of block
        comments.
        """
        for block in self._blocks:
            comment = self._text[block.start : block.end]
            lines = block.last_row - block.first_row + 1
            is_read = is_worth_reading(
                comment,
                lines,
                at_top=block.first_row < 3,
            )

            if not is_read and block.start not in self._documenting:
                continue

            start = block.start
            end = block.end
            if comment.startswith("/*") and comment.endswith("*/"):
                start = end - len(comment.lstrip("/*! \t\r\n"))
                end = max(start, end - len("*/"))

            yield start, end

    def lead_lines(self, lines: Lines) -> set[int]:
        """Lines that hold only a comment, or begin with what may stand between a comment and a
        definition.
        """
        attribute_lines = set()
        for row in range(len(lines)):
            if lines.text(row).lstrip().startswith(_BETWEEN):
                attribute_lines.add(row)

        for block in self._blocks:
            attribute_lines.update(range(lines.at(block.start), lines.at(block.end - 1) + 1))

        return attribute_lines
