"""JSON lines, plain or gzipped, streamed: one row in memory, bad rows named by line instead of
ending the run.
"""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

import orjson

from hades.ingest.formats.registry import as_utc
from hades.ingest.parsers.facts import Section
from hades.ingest.sources.files import MAX_TEXT_BYTES, SourceError, Unusable
from hades.ingest.sources.material import Material, RejectedInput, RejectReason
from hades.text.dates import times_in
from schemas.nodes import ChunkKind
from schemas.sources import SourceKind, SourceSpec

MAX_ROW_BYTES = 8 << 20
# A compressed row may go on for ever; beyond this the rest of the file is given up.
_MAX_SKIPPED_BYTES = 256 << 20
_GZIP = b"\x1f\x8b"
_BROKEN_GZIP = (EOFError, OSError, zlib.error)
Row = dict[str, Any]


def require_rows(path: Path, expectation: str) -> Path:
    """The path, if rows can be read from it."""
    if not os.path.isfile(path):
        raise SourceError(
            f"{path} is missing or not a file; expected {expectation}, as .jsonl or .jsonl.gz"
        )

    if not os.access(path, os.R_OK):
        raise SourceError(f"{path} may not be read; expected {expectation}; check its permissions")

    return path


def read_rows(path: Path) -> Iterator[tuple[int, Row | Unusable]]:
    """Each row that is not blank with its line number; what is no JSON object comes as the reason
    why.
    """
    with path.open("rb") as raw, _open(raw) as lines:
        number = 0
        while True:
            try:
                line = lines.readline(MAX_ROW_BYTES + 1)
                is_cut = len(line) > MAX_ROW_BYTES and not line.endswith(b"\n")
                is_lost = is_cut and not _skip_line(lines)
            except _BROKEN_GZIP as error:
                detail = f"compressed data is damaged, the rest of the file is lost: {error}"
                yield number + 1, Unusable(RejectReason.UNREADABLE, detail)
                return

            if not line:
                return

            number += 1
            if is_cut:
                if is_lost:
                    consequence = "; the rest of the file is not read"
                else:
                    consequence = ""

                yield (
                    number,
                    Unusable(
                        RejectReason.OVERSIZED,
                        f"a row of more than {MAX_ROW_BYTES} bytes{consequence}",
                    ),
                )
                if is_lost:
                    return
            elif not line.isspace():
                yield number, _parse(line.removeprefix(codecs.BOM_UTF8) if number == 1 else line)


def _parse(line: bytes) -> Row | Unusable:
    """The JSON object of a line, or the reason why there is none."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Unusable(
            RejectReason.MALFORMED,
            f"not JSON: {error}"[:200],
            len(line),
        )

    if not isinstance(value, dict):
        return Unusable(
            RejectReason.MALFORMED,
            f"a JSON {type(value).__name__}, expected an object",
            len(line),
        )

    return value


def _open(raw: IO[bytes]) -> IO[bytes]:
    """The bytes of the rows; compression is detected by the first bytes, not by the file name."""
    is_compressed = raw.read(2) == _GZIP
    raw.seek(0)

    if is_compressed:
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))

    return raw


def _skip_line(lines: IO[bytes]) -> bool:
    """Whether the line's end came within bounds."""
    for _ in range(_MAX_SKIPPED_BYTES >> 20):
        part = lines.readline(1 << 20)
        if not part or part.endswith(b"\n"):
            return True

    return False


def parse_rows(
    path: Path,
    kind: SourceKind,
    parse: Callable[[int, Row], Material | None],
) -> Iterator[Material | RejectedInput]:
    """The document of each row by its line, if it gives one; rows for which `parse` raises
    `Unusable` are rejected.
    """
    for line, row in read_rows(path):
        try:
            if isinstance(row, Unusable):
                raise row
            material = parse(line, row)
        except Unusable as problem:
            yield problem.rejected(kind, f"{path.name}:{line}")
        else:
            if material is not None:
                yield material


class RowsSource:
    """One document a row of a file; ids mean the same wherever the file lies."""

    kind: SourceKind
    mirrors = False
    place = ""
    total: int | None = None

    def __init__(self, rows: Path, expectation: str) -> None:
        self._rows = require_rows(rows, expectation)
        self._seen: set[str] = set()
        self.corpus = rows.name

    def _first(self, material: Material) -> Material:
        """The document, if none of its id came before."""
        if material.origin in self._seen:
            raise Unusable(
                RejectReason.DUPLICATE,
                f"{material.origin} is already in an earlier line",
            )

        self._seen.add(material.origin)
        return material


# Passages with ready-made triples: a graph without a language model. A row may say when it was
# written (`date`), which passage of the file comes right before it (`after`), as the turns of a
# talk do, and what it belongs to
# (`domain` or `category`).
Triple = tuple[str, str, str]


def open_source(spec: SourceSpec, **_tools: object) -> PassagesSource:
    """The passages of a description."""
    return PassagesSource(
        Path(spec.path),
        Path(spec.triples) if spec.triples is not None else None,
    )


