"""Word documents, with python-docx, as Markdown: headings, paragraphs, lists and tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
            text = write_table(_cells(block))
        blocks += [f"{text}\n\n"] if text else []
    parts, core, written = PartList(), document.core_properties, "".join(blocks)
    outlined = outline(written, headings)
    parts.add_regions(written, outlined.regions)
    return [parts.document(core.title or outlined.title, as_utc(core.created))]


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
