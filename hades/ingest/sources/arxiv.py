"""arXiv metadata in the public snapshot's form and in a shorter one, with citations and code links beside it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

from hades.ingest.sources.files import Unusable
from hades.ingest.sources.material import (
    GivenName,
    Link,
    Material,
    PaperFacts,
    Portion,
    RejectedInput,
    RejectReason,
    Section,
    SourceTools,
)
from hades.ingest.sources.passages import (
    Row,
    UnreadLines,
    digest_file,
    digest_line,
    estimate_rows,
    parse_row,
    read_rows,
    require_rows,
)
from schemas.nodes import ChunkKind, NameType, RelationType
from schemas.sources import SourceKind, SourceSpec

_READ = "id title abstract authors authors_parsed categories date created versions update_date"
_READ_FIELDS = frozenset(_READ.split())  # the others are kept as metadata
_AUTHOR_SPLIT = re.compile(r",\s*(?:and\s+)?|\s+and\s+|;\s*")
PORTION_BYTES = 1 << 20
PortionLine = tuple[int, "bytes | RejectedInput"]
_SUFFIX = re.compile(r"(?:jr|sr|[iv]+)\.?$", re.IGNORECASE)


def open_source(spec: SourceSpec, _tools: SourceTools) -> ArxivSource:
    """The papers of a description."""
    beside = [Path(one) if one is not None else None for one in (spec.citations, spec.code_links)]
    return ArxivSource(Path(spec.path), *beside)


class ArxivSource:
    """Papers as documents: title and abstract are the text, citations and repositories are links."""

    kind = SourceKind.ARXIV
    mirrors = False

    def __init__(self, papers: Path, citations: Path | None = None, code_links: Path | None = None) -> None:
        self._papers = require_rows(papers, "one paper a line with id, title and abstract")
        self.corpus = papers.name
        self.place = ""  # ids mean the same wherever the file lies
        self._citations = require_rows(citations, "one citation a line with src and dst") if citations else None
        self._code_links = require_rows(code_links, "one mention a line with id and repo") if code_links else None
        self._beside: list[tuple[_Links, Path]] = []
        self._lines = UnreadLines(self._papers, _origin_of)

    @property
    def records_path(self) -> Path:
        """The file of the papers."""
        return self._papers

    def digest_beside(self) -> str:
        """A digest of the citations and code links."""
        return f"{digest_file(self._citations)} {digest_file(self._code_links)}"

    def leave_out(self, known: Mapping[bytes, str]) -> list[bytes]:
        """See `RecordSource.leave_out`."""
        return self._lines.leave_out(known)

    def estimate(self) -> int | None:
        """Rows to expect."""
        return estimate_rows(self._papers)

    def read(self) -> Iterator[Material | RejectedInput]:
        """Papers in the order of their file; then what was linked from papers that are not there."""
        seen: set[str] = set()
        for portion in self.portions():
            for place, item in enumerate(read_papers(*portion.arguments)):
                if isinstance(item, Material) and item.origin in seen:
                    yield self.reject_repeat(portion, place, item.origin)
                    continue
                if isinstance(item, Material):
                    seen.add(item.origin)
                yield item
        yield from self.reject_rest(seen)

    def portions(self) -> Iterator[Portion]:
        """Lines of the papers' file with the links of their papers; the first also has the links that were rejected."""
        self._beside = []
        rejected: list[RejectedInput] = []
        for path, links, ends in (
            (self._citations, _Links(RelationType.CITES, False), ("src", "dst")),
            (self._code_links, _Links(RelationType.IMPLEMENTS, True), ("id", "repo")),
        ):
            if path:
                rejected += links.load(path, *ends)
                self._beside.append((links, path))
        lines: list[PortionLine] = []
        size = 0
        for number, line in self._lines:
            lines.append((number, _reject(self._papers.name, number, line) if isinstance(line, Unusable) else line))
            size += 0 if isinstance(line, Unusable) else len(line)
            if size >= PORTION_BYTES:
                yield self._portion(rejected, lines, size)
                rejected, lines, size = [], [], 0
        if rejected or lines:
            yield self._portion(rejected, lines, size)

    def reject_repeat(self, portion: Portion, place: int, origin: str) -> RejectedInput:
        """A paper that an earlier portion has."""
        _, rejected, lines, _ = portion.arguments
        return _reject(self._papers.name, lines[place - len(rejected)][0], _repeat(origin))

    def reject_rest(self, origins: Collection[str]) -> Iterator[RejectedInput]:
        """One note for each file with links of papers that were not read."""
        for links, path in self._beside:
            yield from links.left_over(path, {*origins, *self._lines.left_out})

    def _portion(self, rejected: list[RejectedInput], lines: list[PortionLine], size: int) -> Portion:
        links = {paper: self._links_of(paper) for paper in _ids_of(lines)} if self._beside else {}
        return Portion(f"{__name__}:{read_papers.__name__}", (self._papers.name, rejected, lines, links), size)

    def _links_of(self, paper: str) -> tuple[Link, ...]:
        return tuple(link for links, _ in self._beside for link in links.of(paper))


