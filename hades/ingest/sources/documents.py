"""Documents of any format, and notes that link to each other.

Formats that are no text are read in a confined child, so that neither bombs nor damage reach the
run.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

import yaml

from hades.ingest.formats.directives import (
    Anchor,
    RoleLink,
    namespace_of,
    read_markdown,
    read_rst,
    rst_anchors,
    rst_links,
)
from hades.ingest.formats.markup import FRONT_MATTER, Outline, outline_markdown, read_mdx
from hades.ingest.formats.registry import (
    FORMATS,
    ExtractedDocument,
    Format,
    FormatProblem,
    as_utc,
    one_line,
)
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
from hades.ingest.sources.git import read_dates_added
from hades.ingest.sources.material import Link, Material, RejectedInput, RejectReason
from hades.ingest.sources.remote.ledger import ledger_of_mirror
from hades.text.word_lists import word_set
from schemas.ids import sha256_text
from schemas.nodes import ChunkKind, NameType, RelationType
from schemas.record import JsonObject
from schemas.sources import SourceKind, SourceSpec

READER = "hades.ingest.formats.registry:read_format"
MAX_FILE_BYTES = 128 << 20
_CPU_SECONDS = 30.0
_TEXT_CPU_SECONDS = 5.0
_CPU_SECONDS_PER_MEGABYTE = 10.0


def convert_file(
    parsers: ConfinedPool,
    path: str,
    origin: str,
    suffix: str,
    stem: str,
) -> list[Material]:
    """The documents of one file of another format; raises `Unusable` when it has none."""
    file_format = FORMATS[suffix]
    content = read_bytes(path, MAX_TEXT_BYTES if file_format.is_text else MAX_FILE_BYTES)

    if not content.strip():
        raise Unusable(
            RejectReason.EMPTY,
            "an empty file",
            len(content),
        )

    if file_format.is_text:
        least = _TEXT_CPU_SECONDS
    else:
        least = _CPU_SECONDS

    allowed = min(4 * _CPU_SECONDS, least + _CPU_SECONDS_PER_MEGABYTE * len(content) / 1e6)
    try:
        extracted = parsers.call(
            suffix,
            decode(content) if file_format.is_text else content,
            cpu_seconds=allowed,
        )
    except ParserStopped as stopped:
        raise Unusable(
            RejectReason.OVERSIZED,
            str(stopped),
            len(content),
        ) from stopped

    if isinstance(extracted, FormatProblem):
        raise Unusable(
            RejectReason(extracted.reason),
            extracted.detail,
            len(content),
        )

    materials = []
    for document in extracted:
        if document.text:
            materials.append(_material(document, origin, file_format, stem))

    if not materials:
        raise Unusable(
            RejectReason.EMPTY,
            f"no text in this {file_format.name} file",
            len(content),
        )

    return materials


def _material(
    document: ExtractedDocument,
    origin: str,
    file_format: Format,
    stem: str,
) -> Material:
    """A document of a file; its people are names."""
    document_origin = f"{origin}#{document.fragment}" if document.fragment else origin
    links = []

    if document.replies_to and document.fragment:  # another message of the same mailbox
        links = [
            Link(
                RelationType.REFERS_TO,
                f"{origin}#{document.replies_to}",
                context=f"replies to {document.title}",
            )
        ]

    return Material(
        origin=document_origin,
        source=SourceKind.DOCUMENTS,
        text=document.text,
        title=document.title or stem,
        uri=document_origin,
        mime=file_format.mime,
        created=document.created,
        sections=document.sections,
        names=tuple((name, NameType.PERSON) for name in document.people),
        links=tuple(links),
        metadata={"message_id": document.message_id} if document.message_id else {},
    )


_FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_WIKI_LINK = re.compile(
    r"(#?)!?\[\[([^\[\]\n|#^]{1,200})(?:[#^][^\[\]\n|]{0,200})?(?:\|[^\[\]\n]{0,200})?\]\]"
)
_PAGE_LINK = re.compile(
    r"(?<!!)\[[^\[\]\n]{0,300}\]\(<?([^()<>\s#]{1,300})(?:#[^()\s]{0,200})?>?\)"
)
_TAG = re.compile(r"(?<![\w/#&])#([^\W\d_][\w/-]{0,60})")
# Of Logseq.
_PROPERTY = re.compile(
    r"^[ \t]*(?:- )?([A-Za-z][\w-]{0,40})::[ \t]*(.{1,500})$",
    re.MULTILINE,
)
_BRACKET = re.compile(r"[\[\]{}]")
_DEEPEST = 300  # open brackets; the YAML reader refuses little more, and takes seconds to say so
_MAX_FACTS = 2_000  # of one note
_DATE_KEYS = ("date", "created", "created_at", "published")
_LINKED_BARE = (".md", ".markdown", ".rst")  # a link may leave out such an ending
_HEX_COLOUR = re.compile(r"[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?$")


@dataclass
class NoteIndex:
    """Which file a link means: by path, by file name anywhere in the folder, by alias."""

    _by_path: dict[str, str] = field(default_factory=dict)
    _by_name: dict[str, str] = field(default_factory=dict)
    _by_alias: dict[str, str] = field(default_factory=dict)
    _by_anchor: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def add(self, origin: str, aliases: Iterable[str] = ()) -> None:
        """Know one file; of two with one name the one nearer to the root is meant, as in
        Obsidian.
        """
        path = PurePosixPath(origin.casefold())
        if path.suffix in _LINKED_BARE:
            plain = str(path.with_suffix(""))
        else:
            plain = str(path)

        self._by_path[str(path)] = self._by_path[plain] = origin
        for name in {path.name, path.stem, path.stem.replace("___", "/"), unquote(path.stem)}:
            known = self._by_name.get(name)
            if known is None or known.count("/") > origin.count("/"):
                self._by_name[name] = origin

        for alias in aliases:
            self._by_alias.setdefault(alias.casefold(), origin)

    def add_anchors(self, origin: str, anchors: Iterable[Anchor]) -> None:
        """Know what roles of reStructuredText can lead to; of two of one name the first counts."""
        for anchor in anchors:
            place = (origin, anchor.heading)
            self._by_anchor.setdefault((anchor.namespace, anchor.name), place)

    def find_role(self, link: RoleLink, origin: str) -> tuple[str, str] | None:
        """The origin and the heading, "" for the whole page, that a role in a page leads to."""
        if link.role == "doc":
            page = self.find(link.target, origin)
            return None if page is None else (page, "")

        namespace = namespace_of(link.role)
        if namespace != "code":
            return self._by_anchor.get((namespace, link.target.lower()))

        name = link.target.lstrip("~!.").removesuffix("()")
        owner = name.rpartition(".")[0]  # a class that describes its members
        return self._by_anchor.get((namespace, name)) or self._by_anchor.get((namespace, owner))

    def find(self, target: str, origin: str) -> str | None:
        """The origin of the file that `target` in the note `origin` means."""
        name = unquote(target).strip().casefold()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin.casefold()), name))
        by_path = self._by_path.get(path) or self._by_path.get(name.removeprefix("/"))
        return by_path or self._by_name.get(name) or self._by_alias.get(name)


def read_note(
    text: str,
    title: str,
    origin: str,
    index: NoteIndex,
) -> JsonObject:
    """What a note states beside its text, by the fields of `Material`.

    Links to other files are links; tags, properties and links to pages that do not exist are named
    facts.
    """
    front = front_matter(text)
    body = _FENCE.sub("", FRONT_MATTER.sub("", text, count=1) if front else text)
    linked: Counter[str] = Counter()

    triples: list[tuple[str, str, str]] = []
    for relation, target in _targets(body, front):
        target_origin = index.find(target, origin)
        if target_origin is None and relation == "links to file":
            continue

        if target_origin is not None and relation in ("links to", "links to file"):
            linked[target_origin] += 1
        else:
            triples.append((title, relation, one_line(target, 100)))

    tags = list(dict.fromkeys(_tags(body, front)))
    triples += [(title, "tagged", tag) for tag in tags]
    triples += [(title, "also called", alias) for alias in aliases_of(front)]
    stated = [
        (subject, relation, target)
        for subject, relation, target in dict.fromkeys(triples)
        if subject.strip() and target.strip() and subject != target
    ]
    links = [
        Link(
            RelationType.REFERS_TO,
            target_origin,
            count=count,
            context="links to",
        )
        for target_origin, count in sorted(linked.items())
    ]
    authors = [*_texts(front.get("author")), *_texts(front.get("authors"))]
    return {
        "links": tuple(links[:_MAX_FACTS]),
        "names": tuple((tag, NameType.CONCEPT) for tag in tags),
        "triples": tuple(stated[:_MAX_FACTS]),
        "created": stated_date(front),
        "metadata": {
            name: values for name, values in (("tags", tags), ("authors", authors)) if values
        },
    }


def read_roles(
    text: str,
    origin: str,
    index: NoteIndex,
) -> tuple[Link, ...]:
    """The links that roles of reStructuredText state to pages and sections of the folder."""
    sentences: dict[tuple[str, str], list[str]] = {}
    for link in rst_links(text):
        place = index.find_role(link, origin)
        if place is not None:
            sentences.setdefault(place, []).append(link.sentence)

    links = []
    for (target, heading), texts in sorted(sentences.items()):
        links.append(
            Link(
                RelationType.REFERS_TO,
                target,
                count=len(texts),
                context="\n".join(dict.fromkeys(texts)),
                section=heading,
            )
        )

    return tuple(links[:_MAX_FACTS])


def stated_date(front: JsonObject) -> datetime | None:
    """When a note says that it was written."""
    dates = (as_utc(front.get(key)) for key in _DATE_KEYS)
    return next((date for date in dates if date is not None), None)


def front_matter(text: str) -> JsonObject:
    """The YAML block at the start of a note; empty when there is none or it is damaged."""
    match = FRONT_MATTER.match(text)
    if not match or _opens_too_many(match.group(1)):
        return {}

    try:
        loaded = yaml.safe_load(match.group(1))
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}

    if isinstance(loaded, dict):
        return {str(key): value for key, value in loaded.items()}

    return {}


def _opens_too_many(text: str) -> bool:
    steps = (1 if bracket in "[{" else -1 for bracket in _BRACKET.findall(text))
    return (
        max(
            accumulate(
                steps,
                lambda opened, step: max(opened + step, 0),
                initial=0,
            )
        )
        > _DEEPEST
    )


def aliases_of(front: JsonObject) -> list[str]:
    """Other names of a note."""
    return [*_texts(front.get("aliases")), *_texts(front.get("alias"))]


def _targets(body: str, front: JsonObject) -> Iterator[tuple[str, str]]:
    """Every link as (relation, target)."""
    for match in _WIKI_LINK.finditer(body):
        if not match.group(1):
            yield "links to", match.group(2).strip()

    for match in _PAGE_LINK.finditer(body):
        if "://" not in match.group(1) and not match.group(1).startswith("mailto:"):
            yield "links to file", match.group(1)

    for key, value in front.items():
        for text in _texts(value):
            for match in _WIKI_LINK.finditer(text):
                yield one_line(key.replace("_", " "), 60), match.group(2).strip()

    for match in _PROPERTY.finditer(body):
        if match.group(1).lower() not in ("tags", "alias", "aliases", "id", "collapsed"):
            for page in _WIKI_LINK.finditer(match.group(2)):
                yield match.group(1).replace("-", " ").lower(), page.group(2).strip()


def _tags(body: str, front: JsonObject) -> Iterator[str]:
    for key in ("tags", "tag", "keywords"):
        for text in _texts(front.get(key)):
            yield text.lstrip("#")

    for match in _TAG.finditer(body):
        if not _HEX_COLOUR.match(match.group(1)):
            yield match.group(1).rstrip("/")

    for match in _WIKI_LINK.finditer(body):
        if match.group(1):
            yield match.group(2).strip()

    for match in _PROPERTY.finditer(body):
        if match.group(1).lower() == "tags":
            yield from (
                part.strip().strip("[]#").strip()
                for part in match.group(2).split(",")
                if part.strip("[]# ")
            )


def _texts(value: object) -> list[str]:
    """A property's values as texts; a list may be written with commas."""
    if isinstance(value, str):
        values: object = value.split(",")
    else:
        values = value

    if not isinstance(values, list):
        return []

    texts = []
    for text in values:
        if isinstance(text, str) and text.strip():
            texts.append(one_line(text, 100))

    return texts


