"""Text of a PDF page by page, with pypdf; runs in a confined child and therefore loads no schema."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import NamedTuple

MAX_PAGES = 5_000
MAX_CHARS = 8 << 20
_MAX_STREAM_BYTES = 32 << 20  # of one inflated stream; pages of a dense map reach 10 MB

# What pypdf raises on damaged files beside its own errors: it follows offsets and types that the file only claims.
_DAMAGED = (ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, RecursionError, OverflowError)
_DAMAGED_TOO = (NotImplementedError, ZeroDivisionError, UnicodeError, zlib.error, struct.error, EOFError, OSError)


class PdfPages(NamedTuple):
    """Pages in order, an unreadable one empty; `problem` with its `reason` when the whole file is unusable."""

    pages: tuple[str, ...] = ()
    title: str = ""
    unreadable_pages: int = 0
    reason: str = ""
    problem: str = ""


def extract_pages(data: bytes) -> PdfPages:
    """The text layer; never raises on damaged input, names the problem instead."""
    import pypdf
    from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, PyPdfError

    damaged = (*_DAMAGED, *_DAMAGED_TOO, PyPdfError, DependencyError)
    limits = pypdf.Configuration(
        zlib_maximum_output_length=_MAX_STREAM_BYTES,
        lzw_maximum_output_length=_MAX_STREAM_BYTES,
        run_length_maximum_output_length=_MAX_STREAM_BYTES,
        array_based_stream_maximum_output_length=_MAX_STREAM_BYTES,
        zlib_maximum_recovery_input_length=1 << 20,
    )
    with pypdf.apply_configuration(limits):
        try:
            reader = pypdf.PdfReader(BytesIO(data))
            if reader.is_encrypted and not reader.decrypt(""):
                return PdfPages(reason="unreadable", problem="encrypted with a password")
            count = len(reader.pages)
            title = reader.metadata.title if reader.metadata else ""
        except LimitReachedError as error:
            return PdfPages(reason="oversized", problem=_said(error))
        except FileNotDecryptedError:
            return PdfPages(reason="unreadable", problem="encrypted with a password")
        except damaged as error:
            return PdfPages(reason="malformed", problem=_said(error))
        if count > MAX_PAGES:
            return PdfPages(reason="oversized", problem=f"{count} pages, the limit is {MAX_PAGES}")
        pages: list[str] = []
        unreadable = length = 0
        for index in range(count):
            try:
                page = _clean(reader.pages[index].extract_text())
            except LimitReachedError as error:
                return PdfPages(reason="oversized", problem=f"page {index + 1}: {_said(error)}")
            except damaged:
                page, unreadable = "", unreadable + 1
            length += len(page)
            if length > MAX_CHARS:
                return PdfPages(reason="oversized", problem=f"more than {MAX_CHARS} characters of text")
            pages.append(page)
    return PdfPages(tuple(pages), _clean(title)[:300] if isinstance(title, str) else "", unreadable)


def _clean(text: str) -> str:
    """Valid Unicode without NUL: pairs of surrogates are joined, lone ones replaced."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "").strip()


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
