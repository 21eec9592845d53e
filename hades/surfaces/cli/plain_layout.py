"""Lines and columns for people, laid out as rich lays them out, without loading rich where plain text is enough.

Loading rich takes a twentieth of the time of a first answer. A terminal gets its styles and so needs it; a pipe does
not, unless a text holds characters whose width only rich knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import TypeAlias

    from rich.console import RenderableType
    from rich.text import Text

# Characters of one cell: ASCII, letters of Western languages and Greek, dashes, quotation marks, the ellipsis.
_PLAIN = re.compile("[ -~\n\u00a1-\u00ac\u00ae-\u024f\u0391-\u03a1\u03a3-\u03c9\u2010-\u2027]*")
_WORD = re.compile(r"\s*\S+\s*")
_BETWEEN = "  "  # columns


class Line(NamedTuple):
    """A text in one style, wrapped at words where it is wider than the page."""

    text: str
    style: str = ""


class Columns(NamedTuple):
    """Rows under their names; numbers stand to the right."""

    names: tuple[str, ...]
    are_numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


if TYPE_CHECKING:
    ViewPart: TypeAlias = RenderableType | Line | Columns  # of what a command shows a person


def lay_out(parts: Iterable[object], width: int) -> str | None:
    """What rich would print on a page of this width without styles; None where that needs rich."""
    lines: list[str] = []
    for part in parts:
        one = Line(part) if isinstance(part, str) else part
        laid = _lines(one, width) if isinstance(one, Line) else _rows(one, width) if isinstance(one, Columns) else None
        if laid is None:
            return None
        lines += laid
    return "".join(f"{line}\n" for line in lines)


def to_text(line: Line) -> Text:
    """The line as rich prints it."""
    from rich.text import Text

    return Text(line.text, style=line.style)


def to_rich(part: ViewPart) -> RenderableType:
    """The part as rich prints it."""
    from rich.table import Table
    from rich.text import Text

    if isinstance(part, str | Line):
        return to_text(part if isinstance(part, Line) else Line(part))
    if not isinstance(part, Columns):
        return part
    table = Table(box=None, pad_edge=False)
    for name, is_number in zip(part.names, part.are_numbers, strict=True):
        table.add_column(name, justify="right" if is_number else "left")
    for row in part.rows:
        table.add_row(*map(Text, row))
    return table


def _lines(line: Line, width: int) -> list[str] | None:
    if not _PLAIN.fullmatch(line.text):
        return None
    return [_crop_blanks(piece, width) for one in line.text.split("\n") for piece in _wrap(one, width)]


def _rows(columns: Columns, width: int) -> list[str] | None:
    rows = (columns.names, *columns.rows)
    if any("\n" in cell or not _PLAIN.fullmatch(cell) for row in rows for cell in row):
        return None
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + len(_BETWEEN) * (len(widths) - 1) > width:
        return None  # which column gives way, and where it breaks, rich knows
    return [
        _BETWEEN.join(
            cell.rstrip().rjust(most) if is_number else cell.ljust(most)
            for cell, most, is_number in zip(row, widths, columns.are_numbers, strict=True)
        )
        for row in rows
    ]


def _wrap(text: str, width: int) -> Iterator[str]:
    """The text broken before words that no longer fit; a word that fits no line is broken inside."""
    begin, filled = 0, 0
    for match in _WORD.finditer(text):
        word, start = match.group(), match.start()
        length = len(word.rstrip())
        if length <= width - filled:
            filled += len(word)
            continue
        if length <= width:
            breaks, filled = [start], len(word)
        else:
            breaks = list(range(start, match.end(), width))
            filled = match.end() - breaks[-1]
        for place in breaks:
            if place:
                yield text[begin:place]
                begin = place
    yield text[begin:]


def _crop_blanks(line: str, width: int) -> str:
    """Without the blanks at its end that stand beyond the page."""
    blanks = len(line) - len(line.rstrip())
    return line[: len(line) - min(blanks, max(0, len(line) - width))]