_PROSE = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".rst": "rst",
    ".txt": "text",
    "": "text",
}
_MIMES = {
    "markdown": "text/markdown",
    "rst": "text/x-rst",
    "text": "text/plain",
}
_ARCHIVES = word_set(".zip .tar .gz .tgz .bz2 .xz .zst .7z .rar .jar .iso")
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
    """Text with its title and sections, as `Material` has them; spans count characters of the
    text.
    """

    text: str
    title: str
    mime: str
    sections: tuple[Section, ...]


def open_source(spec: SourceSpec, *, workers: int, **_tools: object) -> DocumentsSource:
    """The documents of a description."""
    return DocumentsSource(Path(spec.path), workers)


class DocumentsSource:
    """Every document below a folder, or one file. Contents that were read before are set aside as
    duplicates.
    """

    kind = SourceKind.DOCUMENTS
    total: int | None = None

    def __init__(
        self,
        root: Path,
        workers: int = 0,
        only: frozenset[str] | None = None,
    ) -> None:
        if not root.exists():
            raise SourceError(
                f"{root} does not exist; expected a folder of documents or one document"
            )

        if not root.is_dir() and not root.is_file():
            raise SourceError(f"{root} is neither a folder nor a regular file; expected documents")

        resolved = root.resolve()
        self._root = resolved if resolved.is_dir() else resolved.parent
        self._file = "" if resolved.is_dir() else resolved.name
        self.corpus = resolved.name
        self.place = str(resolved)
        self.mirrors = resolved.is_dir()
        self._workers = reading_workers(workers)
        self._only = only

    def read(self) -> Iterator[Material | RejectedInput]:
        """Documents in the order of their paths; those that state no date have that of the commit
        that added their file.
        """
        first_with: dict[str, str] = {}
        added = read_dates_added(self._root)
        ledger = ledger_of_mirror(self._root)
        copies = ledger.copies().values() if ledger is not None else ()
        addresses = {copy.path: copy.address for copy in copies}
        files = list(self._files())
        notes = _index_notes(files, self._only)

        if self._only is not None:
            files = [file for file in files if file.relative in self._only]

        self.total = len(files)
        with ConfinedPool(READER, self._workers) as parsers:
            read_file = partial(_read_file, parsers, notes)
            for outcomes in in_order(read_file, files, self._workers):
                for outcome in outcomes:
                    if isinstance(outcome, Material):
                        path = outcome.origin.partition("#")[0]
                        uri = addresses.get(path, outcome.uri)
                        created = outcome.created or added.get(path)
                        outcome = replace(
                            outcome,
                            created=created,
                            uri=uri,
                        )

                    yield _set_aside_duplicate(outcome, first_with)

    def _files(self) -> Iterator[FileEntry]:
        for entry in walk(
            str(self._root),
            self._file,
            respect_ignores=False,
        ):
            if not PurePosixPath(entry.relative).name.startswith("."):
                yield entry


