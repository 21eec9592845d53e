"""PDF files as plain text: read in a confined child, so that neither bombs nor damage reach the run."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from hades.ingest.source_document import RejectReason, Section
from hades.ingest.sources.confined import ConfinedPool, Stopped
from hades.ingest.sources.parallel_reading import WORKERS
from hades.ingest.sources.pdf_pages import PdfPages
from hades.ingest.sources.reading import Unusable
from schemas.chunks import ChunkKind

MAX_PDF_BYTES = 128 << 20
_CPU_SECONDS = 30.0
_CPU_SECONDS_PER_MEGABYTE = 10.0
_MAGIC_WITHIN = 1024  # readers accept a header anywhere in the first kilobyte


class PdfText:
    """Converts PDF files, several at a time when called from several threads."""

    def __init__(self) -> None:
        self._children = ConfinedPool("hades.ingest.sources.pdf_pages:extract_pages", WORKERS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._children.__exit__(kind, error, trace)

    def convert(self, data: bytes) -> tuple[str, str, tuple[Section, ...]]:
        """Text, title and one section a page; spans count characters of the text."""
        if b"%PDF-" not in data[:_MAGIC_WITHIN]:
            raise Unusable(RejectReason.MALFORMED, "named .pdf, but it has no PDF header", len(data))
        allowed = min(4 * _CPU_SECONDS, _CPU_SECONDS + _CPU_SECONDS_PER_MEGABYTE * len(data) / 1e6)
        try:
            found: PdfPages = self._children.call(data, cpu_seconds=allowed)
        except Stopped as stopped:
            raise Unusable(RejectReason.OVERSIZED, stopped.reason, len(data)) from stopped
        if found.problem:
            raise Unusable(RejectReason(found.reason), found.problem, len(data))
        if not any(found.pages):
            detail = f"no text layer in {len(found.pages)} pages"
            raise Unusable(RejectReason.EMPTY, detail, len(data))
        return _joined(found)


def _joined(found: PdfPages) -> tuple[str, str, tuple[Section, ...]]:
    sections: list[Section] = []
    parts: list[str] = []
    position = 0
    for number, page in enumerate(found.pages, start=1):
        if not page:
            continue
        sections.append(Section(position, position + len(page), ChunkKind.PROSE, (f"page {number}",)))
        parts.append(page)
        position += len(page) + 2
    return "\n\n".join(parts), " ".join(found.title.split()), tuple(sections)
