"""Spreadsheets, with openpyxl, and tables as text: rows as items of `column: value`, in parts that name their cells."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from itertools import chain

from hades.ingest.formats.epub import check_archive
from hades.ingest.formats.registry import ExtractedDocument, PartList, as_utc

_PART_CHARS = 1_000  # about one passage
_SAMPLE_CHARS = 16 << 10
NumberedRow = tuple[int, Sequence[object]]


def read_workbook(data: bytes) -> list[ExtractedDocument]:
    """Every sheet; values as last calculated, not formulas."""
    import openpyxl

    book = openpyxl.load_workbook(check_archive(data), read_only=True, data_only=True)
    parts = PartList()
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # the size that a file claims may be a million empty rows
        _add_rows(parts, sheet.title, enumerate(sheet.iter_rows(values_only=True), start=1))
    return [parts.document(book.properties.title or "", as_utc(book.properties.created))]


def read_delimited(text: str) -> list[ExtractedDocument]:
    """A table with commas, semicolons or tabs."""
    csv.field_size_limit(1 << 20)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:_SAMPLE_CHARS], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    parts = PartList()
    _add_rows(parts, "", enumerate(csv.reader(text.splitlines(), dialect), start=1))
    return [parts.document()]


def _add_rows(parts: PartList, sheet: str, rows: Iterable[NumberedRow]) -> None:
    filled = ((number, _cells(values)) for number, values in rows)
    kept = ((number, cells) for number, cells in filled if any(cells))
    first = next(kept, None)
    if first is None:
        return
    header = first[1] if _is_header(first[1]) else []
    lines: list[str] = []
    start = last = first[0]
    widest, length = len(first[1]), 0
    for number, cells in kept if header else chain([first], kept):
        line = f"- row {number}: {_row_text(header, cells)}"
        if lines and length + len(line) > _PART_CHARS:
            parts.add((sheet, _range(start, last, widest)), "\n".join(lines))
            lines, length = [], 0
        if not lines:
            start = number
        lines.append(line)
        length += len(line) + 1
        last, widest = number, max(widest, len(cells))
    if not lines and header:
        lines = [f"- row {first[0]}: {' | '.join(filter(None, header))}"]
    parts.add((sheet, _range(start, last, widest)), "\n".join(lines))


def _cells(values: Sequence[object]) -> list[str]:
    cells = [_cell_text(value) for value in values]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == value.min.time() else value.isoformat(" ", "minutes")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return " ".join(str(value).split())


def _is_header(cells: Sequence[str]) -> bool:
    """Whether a first row names the columns: words, each once, none of them a number."""
    named = [cell for cell in cells if cell]
    numbers = any(cell.replace(".", "", 1).replace("-", "", 1).isdigit() for cell in named)
    return len(named) > 1 and len(set(named)) == len(named) and not numbers and all(len(cell) < 80 for cell in named)


def _row_text(header: Sequence[str], cells: Sequence[str]) -> str:
    if not header:
        return " | ".join(cell for cell in cells if cell)
    named = [
        f"{header[index]}: {cell}" if index < len(header) and header[index] else cell
        for index, cell in enumerate(cells)
        if cell
    ]
    return " | ".join(named)


def _range(first: int, last: int, columns: int) -> str:
    """`A2:D21`, as spreadsheets name a block of cells."""
    from openpyxl.utils import get_column_letter

    return f"A{first}:{get_column_letter(max(columns, 1))}{last}"
