"""Text of a PDF page by page, with pdfium: paragraphs by the space between lines, headings by the
size of letters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from hades.ingest.formats.registry import ExtractedDocument, FormatProblem, PartList, one_line

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

MAX_PAGES = 5_000
_MAGIC_WITHIN = 1024  # readers accept a header anywhere in the first kilobyte
_PASSWORD_NEEDED = 4  # FPDF_ERR_PASSWORD
# How pdfium marks a word that is divided.
_HYPHEN_AT_LINE_END = re.compile("[\ufffe\x02](?:\r?\n)?")
_LARGER = 1.15  # letters of a heading beside those of the text
_WIDER = 1.3  # space before a paragraph beside that between lines
_HEADING_WORDS, _DEPTH = 14, 3
# What programs write where a person gave no title: nothing, the name of the file, or that of the
# program.
_NO_TITLE = re.compile(r"^\W*$|\.\w{2,5}$|^(?:untitled|microsoft \w+ -)", re.IGNORECASE)
_PICTURE_POINTS, _SOUGHT_CHARS, _MARK = 1_400.0, 120, (255, 236, 130)
_DIGITS, _REPEATED = re.compile(r"\d+"), 3


class _Line(NamedTuple):
    """A line, the size of its letters and how high it stands on the page; 0 where that is not
    known.
    """

    text: str
    size: float = 0.0
    bottom: float = 0.0


def read_pdf(content: bytes) -> list[ExtractedDocument]:
    """The text layer under the headings `page N` and those of the text, which hold until the next
    of their size.
    """
    import pypdfium2

    if b"%PDF-" not in content[:_MAGIC_WITHIN]:
        raise FormatProblem("malformed", "named .pdf, but it has no PDF header")

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _PASSWORD_NEEDED:
            raise FormatProblem(
                "unreadable",
                "encrypted with a password; save it without one",
            ) from error

        raise FormatProblem("malformed", str(error)) from error

    count = len(document)
    if count > MAX_PAGES:
        raise FormatProblem("oversized", f"{count} pages, the limit is {MAX_PAGES}")

    pages = list(_pages(document))
    usual = _usual_size(pages)
    parts = PartList()
    path: list[tuple[float, str]] = []
    first = ""

    for number, lines in _without_margins(pages, usual):
        count_before = len(parts)
        for heading, text in _sections(lines, usual):
            if heading is not None:
                path = [
                    *(above for above in path if above[0] > heading.size),
                    (heading.size, heading.text),
                ][-_DEPTH:]
                first = first or heading.text

            parts.add((f"page {number}", *(title for _, title in path)), text)

        if len(parts) == count_before:  # nothing but headings
            parts.add((f"page {number}",), "\n\n".join(line.text for line in lines))

    if not len(parts):
        raise FormatProblem(
            "empty",
            f"no text layer in {count} pages; run text recognition (OCR) on it first",
        )

    stated = document.get_metadata_dict().get("Title", "")
    return [parts.document(first if first and _NO_TITLE.search(stated) else stated)]


def _pages(document: PdfDocument) -> Iterator[tuple[int, list[_Line]]]:
    """The lines of each page that can be read; one damaged page does not cost the others."""
    import pypdfium2

    for index in range(len(document)):
        try:
            yield index + 1, _lines(document[index].get_textpage())
        except pypdfium2.PdfiumError:
            continue


def _lines(page: PdfTextPage) -> list[_Line]:
    from pypdfium2.raw import FPDFText_GetFontSize

    text = page.get_text_range()
    if len(text) != page.count_chars():  # letters beyond the first plane: places do not count alike
        joined = _HYPHEN_AT_LINE_END.sub("", page.get_text_bounded())
        return [_Line(line.strip()) for line in joined.splitlines() if line.strip()]

    lines: list[_Line] = []
    joins = False
    for match in re.finditer(r"[^\r\n]+", text):
        line = match.group().strip()
        if not line:
            continue

        if joins:
            lines[-1] = lines[-1]._replace(text=lines[-1].text + _HYPHEN_AT_LINE_END.sub("", line))
        else:
            first = text.index(line, match.start())
            backwards = range(first + len(line) // 2, first - 1, -1)
            place = next(at for at in backwards if not text[at].isspace())
            size = round(FPDFText_GetFontSize(page.raw, place), 1)
            _, bottom, _, _ = page.get_charbox(place, loose=True)
            lines.append(
                _Line(
                    _HYPHEN_AT_LINE_END.sub("", line),
                    size,
                    bottom,
                )
            )

        joins = line.endswith(("\ufffe", "\x02"))

    return [line for line in lines if line.text]


def _without_margins(
    pages: Sequence[tuple[int, list[_Line]]],
    usual: float,
) -> Iterator[tuple[int, list[_Line]]]:
    """Pages without the lines at their top and foot that stand on three pages, but for their
    numbers.
    """

    def margins(lines: Sequence[_Line]) -> set[_Line]:
        by_height = sorted(lines, key=lambda line: line.bottom)
        if len(lines) > 2:
            edges = by_height[:1] + by_height[-1:]
        else:
            edges = []

        return {line for line in edges if line.size <= usual * _LARGER}

    pages_with: Counter[str] = Counter()
    for _, lines in pages:
        pages_with.update(_DIGITS.sub("0", line.text) for line in margins(lines))

    repeated = set()
    for text, count in pages_with.items():
        if count >= _REPEATED:
            repeated.add(text)

    for number, lines in pages:
        left_out = {line for line in margins(lines) if _DIGITS.sub("0", line.text) in repeated}
        yield number, [line for line in lines if line not in left_out]


def _usual_size(pages: Sequence[tuple[int, Sequence[_Line]]]) -> float:
    """The size that most letters have."""
    letters: Counter[float] = Counter()
    for _, lines in pages:
        for line in lines:
            letters[line.size] += len(line.text)

    return max(letters, key=lambda size: (letters[size], -size), default=0.0)


def _sections(
    lines: Sequence[_Line],
    usual: float,
) -> Iterator[tuple[_Line | None, str]]:
    """Headings of a page, each with what follows it as Markdown; None for what stands before the
    first.
    """
    heading: _Line | None = None

    body: list[_Line] = []
    for line in lines:
        is_large = line.size > usual * _LARGER and len(line.text.split()) <= _HEADING_WORDS
        if not is_large or not any(map(str.isalpha, line.text)):
            body.append(line)
        elif heading is not None and not body and heading.size == line.size:
            # The heading goes on in the next line.
            heading = heading._replace(text=one_line(f"{heading.text} {line.text}"))
        else:
            yield heading, _section_text(heading, body)
            heading = line
            body = []

    yield heading, _section_text(heading, body)


def _section_text(heading: _Line | None, lines: Sequence[_Line]) -> str:
    """Paragraphs below their heading; "" where there are none."""
    if not lines:
        return ""

    gaps = [above.bottom - below.bottom for above, below in pairwise(lines)]
    usual = median([gap for gap in gaps if gap > 0] or [0.0])
    written = [f"# {heading.text}\n\n{lines[0].text}" if heading is not None else lines[0].text]

    for gap, (above, line) in zip(gaps, pairwise(lines), strict=True):
        if gap >= 0:
            is_new = gap > usual * _WIDER
        else:
            is_new = above.text.endswith((".", "?", "!", ":"))

        is_same_size = 1 / _LARGER <= line.size / (above.size or 1.0) <= _LARGER
        is_new = is_new or line.text.startswith("•") or not is_same_size
        written.append(("\n\n" if is_new else "\n") + line.text)

    return "".join(written)


def draw_page(content: bytes, number: int, text: str) -> bytes:
    """A page as PNG, about 1,400 points high at most; lines of the text that stand on it have a
    yellow ground.
    """
    import pypdfium2
    from PIL import Image, ImageChops, ImageDraw

    page = pypdfium2.PdfDocument(content)[number - 1]
    scale = min(2.0, _PICTURE_POINTS / max(page.get_size()))
    picture = page.render(scale=scale).to_pil().convert("RGB")
    ground = Image.new("RGB", picture.size, "white")
    draw = ImageDraw.Draw(ground)

    for box in _boxes(page, text, picture.size):
        draw.rectangle(box, fill=_MARK)

    written = BytesIO()
    ImageChops.multiply(picture, ground).save(
        written,
        "PNG",
        optimize=True,
    )
    return written.getvalue()


def _boxes(
    page: PdfPage,
    text: str,
    size: tuple[int, int],
) -> Iterator[tuple[int, int, int, int]]:
    """Where the lines of a text stand on a page, in pixels of a picture of this size."""
    from ctypes import byref, c_int

    from pypdfium2.raw import FPDF_PageToDevice

    words = page.get_textpage()

    for line in (line.lstrip("# ").strip() for line in text.splitlines()):
        if line:
            hit = words.search(line[:_SOUGHT_CHARS]).get_next()
        else:
            hit = None

        for rect in range(words.count_rects(*hit) if hit else 0):
            x_left, y_bottom, x_right, y_top = words.get_rect(rect)
            corners = []
            for across, up in ((x_left, y_top), (x_right, y_bottom)):
                pixel_x = c_int()
                pixel_y = c_int()
                FPDF_PageToDevice(
                    page.raw,
                    0,
                    0,
                    *size,
                    0,
                    across,
                    up,
                    byref(pixel_x),
                    byref(pixel_y),
                )
                corners.append((pixel_x.value, pixel_y.value))

            (x1, y1), (x2, y2) = corners
            yield min(x1, x2) - 2, min(y1, y2) - 2, max(x1, x2) + 2, max(y1, y2) + 2