def read_papers(
    file: str, rejected: list[RejectedInput], lines: list[PortionLine], links: Mapping[str, tuple[Link, ...]]
) -> list[Material | RejectedInput]:
    """What was rejected before, then the paper of each line, or why there is none; `links` by the id of a paper."""
    items: list[Material | RejectedInput] = list(rejected)
    seen: set[str] = set()
    for number, line in lines:
        if isinstance(line, RejectedInput):
            items.append(line)
            continue
        try:
            row = parse_row(line)
            if isinstance(row, Unusable):
                raise row
            material = replace(_paper(row, links), record=digest_line(line))
            if material.origin in seen:
                raise _repeat(material.origin)
        except Unusable as problem:
            items.append(_reject(file, number, problem))
            continue
        seen.add(material.origin)
        items.append(material)
    return items


@dataclass
class _LinkRows:
    """All rows that link the same two things."""

    count: int = 0
    contexts: dict[str, None] = field(default_factory=dict)


class _Links:
    """Rows of a link file by the paper they start from; rows about the same target are one link."""

    def __init__(self, relation: RelationType, external: bool) -> None:
        self._relation, self._external = relation, external
        self._by_paper: defaultdict[str, dict[str, _LinkRows]] = defaultdict(dict)

    def load(self, path: Path, source_field: str, target_field: str) -> Iterator[RejectedInput]:
        """Reads the file; rows without both ends are rejected."""
        for line, row in read_rows(path):
            if isinstance(row, Unusable):
                yield _reject(path.name, line, row)
                continue
            source, target = row.get(source_field), row.get(target_field)
            if not (isinstance(source, str) and source and isinstance(target, str) and target):
                detail = f"expected texts {source_field!r} and {target_field!r}"
                yield _reject(path.name, line, Unusable(RejectReason.MALFORMED, detail))
                continue
            stated = self._by_paper[source].setdefault(target, _LinkRows())
            mentions = row.get("n_mentions", 1)
            # A reference that the running text never mentions is still stated once, in the list of references.
            stated.count += max(1, mentions) if isinstance(mentions, int) else 1
            context = row.get("context")
            if isinstance(context, str) and context.strip():
                stated.contexts[" ".join(context.split())] = None

    def of(self, paper: str) -> Iterator[Link]:
        """The links of one paper, each with its sentences, one a line."""
        for target, stated in self._by_paper.get(paper, {}).items():
            yield Link(self._relation, target, self._external, stated.count, "\n".join(stated.contexts))

    def left_over(self, path: Path, papers: Collection[str]) -> Iterator[RejectedInput]:
        """One note for all rows of papers that were not read: a part of a corpus often comes with all its links."""
        strangers = [paper for paper in self._by_paper if paper not in papers]
        if strangers:
            named = ", ".join(strangers[:5]) + (", ..." if len(strangers) > 5 else "")
            detail = f"{len(strangers)} papers with links are not among the papers read: {named}"
            yield RejectedInput(SourceKind.ARXIV, path.name, RejectReason.MALFORMED, detail)