def prose_language(path: str) -> str | None:
    """`markdown`, `rst` or `text` by the file's name; None for anything else."""
    # `page.rst.inc` is a page that others include.
    plain = re.sub(
        r"(?<=\.rst|.\.md)\.(?:inc|in|txt)$",
        "",
        path.lower(),
    )
    return _PROSE.get(PurePosixPath(plain).suffix)


def read_prose(text: str, path: str, language: str) -> Prose:
    """Text divided at its headings; reStructuredText and MDX are read as the Markdown that they
    mean.
    """
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
        raise Unusable(
            RejectReason.EMPTY,
            "nothing but markup",
            len(text),
        )

    sections = outlined.regions or (Section(0, len(text), ChunkKind.PROSE),)
    return Prose(
        text,
        outlined.title or PurePosixPath(path).stem,
        _MIMES[language],
        sections,
    )


def _set_aside_duplicate(
    outcome: Material | RejectedInput,
    first_with: dict[str, str],
) -> Material | RejectedInput:
    if isinstance(outcome, RejectedInput):
        return outcome

    first = first_with.setdefault(sha256_text(outcome.text), outcome.origin)
    if first == outcome.origin:
        return outcome

    copy = Unusable(
        RejectReason.DUPLICATE,
        f"same text as {first}",
        len(outcome.text),
    )
    return copy.rejected(SourceKind.DOCUMENTS, outcome.origin)


