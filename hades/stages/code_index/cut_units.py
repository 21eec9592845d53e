"""A file as the units that are searched: the same cut that ingestion stores."""

from __future__ import annotations

from collections.abc import Iterator

from hades.ingest.chunks import ChunkedText, LineNumbers, cut_sections
from hades.ingest.source_document import Material, Section
from hades.ports.text import Tokenizer
from hades.retrieval.code.index import CodeUnit
from schemas.chunks import ChunkKind


def cut_units(material: Material, tokenizer: Tokenizer) -> Iterator[CodeUnit]:
    """Units of code whole, prose in pieces that an embedder reads."""
    text = material.text
    path = material.code.path if material.code else material.origin
    sections = material.sections or (Section(0, len(text), ChunkKind.PROSE),)
    document = ChunkedText(path, material.title, text, sections, None, path)
    lines = LineNumbers()
    for section, start, end in cut_sections(document, tokenizer):
        first, last = lines.of(document, start), lines.of(document, end - 1)
        yield CodeUnit(path, section.symbol or "", str(section.kind), first, last, text[start:end])
