"""What a code parser finds, in plain values that cross a process boundary; no schema is loaded to parse."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

COMMENT_CHARS = 40
SIGNATURE_CHARS = 400

_LICENCE = re.compile(r"copyright|licen[sc]ed?\b|spdx-|all rights reserved", re.IGNORECASE)
_CONTINUATION = re.compile(rb"[\x80-\xbf]")


class SymbolFact(NamedTuple):
    """A function, method or class."""

    name: str
    qualified_name: str
    kind: str
    start: int
    end: int
    signature: str = ""
    docstring: str = ""
    calls: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    call_spans: tuple[tuple[int, int], ...] = ()  # where each of `calls` stands first


class ImportFact(NamedTuple):
    """An import and, where it stands inside one, the function that makes it."""

    module: str
    name: str | None = None
    alias: str | None = None
    symbol: str | None = None
    span: tuple[int, int] = (0, 0)


class SectionFact(NamedTuple):
    """A unit that is retrieved on its own; `symbol` is its qualified name inside the file, None at module level."""

    start: int
    end: int
    kind: str
    headings: tuple[str, ...] = ()
    symbol: str | None = None
    signature: str = ""


class CodeFacts(NamedTuple):
    """One source file. `prose` are the spans of docstrings and comments; `problem` says why it was not parsed."""

    module: str
    symbols: tuple[SymbolFact, ...] = ()
    imports: tuple[ImportFact, ...] = ()
    sections: tuple[SectionFact, ...] = ()
    prose: tuple[tuple[int, int], ...] = ()
    problem: str = ""


class CharOffsets:
    """Characters for UTF-8 byte offsets: parsers count bytes, spans count characters."""

    def __init__(self, data: bytes) -> None:
        self._continuations = [] if data.isascii() else [found.start() for found in _CONTINUATION.finditer(data)]

    def __getitem__(self, byte: int) -> int:
        return byte - bisect_left(self._continuations, byte) if self._continuations else byte


def prose_spans(text: str, spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans in order, trimmed, none twice; of two that overlap the one that begins first stays."""
    kept: list[tuple[int, int]] = []
    for start, end in sorted({trim(text, start, end) for start, end in spans}):
        if start < end and (not kept or start >= kept[-1][1]):
            kept.append((start, end))
    return tuple(kept)


def unique_imports(facts: Iterable[ImportFact]) -> tuple[ImportFact, ...]:
    """Each import once, at its first place."""
    found: dict[ImportFact, ImportFact] = {}
    for fact in facts:
        found.setdefault(fact._replace(span=(0, 0)), fact)
    return tuple(found.values())


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at its ends."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()) if piece.strip() else start


def one_line(text: str, limit: int = SIGNATURE_CHARS) -> str:
    """Text on one line, cut at the limit."""
    return " ".join(text[: 4 * limit].split())[:limit]


def is_worth_reading(comment: str, lines: int, at_top: bool) -> bool:
    """Whether a comment says something: two lines or forty characters, words rather than rules, no licence header."""
    letters = sum(map(str.isalpha, comment[:2000]))
    if letters < COMMENT_CHARS // 2 or (lines < 2 and len(comment) < COMMENT_CHARS):
        return False
    return not (at_top and _LICENCE.search(comment))
