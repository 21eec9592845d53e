"""Word documents, with python-docx, as Markdown: headings, paragraphs, lists and tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hades.ingest.formats.epub import check_archive
from hades.ingest.formats.registry import ExtractedDocument, PartList, as_utc, write_table

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
            sections.write(write_table(_cells(block)))
            continue
        text, style = block.text.strip(), block.style.name if block.style is not None else ""
        heading = _HEADING_STYLE.match(style or "")
        if text and (heading or style == "Title"):
            sections.start(int(heading[1]) if heading else 0, text)
            title = title or text
        elif text:
            sections.write(text, is_item=(style or "").startswith("List"))
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
        self._lines.append(f"{'#' * min(max(level, 1), 6)} {heading}")

    def write(self, text: str, *, is_item: bool = False) -> None:
        """Add a paragraph, a table or an item of a list."""
        if text:
            follows = is_item and self._lines and self._lines[-1].startswith("- ")
            self._lines += [*([] if follows or not self._lines else [""]), f"- {text}" if is_item else text]

    def finish(self) -> PartList:
        """Every section."""
        self._end()
        return self._parts

    def _end(self) -> None:
        headings = [title for _, title in self._path]
        if not headings or len(self._lines) > 1:  # a heading with nothing under it is in the path of the next
            self._parts.add(headings, "\n".join(self._lines))
        self._lines = []


def _cells(table: Table) -> list[list[str]]:
    """The cells of each row; a cell that spans several columns is written in its first."""
    rows = []
    for row in table.rows:
        own = [cell._tc for cell in row.cells]
        texts = [" ".join(cell.text.split()) for cell in row.cells]
        rows.append(
            [text if own.index(one) == place else "" for place, (one, text) in enumerate(zip(own, texts, strict=True))]
        )
    return rows
