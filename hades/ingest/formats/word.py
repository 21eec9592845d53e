"""Word documents, with python-docx: paragraphs under their headings, tables row by row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hades.ingest.formats.epub import check_archive
from hades.ingest.formats.registry import ExtractedDocument, PartList, as_utc

if TYPE_CHECKING:
    from docx.table import Table


_HEADING_STYLE = re.compile(r"(?:heading|Überschrift|titre|título|titolo|kop)\s*([1-9])$", re.IGNORECASE)


def read_word(data: bytes) -> list[ExtractedDocument]:
    """One part a section; its text begins with the heading line."""
    import docx
    from docx.text.paragraph import Paragraph

    document = docx.Document(check_archive(data))
    sections = _Sections()
    title = document.core_properties.title or ""
    for block in document.iter_inner_content():
        if not isinstance(block, Paragraph):
            sections.write(_table_text(block))
            continue
        text, style = block.text.strip(), block.style.name if block.style is not None else ""
        heading = _HEADING_STYLE.match(style or "")
        if text and (heading or style == "Title"):
            sections.start(int(heading[1]) if heading else 0, text)
            title = title or text
        elif text:
            sections.write(f"- {text}" if (style or "").startswith("List") else text)
    return [sections.finish().document(title, as_utc(document.core_properties.created))]


class _Sections:
    """Lines collected under the path of headings that leads to them."""

    def __init__(self) -> None:
        self._parts = PartList()
        self._path: list[tuple[int, str]] = []
        self._lines: list[str] = []

    def start(self, level: int, heading: str) -> None:
        """End the section and begin one under this heading."""
        self._end()
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, heading))
        self._lines.append(heading)

    def write(self, text: str) -> None:
        """Add a paragraph or a table."""
        if text:
            self._lines.append(text)

    def finish(self) -> PartList:
        """Every section."""
        self._end()
        return self._parts

    def _end(self) -> None:
        headings = [title for _, title in self._path]
        if not headings or self._lines != [headings[-1]]:  # a heading with nothing under it is in the path of the next
            self._parts.add(headings, "\n".join(self._lines))
        self._lines = []


def _table_text(table: Table) -> str:
    """One line a row, cells divided by bars; a merged cell is written once."""
    lines = []
    for row in table.rows:
        seen: list[Any] = []
        cells = []
        for cell in row.cells:
            if cell._tc not in seen:
                seen.append(cell._tc)
                cells.append(" ".join(cell.text.split()))
        lines.append(" | ".join(cells))
    return "\n".join(line for line in lines if line.strip(" |"))
