"""What a reader of a format returns. This module loads no schema: a confined child must start fast."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import NamedTuple

MAX_CHARS = 8 << 20


class FormatProblem(Exception):
    """A file that cannot be used; `reason` is a value of `RejectReason`, `detail` says what to do."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


class Part(NamedTuple):
    """A piece of text under the headings that say where it stands: page, slide, cells, time."""

    headings: tuple[str, ...]
    text: str
    kind: str = "prose"  # a value of `ChunkKind`


class ExtractedDocument(NamedTuple):
    """One document of a file; `fragment` tells apart the documents of one file, such as the messages of a mailbox."""

    parts: tuple[Part, ...]
    title: str = ""
    fragment: str = ""
    created: datetime | None = None
    people: tuple[str, ...] = ()
    replies_to: str = ""  # fragment of another document of the same file, or the id of a message elsewhere
    message_id: str = ""


class ExtractedFile(NamedTuple):
    """The documents of a file, or with `problem` and its `reason` why it has none."""

    documents: tuple[ExtractedDocument, ...] = ()
    reason: str = ""
    problem: str = ""


class PartList:
    """Collects parts; refuses a file with more text than a document may hold."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._length = 0

    def add(self, headings: Iterable[str], text: str, kind: str = "prose") -> None:
        """Add one part; a blank one is left out."""
        cleaned = clean(text)
        if not cleaned:
            return
        self._length += len(cleaned)
        if self._length > MAX_CHARS:
            raise FormatProblem("oversized", f"more than {MAX_CHARS} characters of text")
        self.parts.append(Part(tuple(one_line(heading) for heading in headings if heading.strip()), cleaned, kind))

    def document(self, title: str = "", created: datetime | None = None) -> ExtractedDocument:
        """The parts so far as one document."""
        return ExtractedDocument(tuple(self.parts), one_line(title), created=created)


def clean(text: str) -> str:
    """Valid Unicode without NUL, lines ended by a newline: pairs of surrogates are joined, lone ones replaced."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n").strip()


def one_line(text: str, most: int = 200) -> str:
    """A title or heading on one line, cut at `most` characters."""
    return " ".join(clean(text[: 5 * most]).split())[:most]


def as_utc(moment: object) -> datetime | None:
    """A date or time, also in ISO form, as UTC; None for anything else. A time without a zone is taken as UTC."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            return None
    if isinstance(moment, datetime):
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if isinstance(moment, date):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return None
