"""The function that the confined child runs: a format by its suffix, and what is wrong with a file in words."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from hades.ingest.sources.formats.extracted import ExtractedDocument, ExtractedFile, FormatProblem


class Format(NamedTuple):
    """How files with a suffix are read; `is_text` formats take decoded text, the others bytes."""

    name: str
    mime: str
    reader: str  # module.function below this package
    is_text: bool = False


_OPEN_XML = "application/vnd.openxmlformats-officedocument"
FORMATS = {
    ".pdf": Format("PDF", "application/pdf", "pdf.read_pdf"),
    ".docx": Format("Word", f"{_OPEN_XML}.wordprocessingml.document", "word.read_word"),
    ".docm": Format("Word", "application/vnd.ms-word.document.macroEnabled.12", "word.read_word"),
    ".pptx": Format("PowerPoint", f"{_OPEN_XML}.presentationml.presentation", "slides.read_slides"),
    ".xlsx": Format("Excel", f"{_OPEN_XML}.spreadsheetml.sheet", "sheets.read_workbook"),
    ".xlsm": Format("Excel", "application/vnd.ms-excel.sheet.macroEnabled.12", "sheets.read_workbook"),
    ".csv": Format("table", "text/csv", "sheets.read_delimited", is_text=True),
    ".tsv": Format("table", "text/tab-separated-values", "sheets.read_delimited", is_text=True),
    ".epub": Format("EPUB", "application/epub+zip", "book.read_book"),
    ".ipynb": Format("notebook", "application/x-ipynb+json", "notebook.read_notebook", is_text=True),
    ".eml": Format("mail", "message/rfc822", "mail.read_message"),
    ".mbox": Format("mailbox", "application/mbox", "mail.read_mailbox"),
    ".vtt": Format("subtitles", "text/vtt", "subtitles.read_subtitles", is_text=True),
    ".srt": Format("subtitles", "application/x-subrip", "subtitles.read_subtitles", is_text=True),
}


def read_format(suffix: str, content: bytes | str) -> ExtractedFile:
    """The documents of a file. Never raises on damaged input: what libraries raise then is no closed list."""
    module, _, name = FORMATS[suffix].reader.partition(".")
    reader: Callable[[bytes | str], list[ExtractedDocument]] = getattr(import_module(f"{__package__}.{module}"), name)
    try:
        documents = reader(content)
    except FormatProblem as problem:
        return ExtractedFile(reason=problem.reason, problem=problem.detail)
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        return ExtractedFile(reason="malformed", problem=f"{type(error).__name__}: {error}"[:200])
    return ExtractedFile(tuple(documents))