def _index_notes(files: Sequence[FileEntry], only: frozenset[str] | None) -> NoteIndex:
    """Names of every file, and aliases of those that are read, known before the first link is."""
    index = NoteIndex()
    for file in files:
        text = ""
        language = prose_language(file.relative)
        is_read = only is None or file.relative in only

        if is_read and file.problem is None and language in ("markdown", "rst"):
            with suppress(Unusable):
                text = read_text(file.path)

        if language == "rst":
            index.add(file.relative)
            with suppress(Unusable):
                require_short_lines(text)
                index.add_anchors(file.relative, rst_anchors(text))
        else:
            index.add(file.relative, aliases_of(front_matter(text)))

    return index


def _read_file(
    parsers: ConfinedPool,
    notes: NoteIndex,
    file: FileEntry,
) -> list[Material | RejectedInput]:
    try:
        return [*_documents(file, parsers, notes)]
    except Unusable as problem:
        return [problem.rejected(SourceKind.DOCUMENTS, show(file.relative))]


def _documents(
    file: FileEntry,
    parsers: ConfinedPool,
    notes: NoteIndex,
) -> list[Material]:
    if file.problem is not None:
        raise file.problem

    path = PurePosixPath(file.relative)
    suffix = path.suffix.lower()
    language = prose_language(file.relative)

    if suffix in FORMATS:
        return convert_file(
            parsers,
            file.path,
            file.relative,
            suffix,
            path.stem,
        )
    if language is None:
        raise Unusable(RejectReason.NOT_TEXT, why_not_read(suffix))

    text = read_text(file.path)
    prose = read_prose(text, file.relative, language)
    fields: JsonObject = {
        "origin": file.relative,
        "uri": file.relative,
        "source": SourceKind.DOCUMENTS,
    }

    if language == "markdown":
        fields |= read_note(
            prose.text,
            prose.title,
            file.relative,
            notes,
        )
    elif language == "rst":
        fields["links"] = read_roles(text, file.relative, notes)

    return [Material(**fields, **prose._asdict())]


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
        return (
            f"{suffix} files are code, which `hades ingest workspace PATH` reads; this command "
            "reads documents"
        )

    return f"{suffix} files are not read; docs/ingestion.md lists the formats that are"
