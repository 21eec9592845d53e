"""Office files as Markdown: Word documents, presentations, spreadsheets and tables as text."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from hades.ingest.formats.epub import check_archive
from hades.ingest.formats.markup import Heading, outline
from hades.ingest.formats.registry import ExtractedDocument, PartList, as_utc, write_table

if TYPE_CHECKING:
    from docx.table import Table

_HEADING_STYLE = re.compile(
    r"(?:heading|Überschrift|titre|título|titolo|kop)\s*([1-9])$",
    re.IGNORECASE,
)


def read_word(content: bytes) -> list[ExtractedDocument]:
    """One part a section; its text begins with the heading line."""
    import docx
    from docx.text.paragraph import Paragraph

    document = docx.Document(check_archive(content))
    blocks = [""]

    headings = []
    for block in document.iter_inner_content():
        if isinstance(block, Paragraph):
            text = block.text.strip()
            style = (block.style.name if block.style is not None else "") or ""
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

    parts = PartList()
    core = document.core_properties
    written = "".join(blocks)
    outlined = outline(written, headings)
    parts.add_regions(written, outlined.regions)
    return [parts.document(core.title or outlined.title, as_utc(core.created))]


def _table_cells(table: Table) -> list[list[str]]:
    """The cells of each row; a cell that spans several columns is written in its first."""
    rows = []
    for row in table.rows:
        texts: list[str] = []
        written: list[Any] = []  # elements of cells; a wide cell comes once for each column
        for cell in row.cells:
            texts.append("" if cell._tc in written else " ".join(cell.text.split()))
            written.append(cell._tc)

        rows.append(texts)

    return rows


def read_slides(content: bytes) -> list[ExtractedDocument]:
    """Slides in order under the heading `slide N: title`."""
    import pptx

    deck = pptx.Presentation(check_archive(content))
    parts = PartList()
    first_title = ""

    for number, slide in enumerate(deck.slides, start=1):
        title_shape = slide.shapes.title
        if title_shape is not None:
            title = " ".join(title_shape.text_frame.text.split())
        else:
            title = ""

        first_title = first_title or title
        lines = [f"# {title}" if title else "", *_lines(slide.shapes, title_shape)]
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            lines += [f"Notes: {notes}"] if notes else []

        parts.add(
            (f"slide {number}: {title}" if title else f"slide {number}",),
            "\n\n".join(filter(None, lines)),
        )

    return [
        parts.document(
            deck.core_properties.title or first_title,
            as_utc(deck.core_properties.created),
        )
    ]


def _lines(shapes: Iterable[Any], title_shape: Any) -> Iterator[str]:
    """Text of shapes in reading order of the file; groups are opened with a stack, they may be
    nested deeply.
    """
    pending = list(shapes)[::-1]
    while pending:
        shape = pending.pop()
        if hasattr(shape, "shapes"):
            pending += list(shape.shapes)[::-1]
            continue

        if title_shape is not None and shape.shape_id == title_shape.shape_id:
            continue

        if getattr(shape, "has_text_frame", False):
            paragraphs = (paragraph.text.strip() for paragraph in shape.text_frame.paragraphs)
            texts = list(filter(None, paragraphs))
            yield "\n".join(f"- {text}" for text in texts) if len(texts) > 1 else "".join(texts)

        if getattr(shape, "has_table", False):
            yield write_table(list(map(_cell_texts, shape.table.rows)))


def _cell_texts(row: Any) -> list[str]:
    return [cell.text for cell in row.cells]


_PART_CHARS = 1_000  # about one passage
_SAMPLE_CHARS = 16 << 10
NumberedRow = tuple[int, Sequence[object]]


def read_workbook(content: bytes) -> list[ExtractedDocument]:
    """Every sheet; values as last calculated, not formulas."""
    import openpyxl

    book = openpyxl.load_workbook(
        check_archive(content),
        read_only=True,
        data_only=True,
    )
    parts = PartList()

    for sheet in book.worksheets:
        sheet.reset_dimensions()  # the size that a file claims may be a million empty rows
        _add_rows(
            parts,
            sheet.title,
            enumerate(sheet.iter_rows(values_only=True), start=1),
        )

    return [parts.document(book.properties.title or "", as_utc(book.properties.created))]


def read_delimited(text: str) -> list[ExtractedDocument]:
    """A table with commas, semicolons or tabs."""
    csv.field_size_limit(1 << 20)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:_SAMPLE_CHARS], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel

    parts = PartList()
    _add_rows(
        parts,
        "",
        enumerate(csv.reader(text.splitlines(), dialect), start=1),
    )
    return [parts.document()]


def _add_rows(
    parts: PartList,
    sheet: str,
    rows: Iterable[NumberedRow],
) -> None:
    """Rows as items of `column: value`, in parts that name their cells."""
    filled = ((number, _cells(values)) for number, values in rows)
    nonempty = ((number, cells) for number, cells in filled if any(cells))
    first = next(nonempty, None)

    if first is None:
        return

    header = first[1] if _is_header(first[1]) else []
    lines: list[str] = []
    start = last = first[0]
    widest = len(first[1])

    length = 0
    for number, cells in nonempty if header else chain([first], nonempty):
        line = f"- row {number}: {_row_text(header, cells)}"
        if lines and length + len(line) > _PART_CHARS:
            parts.add((sheet, _range(start, last, widest)), "\n".join(lines))
            lines = []
            length = 0

        if not lines:
            start = number

        lines.append(line)
        length += len(line) + 1
        last = number
        widest = max(widest, len(cells))

    if not lines and header:
        lines = [f"- row {first[0]}: {' | '.join(filter(None, header))}"]

    parts.add((sheet, _range(start, last, widest)), "\n".join(lines))


def _cells(values: Sequence[object]) -> list[str]:
    cells = [_cell_text(value) for value in values]
    return cells[: max((place for place, cell in enumerate(cells, start=1) if cell), default=0)]


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() != value.min.time():
        return value.isoformat(" ", "minutes")
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))

    return " ".join(str(value).split())


def _is_header(cells: Sequence[str]) -> bool:
    """Whether a first row names the columns: words, each once, none of them a number."""
    titles = [cell for cell in cells if cell]
    if len(titles) < 2 or len(set(titles)) < len(titles) or max(map(len, titles)) >= 80:
        return False

    plain = (title.replace(".", "", 1).replace("-", "", 1) for title in titles)
    return not any(map(str.isdigit, plain))


def _row_text(header: Sequence[str], cells: Sequence[str]) -> str:
    parts = []
    for title, cell in zip_longest(header, cells, fillvalue=""):
        if cell:
            parts.append(f"{title}: {cell}" if title else cell)

    return " | ".join(parts)


def _range(first: int, last: int, columns: int) -> str:
    """`A2:D21`, as spreadsheets name a block of cells."""
    from openpyxl.utils import get_column_letter

    return f"A{first}:{get_column_letter(max(columns, 1))}{last}"
