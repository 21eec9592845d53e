"""Documents of any format, and notes that link to each other.

Formats that are no text are read in a confined child, so that neither bombs nor damage reach the run.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

import yaml

from hades.ingest.formats.directives import read_markdown, read_rst
from hades.ingest.formats.markup import FRONT_MATTER, Outline, outline_markdown, read_mdx
from hades.ingest.formats.registry import FORMATS, ExtractedDocument, Format, FormatProblem, as_utc, one_line
from hades.ingest.parsers.facts import Section
from hades.ingest.parsers.languages import CODE_SUFFIXES
from hades.ingest.sources.confined import ConfinedPool, ParserStopped, in_order, reading_workers
from hades.ingest.sources.files import (
    MAX_TEXT_BYTES,
    FileEntry,
    SourceError,
    Unusable,
    decode,
    read_bytes,
    read_text,
    require_short_lines,
    show,
    walk,
)
from hades.ingest.sources.material import Link, Material, RejectedInput, RejectReason
from schemas.ids import sha256_text
from schemas.nodes import ChunkKind, NameType, RelationType
from schemas.sources import SourceKind, SourceSpec

READER = "hades.ingest.formats.registry:read_format"
MAX_FILE_BYTES = 128 << 20
_CPU_SECONDS = 30.0
_TEXT_CPU_SECONDS = 5.0
_CPU_SECONDS_PER_MEGABYTE = 10.0


def convert_file(parsers: ConfinedPool, path: str, origin: str, suffix: str, stem: str) -> list[Material]:
    """The documents of one file of another format; raises `Unusable` when it has none."""
    form = FORMATS[suffix]
    data = read_bytes(path, MAX_TEXT_BYTES if form.is_text else MAX_FILE_BYTES)
    if not data.strip():
        raise Unusable(RejectReason.EMPTY, "an empty file", len(data))
    least = _TEXT_CPU_SECONDS if form.is_text else _CPU_SECONDS
    allowed = min(4 * _CPU_SECONDS, least + _CPU_SECONDS_PER_MEGABYTE * len(data) / 1e6)
    try:
        found = parsers.call(suffix, decode(data) if form.is_text else data, cpu_seconds=allowed)
    except ParserStopped as stopped:
        raise Unusable(RejectReason.OVERSIZED, str(stopped), len(data)) from stopped
    if isinstance(found, FormatProblem):
        raise Unusable(RejectReason(found.reason), found.detail, len(data))
    materials = [_material(one, origin, form, stem) for one in found if one.text]
    if not materials:
        raise Unusable(RejectReason.EMPTY, f"no text in this {form.name} file", len(data))
    return materials


def _material(found: ExtractedDocument, origin: str, form: Format, stem: str) -> Material:
    """A document of a file; its people are names."""
    own = f"{origin}#{found.fragment}" if found.fragment else origin
    links = []
    if found.replies_to and found.fragment:  # another message of the same mailbox
        links = [Link(RelationType.REFERS_TO, f"{origin}#{found.replies_to}", context=f"replies to {found.title}")]
    return Material(
        origin=own,
        source=SourceKind.DOCUMENTS,
        text=found.text,
        title=found.title or stem,
        uri=own,
        mime=form.mime,
        created=found.created,
        sections=found.sections,
        names=tuple((name, NameType.PERSON) for name in found.people),
        links=tuple(links),
        metadata={"message_id": found.message_id} if found.message_id else {},
    )


_FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_WIKI_LINK = re.compile(r"(#?)!?\[\[([^\[\]\n|#^]{1,200})(?:[#^][^\[\]\n|]{0,200})?(?:\|[^\[\]\n]{0,200})?\]\]")
_PAGE_LINK = re.compile(r"(?<!!)\[[^\[\]\n]{0,300}\]\(<?([^()<>\s#]{1,300})(?:#[^()\s]{0,200})?>?\)")
_TAG = re.compile(r"(?<![\w/#&])#([^\W\d_][\w/-]{0,60})")
_PROPERTY = re.compile(r"^[ \t]*(?:- )?([A-Za-z][\w-]{0,40})::[ \t]*(.{1,500})$", re.MULTILINE)  # Logseq
_BRACKET = re.compile(r"[\[\]{}]")
_DEEPEST = 300  # open brackets; the YAML reader refuses little more, and takes seconds to say so
_MAX_FACTS = 2_000  # of one note
_DATE_KEYS = ("date", "created", "created_at", "published")
_HEX_COLOUR = re.compile(r"[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?$")


@dataclass
class NoteIndex:
    """Which file a link means: by path, by file name anywhere in the folder, by alias."""

    _by_path: dict[str, str] = field(default_factory=dict)
    _by_name: dict[str, str] = field(default_factory=dict)
    _by_alias: dict[str, str] = field(default_factory=dict)

    def add(self, origin: str, aliases: Iterable[str] = ()) -> None:
        """Know one file; of two with one name the one nearer to the root is meant, as in Obsidian."""
        path = PurePosixPath(origin.casefold())
        plain = str(path.with_suffix("")) if path.suffix in (".md", ".markdown") else str(path)
        self._by_path[str(path)] = self._by_path[plain] = origin
        for name in {path.name, path.stem, path.stem.replace("___", "/"), unquote(path.stem)}:
            held = self._by_name.get(name)
            if held is None or held.count("/") > origin.count("/"):
                self._by_name[name] = origin
        for alias in aliases:
            self._by_alias.setdefault(alias.casefold(), origin)

    def find(self, target: str, origin: str) -> str | None:
        """The origin of the file that `target` in the note `origin` means."""
        wanted = unquote(target).strip().casefold()
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(origin.casefold()), wanted))
        found = self._by_path.get(beside) or self._by_path.get(wanted.removeprefix("/"))
        return found or self._by_name.get(wanted) or self._by_alias.get(wanted)


def read_note(text: str, title: str, origin: str, index: NoteIndex) -> dict[str, Any]:
    """What a note states beside its text, by the fields of `Material`.

    Links to other files are links; tags, properties and links to pages that do not exist are named facts.
    """
    front = front_matter(text)
    body = _FENCE.sub("", FRONT_MATTER.sub("", text, count=1) if front else text)
    linked: Counter[str] = Counter()
    triples: list[tuple[str, str, str]] = []
    for relation, target in _targets(body, front):
        other = index.find(target, origin)
        if other is None and relation == "links to file":
            continue
        if other is not None and relation in ("links to", "links to file"):
            linked[other] += 1
        else:
            triples.append((title, relation, one_line(target, 100)))
    tags = list(dict.fromkeys(_tags(body, front)))
    triples += [(title, "tagged", tag) for tag in tags]
    triples += [(title, "also called", alias) for alias in aliases_of(front)]
    kept = tuple(dict.fromkeys((s, r, o) for s, r, o in triples if s.strip() and o.strip() and s != o))[:_MAX_FACTS]
    links = [
        Link(RelationType.REFERS_TO, other, count=count, context="links to") for other, count in sorted(linked.items())
    ]
    authors = [name for key in ("author", "authors") for name in _texts(front.get(key))]
    return {
        "links": tuple(links[:_MAX_FACTS]),
        "names": tuple((tag, NameType.CONCEPT) for tag in tags),
        "triples": kept,
        "created": stated_date(front),
        "metadata": {name: found for name, found in (("tags", tags), ("authors", authors)) if found},
    }


def stated_date(front: dict[str, Any]) -> datetime | None:
    """When a note says that it was written."""
    return next((when for key in _DATE_KEYS if (when := as_utc(front.get(key))) is not None), None)


def front_matter(text: str) -> dict[str, Any]:
    """The YAML block at the start of a note; empty when there is none or it is damaged."""
    found = FRONT_MATTER.match(text)
    if not found or _opens_too_many(found.group(1)):
        return {}
    try:
        loaded = yaml.safe_load(found.group(1))
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return {str(key): value for key, value in loaded.items()} if isinstance(loaded, dict) else {}


def _opens_too_many(text: str) -> bool:
    steps = (1 if bracket in "[{" else -1 for bracket in _BRACKET.findall(text))
    return max(accumulate(steps, lambda opened, step: max(opened + step, 0), initial=0)) > _DEEPEST


def aliases_of(front: dict[str, Any]) -> list[str]:
    """Other names of a note."""
    return [name for key in ("aliases", "alias") for name in _texts(front.get(key))]


def _targets(body: str, front: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every link as (relation, target)."""
    for found in _WIKI_LINK.finditer(body):
        if not found.group(1):
            yield "links to", found.group(2).strip()
    for found in _PAGE_LINK.finditer(body):
        if "://" not in found.group(1) and not found.group(1).startswith("mailto:"):
            yield "links to file", found.group(1)
    for key, value in front.items():
        for text in _texts(value):
            for found in _WIKI_LINK.finditer(text):
                yield one_line(key.replace("_", " "), 60), found.group(2).strip()
    for found in _PROPERTY.finditer(body):
        if found.group(1).lower() not in ("tags", "alias", "aliases", "id", "collapsed"):
            for page in _WIKI_LINK.finditer(found.group(2)):
                yield found.group(1).replace("-", " ").lower(), page.group(2).strip()


