"""Documents: Markdown, reStructuredText and text as they are, HTML and other formats converted to text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from hades.ingest.source_document import Material, RejectedInput, RejectReason, Section, SourceTools
from hades.ingest.sources.converted_files import FileConverter
from hades.ingest.sources.formats.read_format import FORMATS
from hades.ingest.sources.html_text import html_to_text
from hades.ingest.sources.languages import BY_SUFFIX
from hades.ingest.sources.markup import Outline, outline_markdown, outline_rst
from hades.ingest.sources.parallel_reading import in_order, reading_workers
from hades.ingest.sources.reading import SourceError, Unusable, read_start, read_text, require_short_lines, show
from hades.ingest.sources.vault import NoteFacts, NoteIndex, aliases_of, front_matter, read_note
from hades.ingest.sources.walk import FileEntry, walk
from schemas.chunks import ChunkKind
from schemas.source_kinds import SourceKind
from schemas.sources import SourceSpec

_HTML = frozenset({".html", ".htm", ".xhtml"})
_PROSE = {".md": "markdown", ".markdown": "markdown", ".mdx": "markdown", ".rst": "rst", ".txt": "text", "": "text"}
_MIMES = {"markdown": "text/markdown", "rst": "text/x-rst", "text": "text/plain"}
_PYTHON = (".py", ".pyi")
_ARCHIVES = frozenset({".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".jar", ".iso"})
_SAVE_AS = {
    ".docx": (".doc", ".rtf", ".odt", ".pages"),
    ".pptx": (".ppt", ".odp", ".key"),
    ".xlsx": (".xls", ".ods", ".numbers"),
    ".epub": (".mobi", ".azw3"),
    ".eml": (".msg",),
    ".mbox": (".pst",),
    ".pdf": (".djvu", ".ps"),
}
_FRONT_BYTES = 64 << 10


class Prose(NamedTuple):
    """Text with its title and sections; spans count characters of the text."""

    text: str
    title: str
    mime: str
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class _Reader:
    """What reading one file needs."""

    converter: FileConverter
    notes: NoteIndex


def open_source(spec: SourceSpec, tools: SourceTools) -> DocumentsSource:
    """The documents of a description."""
    return DocumentsSource(Path(spec.path), tools.workers)


class DocumentsSource:
    """Every document below a folder, or one file. Contents that were met before are set aside as duplicates."""

    kind = SourceKind.DOCUMENTS

    def __init__(self, root: Path, workers: int = 0) -> None:
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
        self._workers = reading_workers(workers)

    def estimate(self) -> int | None:
        """Files to look at."""
        return sum(1 for _ in self._files())

    def read(self) -> Iterator[Material | RejectedInput]:
        """Documents in the order of their paths."""
        first_with: dict[str, str] = {}
        files = list(self._files())
        with FileConverter(self._workers) as converter:
            reader = _Reader(converter, _index_notes(files))
            for outcomes in in_order(partial(_read_file, reader), files, self._workers):
                for outcome in outcomes:
                    yield _set_aside_duplicate(outcome, first_with)

    def _files(self) -> Iterator[FileEntry]:
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


def _set_aside_duplicate(outcome: Material | RejectedInput, first_with: dict[str, str]) -> Material | RejectedInput:
    if isinstance(outcome, RejectedInput):
        return outcome
    digest = hashlib.sha256(outcome.text.encode()).hexdigest()
    first = first_with.setdefault(digest, outcome.origin)
    if first == outcome.origin:
        return outcome
    return RejectedInput(
        SourceKind.DOCUMENTS, outcome.origin, RejectReason.DUPLICATE, f"same text as {first}", len(outcome.text)
    )


def _index_notes(files: Sequence[FileEntry]) -> NoteIndex:
    """Names and aliases of every file, known before the first link is read."""
    index = NoteIndex()
    for found in files:
        aliases: list[str] = []
        if found.problem is None and prose_language(found.relative) == "markdown":
            start = read_start(found.path, _FRONT_BYTES)
            aliases = aliases_of(front_matter(start)) if start.startswith("---") else []
        index.add(found.relative, aliases)
    return index


def _read_file(reader: _Reader, found: FileEntry) -> list[Material | RejectedInput]:
    try:
        return list(_documents(found, reader))
    except Unusable as problem:
        uri = show(found.relative)
        return [RejectedInput(SourceKind.DOCUMENTS, uri, problem.reason, problem.detail, problem.size)]


def _documents(found: FileEntry, reader: _Reader) -> list[Material]:
    if found.problem is not None:
        raise found.problem
    path = PurePosixPath(found.relative)
    suffix, language = path.suffix.lower(), prose_language(found.relative)
    if suffix in FORMATS:
        return reader.converter.convert(found.path, found.relative, suffix, path.stem)
    stated = NoteFacts()
    if suffix in _HTML:
        prose = _read_html(read_text(found.path), path.stem)
    elif language is not None:
        prose = read_prose(read_text(found.path), found.relative, language)
        if language == "markdown":
            stated = read_note(prose.text, prose.title, found.relative, reader.notes)
    else:
        raise Unusable(RejectReason.NOT_TEXT, _why_not(suffix))
    return [
        Material(
            origin=found.relative,
            source=SourceKind.DOCUMENTS,
            text=prose.text,
            title=prose.title,
            uri=found.relative,
            mime=prose.mime,
            created=stated.created,
            sections=prose.sections,
            names=stated.names,
            triples=stated.triples,
            links=stated.links,
        )
    ]


def _why_not(suffix: str) -> str:
    if suffix in _ARCHIVES:
        return f"{suffix} archives are not opened; unpack it into the folder"
    better = next((new for new, old in _SAVE_AS.items() if suffix in old), None)
    if better is not None:
        return f"{suffix} files are not read; save it as {better}"
    if suffix in BY_SUFFIX or suffix in _PYTHON:
        return f"{suffix} files are code, which `hades ingest workspace PATH` reads; this command reads documents"
    return f"{suffix} files are not read; docs/ingestion.md lists the formats that are"


def _read_html(markup: str, stem: str) -> Prose:
    text, outlined = html_to_text(markup)
    if not text.strip():
        raise Unusable(RejectReason.EMPTY, "no visible text", len(markup))
    return Prose(text, outlined.title or stem, "text/html", _sections(text, outlined))


def _sections(text: str, outlined: Outline) -> tuple[Section, ...]:
    regions = [Section(one.start, one.end, ChunkKind.PROSE, one.headings) for one in outlined.regions]
    return tuple(regions) or (Section(0, len(text), ChunkKind.PROSE),)
