"""What a code parser finds, in plain values that cross a process boundary; no schema is loaded to parse."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

HEAD_LINES = 12  # an undocumented function is known by its signature and first lines
PLAIN_CHARS = 100_000  # of a file that does not parse: enough to find it by, not thousands of pieces
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


class ImportFact(NamedTuple):
    """An import and, where it stands inside one, the function that makes it."""

    module: str
    name: str | None = None
    alias: str | None = None
    symbol: str | None = None


class SectionFact(NamedTuple):
    """A region worth embedding."""

    start: int
    end: int
    kind: str
    headings: tuple[str, ...] = ()
    symbol: str | None = None


class CodeFacts(NamedTuple):
    """One source file; `problem` says why it could not be parsed."""

    module: str
    symbols: tuple[SymbolFact, ...] = ()
    imports: tuple[ImportFact, ...] = ()
    sections: tuple[SectionFact, ...] = ()
    problem: str = ""


class CharOffsets:
    """Characters for UTF-8 byte offsets: parsers count bytes, spans count characters."""

    def __init__(self, data: bytes) -> None:
        self._continuations = [] if data.isascii() else [found.start() for found in _CONTINUATION.finditer(data)]

    def __getitem__(self, byte: int) -> int:
        return byte - bisect_left(self._continuations, byte) if self._continuations else byte


class Enclosing:
    """The innermost symbol around positions that are asked for in rising order."""

    def __init__(self, symbols: Iterable[SymbolFact]) -> None:
        self._ahead = sorted(symbols, key=lambda one: (-one.start, one.end))
        self._open: list[SymbolFact] = []

    def at(self, position: int) -> SymbolFact | None:
        """The symbol whose span holds this position."""
        while self._ahead and self._ahead[-1].start <= position:
            self._open.append(self._ahead.pop())
        while self._open and self._open[-1].end <= position:
            self._open.pop()
        return self._open[-1] if self._open else None


def headings(module: str, qualified_name: str | None) -> tuple[str, ...]:
    """What a region stands under: the module, and the symbol by its name within the module."""
    local = (qualified_name or "").removeprefix(module).lstrip(".")
    return tuple(filter(None, (module, local)))


def plain_facts(text: str, module: str, problem: str) -> CodeFacts:
    """A file that does not parse: its beginning as one region."""
    start, end = trimmed(text, 0, min(len(text), PLAIN_CHARS))
    sections = (SectionFact(start, end, "code", (module,)),) if start < end else ()
    return CodeFacts(module, sections=sections, problem=problem)


def code_heads(text: str, module: str, symbols: Sequence[SymbolFact]) -> Iterator[SectionFact]:
    """The first lines of each undocumented symbol of three lines or more, up to the first symbol inside it."""
    for symbol, following in zip_longest(symbols, symbols[1:]):
        if symbol.docstring:
            continue
        end = min(symbol.end, following.start) if following else symbol.end
        end = head_end(text, symbol.start, end)
        if text.count("\n", symbol.start, end) >= 2:
            around = headings(module, symbol.qualified_name)
            yield SectionFact(symbol.start, end, "code", around, symbol.qualified_name)


def settled(text: str, module: str, sections: Iterable[SectionFact]) -> tuple[SectionFact, ...]:
    """Regions in order, trimmed, without overlaps; a file with none is known by its first lines.

    Where two overlap, documentation cuts off code and comments inside code are part of it: no text is embedded twice.
    """
    rank = {"docstring": 0, "code": 1, "comment": 2}
    taken: list[SectionFact] = []
    for section in sections:
        start, end = trimmed(text, section.start, section.end)
        if start < end:
            taken.append(section._replace(start=start, end=end))
    taken.sort(key=lambda one: (one.start, rank[one.kind]))
    kept: list[SectionFact] = []
    for section in taken:
        if kept and section.start < kept[-1].end and rank[section.kind] < rank[kept[-1].kind]:
            last = kept.pop()
            start, end = trimmed(text, last.start, section.start)
            kept += [last._replace(start=start, end=end)] if start < end else []
        if not kept or section.start >= kept[-1].end:
            kept.append(section)
    if not kept:
        start, end = trimmed(text, 0, head_end(text, 0, len(text)))
        kept = [SectionFact(start, end, "code", (module,))] if start < end else []
    return tuple(kept)


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at its ends."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip()) if piece.strip() else start


def head_end(text: str, start: int, end: int) -> int:
    """Where the first lines of a span end."""
    position = start
    for _ in range(HEAD_LINES):
        newline = text.find("\n", position, end)
        if newline < 0:
            return end
        position = newline + 1
    return position


def one_line(text: str, limit: int = SIGNATURE_CHARS) -> str:
    """Text on one line, cut at the limit."""
    return " ".join(text[: 4 * limit].split())[:limit]


def is_worth_reading(comment: str, lines: int, at_top: bool) -> bool:
    """Whether a comment says something: two lines or forty characters, words rather than rules, no licence header."""
    letters = sum(map(str.isalpha, comment[:2000]))
    if letters < COMMENT_CHARS // 2 or (lines < 2 and len(comment) < COMMENT_CHARS):
        return False
    return not (at_top and _LICENCE.search(comment))