def _tags(body: str, front: dict[str, Any]) -> Iterator[str]:
    for key in ("tags", "tag", "keywords"):
        for text in _texts(front.get(key)):
            yield text.lstrip("#")
    for found in _TAG.finditer(body):
        if not _HEX_COLOUR.match(found.group(1)):
            yield found.group(1).rstrip("/")
    for found in _WIKI_LINK.finditer(body):
        if found.group(1):
            yield found.group(2).strip()
    for found in _PROPERTY.finditer(body):
        if found.group(1).lower() == "tags":
            yield from (part.strip().strip("[]#").strip() for part in found.group(2).split(",") if part.strip("[]# "))


def _texts(value: object) -> list[str]:
    """A property's values as texts; a list may be written with commas."""
    values = value if isinstance(value, list) else str(value).split(",") if isinstance(value, str) else []
    return [one_line(one, 100) for one in values if isinstance(one, str) and one.strip()]


_PROSE = {".md": "markdown", ".markdown": "markdown", ".mdx": "markdown", ".rst": "rst", ".txt": "text", "": "text"}
_MIMES = {"markdown": "text/markdown", "rst": "text/x-rst", "text": "text/plain"}
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


class Prose(NamedTuple):
    """Text with its title and sections, as `Material` has them; spans count characters of the text."""

    text: str
    title: str
    mime: str
    sections: tuple[Section, ...]


