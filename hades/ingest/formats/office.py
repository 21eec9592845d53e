"""Office files as Markdown: Word documents, presentations, spreadsheets and tables as text."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from hades.ingest.formats.epub import check_archive
from hades.ingest.formats.markup import Heading, outline
from hades.ingest.formats.registry import ExtractedDocument, PartList, as_utc, write_table

if TYPE_CHECKING:
    from docx.table import Table

_HEADING_STYLE = re.compile(r"(?:heading|Überschrift|titre|título|titolo|kop)\s*([1-9])$", re.IGNORECASE)


def read_word(data: bytes) -> list[ExtractedDocument]:
    """One part a section; its text begins with the heading line."""
    import docx
    from docx.text.paragraph import Paragraph

    document = docx.Document(check_archive(data))
    blocks, headings = [""], []
    for block in document.iter_inner_content():
        if isinstance(block, Paragraph):
            text, style = block.text.strip(), (block.style.name if block.style is not None else "") or ""
            heading = _HEADING_STYLE.match(style)
            if text and (heading or style == "Title"):
                level = int(heading[1]) if heading else 0
                headings.append(Heading(level, text, sum(map(len, blocks))))
                text = f"{'#' * min(max(level, 1), 6)} {text}"
            elif text and style.startswith("List"):
                text = f"- {text}"
                if blocks[-1].startswith("- "):  # items of a list follow line by line
                    blocks[-1] = blocks[-1][:-1]
        else:
            text = write_table(_table_cells(block))
        blocks += [f"{text}\n\n"] if text else []
    parts, core, written = PartList(), document.core_properties, "".join(blocks)
    outlined = outline(written, headings)
    parts.add_regions(written, outlined.regions)
    return [parts.document(core.title or outlined.title, as_utc(core.created))]


def _table_cells(table: Table) -> list[list[str]]:
    """The cells of each row; a cell that spans several columns is written in its first."""
    rows = []
    for row in table.rows:
        own = [cell._tc for cell in row.cells]
        texts = [" ".join(cell.text.split()) for cell in row.cells]
        rows.append(
            [text if own.index(one) == place else "" for place, (one, text) in enumerate(zip(own, texts, strict=True))]
        )
    return rows


def read_slides(data: bytes) -> list[ExtractedDocument]:
    """Slides in order under the heading `slide N: title`."""
    import pptx

    deck = pptx.Presentation(check_archive(data))
    parts = PartList()
    first_title = ""
    for number, slide in enumerate(deck.slides, start=1):
        title_shape = slide.shapes.title
        title = " ".join(title_shape.text_frame.text.split()) if title_shape is not None else ""
        first_title = first_title or title
        lines = [f"# {title}" if title else "", *_lines(slide.shapes, title_shape)]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            lines += [f"Notes: {notes}"] if notes else []
        parts.add((f"slide {number}: {title}" if title else f"slide {number}",), "\n\n".join(filter(None, lines)))
    return [parts.document(deck.core_properties.title or first_title, as_utc(deck.core_properties.created))]


def _lines(shapes: Iterable[Any], title_shape: Any) -> Iterator[str]:
    """Text of shapes in reading order of the file; groups are opened with a stack, they may be nested deeply."""
    pending = list(shapes)[::-1]
    while pending:
        shape = pending.pop()
        if hasattr(shape, "shapes"):
            pending += list(shape.shapes)[::-1]
            continue
        if title_shape is not None and shape.shape_id == title_shape.shape_id:
            continue
        if getattr(shape, "has_text_frame", False):
            texts = [text for paragraph in shape.text_frame.paragraphs if (text := paragraph.text.strip())]
            yield "\n".join(f"- {text}" for text in texts) if len(texts) > 1 else "".join(texts)
        if getattr(shape, "has_table", False):
            yield write_table([[cell.text for cell in row.cells] for row in shape.table.rows])


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
    """Rows as items of `column: value`, in parts that name their cells."""
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
    return cells[: max((place for place, cell in enumerate(cells, start=1) if cell), default=0)]


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