def _paper(row: Row, links: Mapping[str, tuple[Link, ...]]) -> Material:
    identifier = row.get("id")
    if not isinstance(identifier, str) or not identifier.strip():
        raise Unusable(RejectReason.MALFORMED, "expected a text 'id'")
    identifier = identifier.strip()
    title, abstract = _flat(row, "title"), _flat(row, "abstract")
    if not title and not abstract:
        raise Unusable(RejectReason.EMPTY, f"paper {identifier} has neither title nor abstract")
    text = f"{title}\n\n{abstract}" if title and abstract else title or abstract
    if "\0" in text or "\0" in identifier:
        raise Unusable(RejectReason.NOT_TEXT, f"paper {identifier!r} holds NUL characters", len(text))
    authors, date = _authors(row), _date(row)
    facts = PaperFacts(
        arxiv_id=identifier,
        title=title,
        abstract=abstract,
        authors=authors,
        categories=_categories(row.get("categories")),
        date=date,
        metadata={name: value for name, value in row.items() if name not in _READ_FIELDS and value is not None},
    )
    return Material(
        origin=identifier,
        source=SourceKind.ARXIV,
        text=text,
        title=title,
        uri=f"https://arxiv.org/abs/{identifier}",
        created=date,
        sections=(Section(0, len(text), ChunkKind.ABSTRACT),),
        paper=facts,
        names=tuple([GivenName(author, NameType.PERSON) for author in authors]),
        links=links.get(identifier, ()),
    )


def _flat(row: Row, name: str) -> str:
    """A text field on one line: the snapshot wraps lines where the other forms do not."""
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unusable(RejectReason.MALFORMED, f"expected a text {name!r}, found {type(value).__name__}")
    return " ".join(value.split())


def _authors(row: Row) -> tuple[str, ...]:
    """Names in reading order, from the parsed form where there is one."""
    parsed, plain = row.get("authors_parsed"), row.get("authors")
    if isinstance(parsed, list) and parsed:
        names = [_parse_author(parts) for parts in parsed if isinstance(parts, list)]
    elif isinstance(plain, list):
        names = [" ".join(name.split()) for name in plain if isinstance(name, str)]
    elif isinstance(plain, str):
        names = _AUTHOR_SPLIT.split(" ".join(_without_brackets(plain).split()))
    else:
        names = []
    return tuple(dict.fromkeys(name for name in names if name and "\0" not in name and not _SUFFIX.match(name)))


def _parse_author(parts: list[object]) -> str:
    """`["Smith", "J. A.", "Jr."]` -> `J. A. Smith Jr.`; what follows are affiliations."""
    last, first, suffix = [*[part if isinstance(part, str) else "" for part in parts[:3]], "", "", ""][:3]
    return " ".join(f"{first} {last} {suffix}".split())


def _without_brackets(authors: str) -> str:
    """Affiliations stand in brackets, sometimes nested."""
    depth, kept = 0, []
    for character in authors:
        depth += character == "("
        if depth == 0:
            kept.append(character)
        depth -= character == ")" and depth > 0
    return "".join(kept)


def _categories(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _date(row: Row) -> datetime | None:
    """When the paper first appeared: its first version, else the date given, else that of the last update."""
    versions = row.get("versions")
    earliest = versions[0] if isinstance(versions, list) and versions else None
    first = earliest.get("created") if isinstance(earliest, dict) else None
    for value in (first, row.get("date"), row.get("created"), row.get("update_date")):
        if isinstance(value, str) and value:
            moment = _moment(value)
            if moment is not None:
                return moment
    return None


def _moment(value: str) -> datetime | None:
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(value)
        except (ValueError, TypeError, OverflowError):
            continue
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return None


def _ids_of(lines: Sequence[PortionLine]) -> Iterator[str]:
    """The ids of papers, as far as the lines can be read."""
    for _, line in lines:
        identifier = _origin_of(line) if isinstance(line, bytes) else None
        if identifier is not None:
            yield identifier


def _origin_of(line: bytes) -> str | None:
    """The id of the paper of a line, as far as it can be read."""
    row = parse_row(line)
    identifier = row.get("id") if isinstance(row, dict) else None
    return identifier.strip() if isinstance(identifier, str) else None


def _repeat(origin: str) -> Unusable:
    return Unusable(RejectReason.DUPLICATE, f"paper {origin} is already in an earlier line")


def _reject(file: str, line: int, problem: Unusable) -> RejectedInput:
    return RejectedInput(SourceKind.ARXIV, f"{file}:{line}", problem.reason, problem.detail, problem.size)