def open_source(spec: SourceSpec, *, workers: int, **_tools: object) -> DocumentsSource:
    """The documents of a description."""
    return DocumentsSource(Path(spec.path), workers)


class DocumentsSource:
    """Every document below a folder, or one file. Contents that were met before are set aside as duplicates."""

    kind = SourceKind.DOCUMENTS
    total: int | None = None

    def __init__(self, root: Path, workers: int = 0) -> None:
        if not root.exists():
            raise SourceError(f"{root} does not exist; expected a folder of documents or one document")
        if not root.is_dir() and not root.is_file():
            raise SourceError(f"{root} is neither a folder nor a regular file; expected documents")
        resolved = root.resolve()
        self._root = resolved if resolved.is_dir() else resolved.parent
        self._file = "" if resolved.is_dir() else resolved.name
        self.corpus = resolved.name
        self.place = str(resolved)
        self.mirrors = resolved.is_dir()
        self._workers = reading_workers(workers)

    def read(self) -> Iterator[Material | RejectedInput]:
        """Documents in the order of their paths."""
        first_with: dict[str, str] = {}
        files = list(self._files())
        self.total = len(files)
        with ConfinedPool(READER, self._workers) as parsers:
            read = partial(_read_file, parsers, _index_notes(files))
            for outcomes in in_order(read, files, self._workers):
                for outcome in outcomes:
                    yield _set_aside_duplicate(outcome, first_with)

    def _files(self) -> Iterator[FileEntry]:
        for found in walk(str(self._root), self._file, respect_ignores=False):
            if not PurePosixPath(found.relative).name.startswith("."):
                yield found


