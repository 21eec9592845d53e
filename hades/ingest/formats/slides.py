"""Presentations, with python-pptx: one part a slide, with its tables and the speaker's notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hades.ingest.formats.epub import check_archive
from hades.ingest.formats.registry import ExtractedDocument, PartList, as_utc, write_table


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
