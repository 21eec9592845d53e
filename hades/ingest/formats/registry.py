"""Suffix -> reader; what a reader returns. It loads no schema: a confined child must start fast."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from importlib import import_module
from typing import Any, NamedTuple

from hades.ingest.formats.markup import table_lines
from hades.ingest.parsers.facts import Section

MAX_CHARS = 8 << 20
_CELL_CHARS = 1_000
_BETWEEN_PARTS = "\n\n"


class FormatProblem(Exception):
    """A file that cannot be used; `reason` is a value of `RejectReason`, `detail` says what to
    do.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


class ExtractedDocument(NamedTuple):
    """One document of a file; `fragment` tells apart the documents of one file, such as the
    messages of a mailbox.
    """

    text: str
    sections: tuple[Section, ...]
    title: str = ""
    fragment: str = ""
    created: datetime | None = None
    people: tuple[str, ...] = ()
    # Fragment of another document of the same file, or the id of a message elsewhere.
    replies_to: str = ""
    message_id: str = ""


class PartList:
    """Collects parts of a text with a blank line between them; refuses more of it than a document
    may hold.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._sections: list[Section] = []
        self._length = 0

    def __len__(self) -> int:
        return len(self._sections)

    def add(
        self,
        headings: Iterable[str],
        text: str,
        kind: str = "prose",
    ) -> None:
        """Add a part under the headings that say where it stands: page, slide, cells, time. A blank
        one is left out.
        """
        cleaned = clean(text)
        if not cleaned:
            return

        end = self._length + len(cleaned)
        if end > MAX_CHARS:
            raise FormatProblem("oversized", f"more than {MAX_CHARS} characters of text")

        titles = tuple(one_line(heading) for heading in headings if heading.strip())
        self._texts.append(cleaned)
        self._sections.append(Section(self._length, end, kind, titles))
        self._length = end + len(_BETWEEN_PARTS)

    def add_regions(
        self,
        text: str,
        regions: Iterable[Section],
        otherwise: Iterable[str] = (),
    ) -> None:
        """Add the regions of a text, each under its own headings or the others."""
        for region in regions:
            self.add(region.headings or otherwise, text[region.start : region.end])

    def document(
        self, title: str = "", created: datetime | None = None, **more: Any
    ) -> ExtractedDocument:
        """The parts so far as one document."""
        text = _BETWEEN_PARTS.join(self._texts)
        return ExtractedDocument(
            text,
            tuple(self._sections),
            one_line(title),
            created=created,
            **more,
        )


def clean(text: str) -> str:
    """Valid Unicode without NUL, lines ended by a newline: pairs of surrogates are joined, lone
    ones replaced.
    """
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n").strip()


def decode_as(content: bytes, charset: str | None) -> str:
    """Bytes in the encoding that they are said to be in, else as UTF-8."""
    try:
        return content.decode(charset or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def one_line(text: str, most: int = 200) -> str:
    """A title or heading on one line, cut at `most` characters."""
    return " ".join(clean(text[: 5 * most]).split())[:most]


def write_table(rows: Sequence[Sequence[str]]) -> str:
    """A table as Markdown, its first row above the others; one column or one row is written as
    lines.
    """
    filled = []
    for row in rows:
        if "".join(row).strip():
            filled.append(row)

    columns = max(map(len, filled), default=0)
    if columns < 2 or len(filled) < 2:
        return "\n\n".join(" ".join(filter(None, row)) for row in filled)

    return "\n".join(table_lines([_cut_cells(row) for row in filled]))


def _cut_cells(row: Iterable[str]) -> list[str]:
    return [one_line(cell, _CELL_CHARS) for cell in row]


def as_utc(moment: object) -> datetime | None:
    """A date or time, also in ISO form, as UTC; None for anything else. A time without a zone is
    taken as UTC.
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            return None

    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)

    if isinstance(moment, date):
        return datetime(
            moment.year,
            moment.month,
            moment.day,
            tzinfo=UTC,
        )

    return None


class Format(NamedTuple):
    """How files with a suffix are read; `is_text` formats take decoded text, the others bytes."""

    name: str
    mime: str
    reader: str  # module.function below this package
    is_text: bool = False


_OPEN_XML = "application/vnd.openxmlformats-officedocument"
FORMATS = {
    **{
        suffix: Format(
            "HTML",
            "text/html",
            "html.read_page",
            is_text=True,
        )
        for suffix in (".html", ".htm", ".xhtml")
    },
    ".pdf": Format("PDF", "application/pdf", "pdf.read_pdf"),
    ".docx": Format(
        "Word",
        f"{_OPEN_XML}.wordprocessingml.document",
        "office.read_word",
    ),
    ".docm": Format(
        "Word",
        "application/vnd.ms-word.document.macroEnabled.12",
        "office.read_word",
    ),
    ".pptx": Format(
        "PowerPoint",
        f"{_OPEN_XML}.presentationml.presentation",
        "office.read_slides",
    ),
    ".xlsx": Format(
        "Excel",
        f"{_OPEN_XML}.spreadsheetml.sheet",
        "office.read_workbook",
    ),
    ".xlsm": Format(
        "Excel",
        "application/vnd.ms-excel.sheet.macroEnabled.12",
        "office.read_workbook",
    ),
    ".csv": Format(
        "table",
        "text/csv",
        "office.read_delimited",
        is_text=True,
    ),
    ".tsv": Format(
        "table",
        "text/tab-separated-values",
        "office.read_delimited",
        is_text=True,
    ),
    ".epub": Format(
        "EPUB",
        "application/epub+zip",
        "epub.read_book",
    ),
    ".ipynb": Format(
        "notebook",
        "application/x-ipynb+json",
        "notebook.read_notebook",
        is_text=True,
    ),
    ".eml": Format(
        "mail",
        "message/rfc822",
        "mail.read_message",
    ),
    ".mbox": Format(
        "mailbox",
        "application/mbox",
        "mail.read_mailbox",
    ),
    ".vtt": Format(
        "subtitles",
        "text/vtt",
        "subtitles.read_subtitles",
        is_text=True,
    ),
    ".srt": Format(
        "subtitles",
        "application/x-subrip",
        "subtitles.read_subtitles",
        is_text=True,
    ),
}


def read_format(
    suffix: str,
    content: bytes | str,
) -> list[ExtractedDocument] | FormatProblem:
    """The documents of a file, or why it has none: what libraries raise on damaged input is no
    closed list.
    """
    module, _, name = FORMATS[suffix].reader.partition(".")
    reader: Callable[[bytes | str], list[ExtractedDocument]] = getattr(
        import_module(f"{__package__}.{module}"), name
    )

    try:
        return reader(content)
    except FormatProblem as problem:
        return problem
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        return FormatProblem("malformed", f"{type(error).__name__}: {error}"[:200])