class PassagesSource(RowsSource):
    """One passage a row; its text is the title, an empty line and the passage."""

    kind = SourceKind.PASSAGES

    def __init__(self, corpus: Path, triples: Path | None = None) -> None:
        super().__init__(corpus, "one passage a line with id, title and text")
        expectation = "one passage's triples a line with id, entities and triples"
        self._triples = require_rows(triples, expectation) if triples else None

    def read(self) -> Iterator[Material | RejectedInput]:
        """Passages in the order of their file; then triples of passages that are not there."""
        stated: dict[str, _PassageTriples] = {}
        self._seen.clear()

        if self._triples:
            yield from parse_rows(
                self._triples,
                self.kind,
                partial(_keep_triples, stated),
            )

        yield from parse_rows(
            self._rows,
            self.kind,
            lambda _, row: self._first(_passage(row, stated)),
        )
        for identifier, facts in stated.items():
            if self._triples and identifier not in self._seen:
                detail = f"triples for passage {identifier}, which was not read"
                unread = Unusable(RejectReason.MALFORMED, detail)
                yield unread.rejected(self.kind, f"{self._triples.name}:{facts.line}")


@dataclass
class _PassageTriples:
    """What the triples file says of one passage."""

    line: int = 0
    entities: dict[str, None] = field(default_factory=dict)
    triples: dict[Triple, None] = field(default_factory=dict)


def _keep_triples(
    stated: dict[str, _PassageTriples],
    line: int,
    row: Row,
) -> None:
    """Fills `stated`; what is not a triple of three names is counted and left out, the rest of its
    row is kept.
    """
    facts = stated.setdefault(_identifier(row), _PassageTriples(line))
    entities = _list(row, "entities")
    triples = [_triple(triple) for triple in _list(row, "triples")]
    facts.entities.update(dict.fromkeys(filter(None, map(_name, entities))))
    facts.triples.update(dict.fromkeys(triple for triple in triples if triple is not None))

    if None in triples:
        detail = (
            f"{triples.count(None)} of {len(triples)} triples are not [subject, relation, object]; "
            "they are left out"
        )
        raise Unusable(RejectReason.MALFORMED, detail)


def _passage(row: Row, stated: dict[str, _PassageTriples]) -> Material:
    identifier = _identifier(row)
    facts = stated.get(identifier, _PassageTriples())
    title = text_field(row, "title")
    body = text_field(row, "text")
    text = "\n\n".join(filter(None, (title, body)))

    if not text.strip():
        raise Unusable(RejectReason.EMPTY, f"passage {identifier} has no text")

    if "\0" in text:
        raise Unusable(
            RejectReason.NOT_TEXT,
            f"passage {identifier} holds NUL characters",
            len(text),
        )

    if len(text) > MAX_TEXT_BYTES:
        raise Unusable(
            RejectReason.OVERSIZED,
            f"passage {identifier} has {len(text)} characters",
            len(text),
        )

    stated_date = _text_or_number(row, "date")
    created = as_utc(stated_date)  # ISO 8601
    if created is None:  # in words
        created = next((moment.start for moment in times_in(stated_date)), None)

    return Material(
        origin=identifier,
        source=SourceKind.PASSAGES,
        text=text,
        title=title,
        sections=(Section(0, len(text), ChunkKind.PASSAGE),),
        names=tuple((name, None) for name in facts.entities),
        triples=tuple(facts.triples),
        created=created,
        domain=_text_or_number(row, "domain") or _text_or_number(row, "category"),
        follows=_text_or_number(row, "after"),
    )


def _text_or_number(row: Row, name: str) -> str:
    """An id or a year may be written as a number; what is neither that nor text says nothing."""
    value = row.get(name)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)

    return ""


def _identifier(row: Row) -> str:
    value = _text_or_number(row, "id")
    if not value or "\0" in value:
        raise Unusable(RejectReason.MALFORMED, "expected a text 'id'")
    return value


def text_field(row: Row, name: str) -> str:
    """A field that must be a text where it is given."""
    value = row.get(name, "")
    if value is None:
        return ""

    if not isinstance(value, str):
        raise Unusable(
            RejectReason.MALFORMED,
            f"expected a text {name!r}, found {type(value).__name__}",
        )

    return value


def _list(row: Row, name: str) -> list[object]:
    value = row.get(name, [])
    if not isinstance(value, list):
        raise Unusable(
            RejectReason.MALFORMED,
            f"expected a list {name!r}, found {type(value).__name__}",
        )

    return value


def _name(value: object) -> str:
    if isinstance(value, str):
        return " ".join(value.split()).replace("\0", "")
    return ""


def _triple(value: object) -> Triple | None:
    """Three names, none of them empty."""
    if not isinstance(value, list) or len(value) != 3:
        return None

    subject, relation, target = map(_name, value)
    if subject and relation and target:
        return (subject, relation, target)

    return None
