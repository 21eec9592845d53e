"""Plain documents: Markdown, reStructuredText and text as they are, HTML and PDF converted to text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from hades.ingest.source_document import Material, Rejected, RejectReason, Section
from hades.ingest.sources.html_text import html_to_text
from hades.ingest.sources.markup import Outline, outline_markdown, outline_rst
from hades.ingest.sources.parallel_reading import in_order
from hades.ingest.sources.pdf import MAX_PDF_BYTES, PdfText
from hades.ingest.sources.reading import (
    SourceError,
    Unusable,
    read_bytes,
    read_text,
    require_short_lines,
    shown,
)
from hades.ingest.sources.walk import Found, walk
from schemas.chunks import ChunkKind
from schemas.nodes import SourceKind

_HTML = frozenset({".html", ".htm", ".xhtml"})
_PDF = frozenset({".pdf"})
_PROSE = {".md": "markdown", ".markdown": "markdown", ".mdx": "markdown", ".rst": "rst", ".txt": "text", "": "text"}
_MIMES = {"markdown": "text/markdown", "rst": "text/x-rst", "text": "text/plain"}


class Prose(NamedTuple):
    """Text with its title and sections; spans count characters of the text."""

    text: str
    title: str
    mime: str
    sections: tuple[Section, ...]


class DocumentsSource:
    """Every document below a folder, or one file. Contents that were met before are set aside as duplicates."""

    kind = SourceKind.DOCUMENTS

    def __init__(self, root: Path) -> None:
        if not root.exists():
            raise SourceError(f"{root} does not exist; expected a folder of documents or one document")
        if not root.is_dir() and not root.is_file():
            raise SourceError(f"{root} is neither a folder nor a regular file; expected documents")
        resolved = root.resolve()
        self._root = resolved if resolved.is_dir() else resolved.parent
        self._starts = ("",) if resolved.is_dir() else (resolved.name,)
        self.corpus = resolved.name
        self.place = str(resolved)
        self.mirrors = resolved.is_dir()

    def estimate(self) -> int | None:
        """Files to look at."""
        return sum(1 for _ in self._files())

    def read(self) -> Iterator[Material | Rejected]:
        """Documents in the order of their paths."""
        first_with: dict[str, str] = {}
        with PdfText() as pdf:
            for outcome in in_order(partial(_outcome, pdf), self._files()):
                if isinstance(outcome, Rejected):
                    yield outcome
                    continue
                digest = hashlib.sha256(outcome.text.encode()).hexdigest()
                first = first_with.setdefault(digest, outcome.origin)
                if first == outcome.origin:
                    yield outcome
                else:
                    detail, size = f"same text as {first}", len(outcome.text)
                    yield Rejected(SourceKind.DOCUMENTS, outcome.origin, RejectReason.DUPLICATE, detail, size)

    def _files(self) -> Iterator[Found]:
        for found in walk(str(self._root), self._starts, respect_ignores=False):
            if not PurePosixPath(found.relative).name.startswith("."):
                yield found


def prose_language(path: str) -> str | None:
    """`markdown`, `rst` or `text` by the file's name; None for anything else."""
    return _PROSE.get(PurePosixPath(path).suffix.lower())


def read_prose(text: str, path: str, language: str) -> Prose:
    """Text kept as it is, divided at its headings."""
    if not text.strip():
        raise Unusable(RejectReason.EMPTY, "no text", len(text))
    require_short_lines(text)
    outliners: dict[str, Callable[[str], Outline]] = {"markdown": outline_markdown, "rst": outline_rst}
    outlined = outliners[language](text) if language in outliners else Outline("", ())
    return Prose(text, outlined.title or PurePosixPath(path).stem, _MIMES[language], _sections(text, outlined))


def _outcome(pdf: PdfText, found: Found) -> Material | Rejected:
    try:
        return _document(found, pdf)
    except Unusable as problem:
        uri = shown(found.relative)
        return Rejected(SourceKind.DOCUMENTS, uri, problem.reason, problem.detail, problem.size)


def _document(found: Found, pdf: PdfText) -> Material:
    if found.problem is not None:
        raise found.problem
    path = PurePosixPath(found.relative)
    suffix, language = path.suffix.lower(), prose_language(found.relative)
    if suffix in _PDF:
        text, title, sections = pdf.convert(read_bytes(found.path, MAX_PDF_BYTES))
        prose = Prose(text, title or path.stem, "application/pdf", sections)
    elif suffix in _HTML:
        prose = _read_html(read_text(found.path), path.stem)
    elif language is not None:
        prose = read_prose(read_text(found.path), found.relative, language)
    else:
        raise Unusable(RejectReason.NOT_TEXT, f"{suffix} files are not read: Markdown, text, HTML and PDF are")
    return Material(
        origin=found.relative,
        source=SourceKind.DOCUMENTS,
        text=prose.text,
        title=prose.title,
        uri=found.relative,
        mime=prose.mime,
        sections=prose.sections,
    )


def _read_html(markup: str, stem: str) -> Prose:
    text, outlined = html_to_text(markup)
    if not text.strip():
        raise Unusable(RejectReason.EMPTY, "no visible text", len(markup))
    return Prose(text, outlined.title or stem, "text/html", _sections(text, outlined))


def _sections(text: str, outlined: Outline) -> tuple[Section, ...]:
    regions = [Section(one.start, one.end, ChunkKind.PROSE, one.headings) for one in outlined.regions]
    return tuple(regions) or (Section(0, len(text), ChunkKind.PROSE),)
