"""arXiv metadata in the public snapshot's form and in a shorter one, with citations and code links
beside it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path

from hades.ingest.formats.registry import as_utc
from hades.ingest.parsers.facts import Section
from hades.ingest.sources.files import Unusable
from hades.ingest.sources.material import Link, Material, RejectedInput, RejectReason
from hades.ingest.sources.passages import Row, RowsSource, parse_rows, require_rows, text_field
from schemas.nodes import ChunkKind, NameType, RelationType
from schemas.sources import SourceKind, SourceSpec

_READ = "id title abstract authors authors_parsed categories date created versions update_date"
_READ_FIELDS = frozenset(_READ.split())  # the others are kept as metadata
_AUTHOR_SPLIT = re.compile(r",\s*(?:and\s+)?|\s+and\s+|;\s*")
_SUFFIX = re.compile(r"(?:jr|sr|[iv]+)\.?$", re.IGNORECASE)


def open_source(spec: SourceSpec, **_tools: object) -> ArxivSource:
    """The papers of a description."""
    link_files = [
        Path(path) if path is not None else None for path in (spec.citations, spec.code_links)
    ]
    return ArxivSource(Path(spec.path), *link_files)


class ArxivSource(RowsSource):
    """Papers as documents: title and abstract are the text, citations and repositories are
    links.
    """

    kind = SourceKind.ARXIV

    def __init__(
        self,
        papers: Path,
        citations: Path | None = None,
        code_links: Path | None = None,
    ) -> None:
        super().__init__(papers, "one paper a line with id, title and abstract")
        self._citations = (
            require_rows(citations, "one citation a line with src and dst") if citations else None
        )
        self._code_links = (
            require_rows(code_links, "one mention a line with id and repo") if code_links else None
        )

    def read(self) -> Iterator[Material | RejectedInput]:
        """Papers in the order of their file; then what was linked from papers that are not
        there.
        """
        links_of_files: list[tuple[Path, _Links]] = []
        self._seen.clear()

        for path, none, ends in (
            (self._citations, Link(RelationType.CITES, "", count=0), ("src", "dst")),
            (
                self._code_links,
                Link(
                    RelationType.IMPLEMENTS,
                    "",
                    external=True,
                    count=0,
                ),
                ("id", "repo"),
            ),
        ):
            if path:
                links: _Links = defaultdict(dict)
                links_of_files.append((path, links))
                yield from parse_rows(
                    path,
                    self.kind,
                    partial(_keep_link, none, ends, links),
                )

        def with_links(_line: int, row: Row) -> Material:
            paper = self._first(_paper(row))
            links: list[Link] = []
            for _, links_of_papers in links_of_files:
                links += links_of_papers[paper.origin].values()

            return replace(paper, links=tuple(links))

        yield from parse_rows(self._rows, self.kind, with_links)
        # One note for all: a part of a corpus often comes with all its links.
        for path, links in links_of_files:
            if strangers := [paper for paper in links if paper not in self._seen]:
                listed = ", ".join(strangers[:5] + ["..."] * (len(strangers) > 5))
                detail = (
                    f"{len(strangers)} papers with links are not among the papers read: {listed}"
                )
                yield RejectedInput(
                    SourceKind.ARXIV,
                    path.name,
                    RejectReason.MALFORMED,
                    detail,
                )


_Links = defaultdict[str, dict[str, Link]]  # by the paper they start from, and by target


def _keep_link(
    none: Link,
    ends: tuple[str, str],
    links: _Links,
    _line: int,
    row: Row,
) -> None:
    """Fills `links`; rows about the same target are one link, rows without both ends are
    rejected.
    """
    source, target = (row.get(name) for name in ends)
    if not (isinstance(source, str) and source and isinstance(target, str) and target):
        raise Unusable(
            RejectReason.MALFORMED,
            f"expected texts {ends[0]!r} and {ends[1]!r}",
        )

    link = links[source].get(target, none)
    mentions = row.get("n_mentions", 1)
    context = row.get("context")
    # A reference that the running text never mentions is still stated once, in the list of
    # references.
    count = link.count + (max(1, mentions) if isinstance(mentions, int) else 1)
    sentences = link.context.splitlines()

    if isinstance(context, str):
        sentences.append(" ".join(context.split()))

    contexts = "\n".join(dict.fromkeys(filter(None, sentences)))  # its sentences, one a line
    links[source][target] = replace(
        link,
        target=target,
        count=count,
        context=contexts,
    )


def _paper(row: Row) -> Material:
    identifier = row.get("id")
    if not isinstance(identifier, str) or not identifier.strip():
        raise Unusable(RejectReason.MALFORMED, "expected a text 'id'")

    identifier = identifier.strip()
    title = _flat(row, "title")
    abstract = _flat(row, "abstract")

    if not title and not abstract:
        raise Unusable(
            RejectReason.EMPTY,
            f"paper {identifier} has neither title nor abstract",
        )

    text = "\n\n".join(filter(None, (title, abstract)))
    if "\0" in text or "\0" in identifier:
        raise Unusable(
            RejectReason.NOT_TEXT,
            f"paper {identifier!r} holds NUL characters",
            len(text),
        )

    authors = _authors(row)
    date = _date(row)

    unread = []
    for name in row:
        if name not in _READ_FIELDS and row[name] is not None:
            unread.append(name)

    facts = {
        "id": identifier,
        "title": title,
        "abstract": abstract,
        "authors": authors,
        "categories": _categories(row.get("categories")),
        "date": date,
        "metadata": {name: row[name] for name in unread},
    }
    return Material(
        origin=identifier,
        source=SourceKind.ARXIV,
        text=text,
        title=title,
        uri=f"https://arxiv.org/abs/{identifier}",
        created=date,
        sections=(Section(0, len(text), ChunkKind.ABSTRACT),),
        paper=facts,
        names=tuple((author, NameType.PERSON) for author in authors),
    )


def _flat(row: Row, name: str) -> str:
    """A text field on one line: the snapshot wraps lines where the other forms do not."""
    return " ".join(text_field(row, name).split())


def _authors(row: Row) -> tuple[str, ...]:
    """Names in reading order, from the parsed form where there is one."""
    parsed = row.get("authors_parsed")
    plain = row.get("authors")

    if isinstance(parsed, list) and parsed:
        # `["Smith", "J. A.", "Jr."]` is J. A. Smith Jr.; what follows are affiliations
        names = []
        for author in parsed:
            if isinstance(author, list):
                parts = []
                for part in author[:3]:
                    parts.append(part if isinstance(part, str) else "")

                last, first, suffix = [*parts, "", "", ""][:3]
                names.append(" ".join(f"{first} {last} {suffix}".split()))
    elif isinstance(plain, list):
        names = []
        for name in plain:
            if isinstance(name, str):
                names.append(" ".join(name.split()))
    elif isinstance(plain, str):
        names = _AUTHOR_SPLIT.split(" ".join(_without_brackets(plain).split()))
    else:
        names = []

    written = []
    for name in names:
        if name and "\0" not in name and not _SUFFIX.match(name):
            written.append(name)

    return tuple(dict.fromkeys(written))


def _without_brackets(authors: str) -> str:
    """Affiliations stand in brackets, sometimes nested."""
    depth = 0

    characters = []
    for character in authors:
        depth += character == "("
        if depth == 0:
            characters.append(character)
        depth -= character == ")" and depth > 0

    return "".join(characters)


def _categories(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split())
    if not isinstance(value, list):
        return ()
    return tuple(category for category in value if isinstance(category, str))


def _date(row: Row) -> datetime | None:
    """When the paper first appeared: its first version, else the date given, else that of the last
    update.
    """
    versions = row.get("versions")
    if isinstance(versions, list) and versions:
        earliest = versions[0]
    else:
        earliest = None

    if isinstance(earliest, dict):
        first = earliest.get("created")
    else:
        first = None

    for value in (first, row.get("date"), row.get("created"), row.get("update_date")):
        with suppress(ValueError, TypeError, OverflowError):
            if isinstance(value, str) and (
                moment := as_utc(value) or as_utc(parsedate_to_datetime(value))
            ):
                return moment

    return None