def prose_language(path: str) -> str | None:
    """`markdown`, `rst` or `text` by the file's name; None for anything else."""
    plain = re.sub(r"(?<=\.rst|.\.md)\.(?:inc|in|txt)$", "", path.lower())  # a page that others include
    return _PROSE.get(PurePosixPath(plain).suffix)


def read_prose(text: str, path: str, language: str) -> Prose:
    """Text divided at its headings; reStructuredText and MDX are read as the Markdown that they mean."""
    if not text.strip():
        raise Unusable(RejectReason.EMPTY, "no text", len(text))
    require_short_lines(text)
    outlined = Outline("", ())
    if language == "rst":
        text, outlined = read_rst(text)
    elif language == "markdown":
        text = read_markdown(read_mdx(text) if path.lower().endswith(".mdx") else text)
        outlined = outline_markdown(text)
    if not text.strip():
        raise Unusable(RejectReason.EMPTY, "nothing but markup", len(text))
    sections = outlined.regions or (Section(0, len(text), ChunkKind.PROSE),)
    return Prose(text, outlined.title or PurePosixPath(path).stem, _MIMES[language], sections)


def _set_aside_duplicate(outcome: Material | RejectedInput, first_with: dict[str, str]) -> Material | RejectedInput:
    if isinstance(outcome, RejectedInput):
        return outcome
    first = first_with.setdefault(sha256_text(outcome.text), outcome.origin)
    if first == outcome.origin:
        return outcome
    copy = Unusable(RejectReason.DUPLICATE, f"same text as {first}", len(outcome.text))
    return copy.rejected(SourceKind.DOCUMENTS, outcome.origin)


def _index_notes(files: Sequence[FileEntry]) -> NoteIndex:
    """Names and aliases of every file, known before the first link is read."""
    index = NoteIndex()
    for found in files:
        text = ""
        if found.problem is None and prose_language(found.relative) == "markdown":
            with suppress(Unusable):
                text = read_text(found.path)
        index.add(found.relative, aliases_of(front_matter(text)))
    return index


def _read_file(parsers: ConfinedPool, notes: NoteIndex, found: FileEntry) -> list[Material | RejectedInput]:
    try:
        return [*_documents(found, parsers, notes)]
    except Unusable as problem:
        return [problem.rejected(SourceKind.DOCUMENTS, show(found.relative))]


def _documents(found: FileEntry, parsers: ConfinedPool, notes: NoteIndex) -> list[Material]:
    if found.problem is not None:
        raise found.problem
    path = PurePosixPath(found.relative)
    suffix, language = path.suffix.lower(), prose_language(found.relative)
    if suffix in FORMATS:
        return convert_file(parsers, found.path, found.relative, suffix, path.stem)
    if language is None:
        raise Unusable(RejectReason.NOT_TEXT, why_not_read(suffix))
    prose = read_prose(read_text(found.path), found.relative, language)
    named: dict[str, Any] = {"origin": found.relative, "uri": found.relative, "source": SourceKind.DOCUMENTS}
    if language == "markdown":
        named |= read_note(prose.text, prose.title, found.relative, notes)
    return [Material(**named, **prose._asdict())]


def why_not_read(suffix: str) -> str:
    """Why files with this suffix are not read as documents; empty where they are."""
    if suffix in _PROSE or suffix in FORMATS:
        return ""
    if suffix in _ARCHIVES:
        return f"{suffix} archives are not opened; unpack it into the folder"
    better = next((new for new, old in _SAVE_AS.items() if suffix in old), None)
    if better is not None:
        return f"{suffix} files are not read; save it as {better}"
    if suffix in CODE_SUFFIXES:
        return f"{suffix} files are code, which `hades ingest workspace PATH` reads; this command reads documents"
    return f"{suffix} files are not read; docs/ingestion.md lists the formats that are"
