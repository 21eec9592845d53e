"""Text of a PDF page by page, with pdfium."""

from __future__ import annotations

import re

from hades.ingest.formats.registry import ExtractedDocument, FormatProblem, PartList

MAX_PAGES = 5_000
_MAGIC_WITHIN = 1024  # readers accept a header anywhere in the first kilobyte
_PASSWORD_NEEDED = 4  # FPDF_ERR_PASSWORD
_HYPHEN_AT_LINE_END = re.compile("[\ufffe\x02](?:\r?\n)?")  # how pdfium marks a word that is divided


def read_pdf(data: bytes) -> list[ExtractedDocument]:
    """The text layer, one part a page under the heading `page N`."""
    import pypdfium2

    if b"%PDF-" not in data[:_MAGIC_WITHIN]:
        raise FormatProblem("malformed", "named .pdf, but it has no PDF header")
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD_NEEDED:
            raise FormatProblem("unreadable", "encrypted with a password; save it without one") from error
        raise FormatProblem("malformed", str(error)) from error
    count = len(document)
    if count > MAX_PAGES:
        raise FormatProblem("oversized", f"{count} pages, the limit is {MAX_PAGES}")
    parts = PartList()
    for index in range(count):
        try:
            page = document[index].get_textpage()
            parts.add((f"page {index + 1}",), _HYPHEN_AT_LINE_END.sub("", page.get_text_bounded()))
        except pypdfium2.PdfiumError:
            continue  # one damaged page does not cost the others
    if not parts.parts:
        raise FormatProblem("empty", f"no text layer in {count} pages; run text recognition (OCR) on it first")
    return [parts.document(document.get_metadata_dict().get("Title", ""))]
