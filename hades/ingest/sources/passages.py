"""Passages with ready-made triples: a graph without a language model.

A row may say when it was written (`date`), which passage of the file comes right before it (`after`), as the turns of
a talk do, and what it belongs to (`domain` or `category`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from hades.ingest.source_document import GivenName, Material, RejectedInput, RejectReason, Section, SourceTools
from hades.ingest.sources.jsonl import (
    Row,
    UnreadLines,
    digest_file,
    digest_line,
    estimate_rows,
    parse_row,
    read_rows,
    require_rows,
)
from hades.ingest.sources.reading import MAX_TEXT_BYTES, Unusable
from hades.text.dates import times_in
from schemas.chunks import ChunkKind
from schemas.source_kinds import SourceKind
from schemas.sources import SourceSpec

Triple = tuple[str, str, str]


def open_source(spec: SourceSpec, _tools: SourceTools) -> PassagesSource:
    """The passages of a description."""
    return PassagesSource(Path(spec.path), Path(spec.triples) if spec.triples is not None else None)


class PassagesSource:
    """One passage a row; its text is the title, an empty line and the passage."""

    kind = SourceKind.PASSAGES
    mirrors = False

    def __init__(self, corpus: Path, triples: Path | None = None) -> None:
        self._corpus = require_rows(corpus, "one passage a line with id, title and text")
        self.corpus = corpus.name
        self.place = ""  # ids mean the same wherever the file lies
        self._triples = (
            require_rows(triples, "one passage's triples a line with id, entities and triples") if triples else None
        )
        self._lines = UnreadLines(self._corpus, _origin_of)

    @property
    def records_path(self) -> Path:
        """The file of the passages."""
        return self._corpus

    def digest_beside(self) -> str:
        """A digest of the triples."""
        return digest_file(self._triples)

    def leave_out(self, known: Mapping[bytes, str]) -> list[bytes]:
        """See `RecordSource.leave_out`."""
        return self._lines.leave_out(known)

    def estimate(self) -> int | None:
        """Rows to expect."""
        return estimate_rows(self._corpus)

    def read(self) -> Iterator[Material | RejectedInput]:
        """Passages in the order of their file; then triples of passages that are not there."""
        stated: dict[str, _PassageTriples] = {}
        if self._triples:
            yield from _load_triples(self._triples, stated)
        seen = set(self._lines.left_out)
        for line, text in self._lines:
            try:
                row = _parse(text)
                identifier = _identifier(row)
                if identifier in seen:
                    raise Unusable(RejectReason.DUPLICATE, f"passage {identifier} is already in an earlier line")
                material = _passage(identifier, row, stated.get(identifier, _PassageTriples()))
            except Unusable as problem:
                yield _reject(self._corpus, line, problem)
                continue
            seen.add(identifier)
            yield replace(material, record=digest_line(text)) if isinstance(text, bytes) else material
        for identifier, facts in stated.items():
            if identifier not in seen:
                assert self._triples is not None
                detail = f"triples for passage {identifier}, which was not read"
                yield _reject(self._triples, facts.line, Unusable(RejectReason.MALFORMED, detail))


@dataclass
class _PassageTriples:
    """What the triples file says of one passage."""

    line: int = 0
    entities: dict[str, None] = field(default_factory=dict)
    triples: dict[Triple, None] = field(default_factory=dict)


def _load_triples(path: Path, stated: dict[str, _PassageTriples]) -> Iterator[RejectedInput]:
    """Fills `stated`; what is not a triple of three names is counted and left out, the rest of its row is kept."""
    for line, row in read_rows(path):
        try:
            if isinstance(row, Unusable):
                raise row
            facts = stated.setdefault(_identifier(row), _PassageTriples(line))
            entities, triples = _list(row, "entities"), _list(row, "triples")
        except Unusable as problem:
            yield _reject(path, line, problem)
            continue
        facts.entities.update(dict.fromkeys(filter(None, map(_name, entities))))
        read = [_triple(one) for one in triples]
        facts.triples.update(dict.fromkeys(one for one in read if one is not None))
        if None in read:
            detail = f"{read.count(None)} of {len(read)} triples are not [subject, relation, object]; they are left out"
            yield _reject(path, line, Unusable(RejectReason.MALFORMED, detail))


def _passage(identifier: str, row: Row, facts: _PassageTriples) -> Material:
    title, body = _text(row, "title"), _text(row, "text")
    text = f"{title}\n\n{body}" if title and body else title or body
    if not text.strip():
        raise Unusable(RejectReason.EMPTY, f"passage {identifier} has no text")
    if "\0" in text:
        raise Unusable(RejectReason.NOT_TEXT, f"passage {identifier} holds NUL characters", len(text))
    if len(text) > MAX_TEXT_BYTES:
        raise Unusable(RejectReason.OVERSIZED, f"passage {identifier} has {len(text)} characters", len(text))
    return Material(
        origin=identifier,
        source=SourceKind.PASSAGES,
        text=text,
        title=title,
        sections=(Section(0, len(text), ChunkKind.PASSAGE),),
        names=tuple([GivenName(name) for name in facts.entities]),
        triples=tuple(facts.triples),
        created=_date(_said(row, "date")),
        domain=_said(row, "domain") or _said(row, "category"),
        follows=_said(row, "after"),
    )


def _said(row: Row, name: str) -> str:
    """An id or a year may be written as a number; what is neither that nor text says nothing."""
    value = row.get(name)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _date(value: str) -> datetime | None:
    """When a passage was written, as ISO 8601 or in words; None where neither can be read."""
    if not value:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return next((told.start for told in times_in(value)), None)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _identifier(row: Row) -> str:
    value = row.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value or "\0" in value:
        raise Unusable(RejectReason.MALFORMED, "expected a text 'id'")
    return value


def _parse(line: bytes | Unusable) -> Row:
    row = line if isinstance(line, Unusable) else parse_row(line)
    if isinstance(row, Unusable):
        raise row
    return row


def _origin_of(line: bytes) -> str | None:
    """The id of the passage of a line, as far as it can be read."""
    try:
        return _identifier(_parse(line))
    except Unusable:
        return None


def _text(row: Row, name: str) -> str:
    value = row.get(name, "")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unusable(RejectReason.MALFORMED, f"expected a text {name!r}, found {type(value).__name__}")
    return value


def _list(row: Row, name: str) -> list[object]:
    value = row.get(name, [])
    if not isinstance(value, list):
        raise Unusable(RejectReason.MALFORMED, f"expected a list {name!r}, found {type(value).__name__}")
    return value


def _name(value: object) -> str:
    return " ".join(value.split()).replace("\0", "") if isinstance(value, str) else ""


def _triple(value: object) -> Triple | None:
    """Three names, none of them empty."""
    if not isinstance(value, list) or len(value) != 3:
        return None
    subject, relation, target = map(_name, value)
    return (subject, relation, target) if subject and relation and target else None


def _reject(path: Path, line: int, problem: Unusable) -> RejectedInput:
    return RejectedInput(SourceKind.PASSAGES, f"{path.name}:{line}", problem.reason, problem.detail, problem.size)
