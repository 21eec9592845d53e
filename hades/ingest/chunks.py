"""Phase chunks: prose cut at sentence ends into pieces a model reads whole, code by its units; each an exact span."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any

from hades.errors import HadesError
from hades.ingest.source_document import Section
from hades.ports.text import Tokenizer
from hades.text.identifiers import identifier_words
from schemas.chunks import CODE_KINDS, ChunkKind
from schemas.ids import content_key, node_id, sha256_text

CHUNKER_VERSION = 2  # raise it with any change of the cut: documents are then chunked again
MAX_TOKENS = 240  # MiniLM reads 256 with its marks; the rest is for title and headings
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s)|\n\s*\n")
_LINE_END = re.compile(r"\r\n?|\n")
_WHITE_SPACE = re.compile(r"\s")

Row = dict[str, Any]


class SpanError(HadesError):
    """A chunk whose span does not reproduce its text. Nothing of the run is written: citations would lie."""


@dataclass(frozen=True)
class ChunkedText:
    """What the chunker needs of a document."""

    key: str
    title: str
    text: str
    sections: Sequence[Section]
    created: datetime | None = None
    path: str = ""


def chunk_rows(documents: Sequence[ChunkedText], tokenizer: Tokenizer, max_tokens: int = MAX_TOKENS) -> list[Row]:
    """Chunks of all the documents, in order; blank sections give none."""
    pieces = [
        (document, section, start, end)
        for document in documents
        for section in document.sections
        for start, end in [_bounds(document.text, section)]
        if start < end
    ]
    counts = tokenizer.count_many([document.text[start:end] for document, _, start, end in pieces])
    rows: list[Row] = []
    position: Counter[str] = Counter()
    twins: Counter[tuple[str, str]] = Counter()
    lines = LineNumbers()
    for (document, section, start, end), tokens in zip(pieces, counts, strict=True):
        is_whole = tokens <= max_tokens or section.kind in CODE_KINDS
        for begin, stop, count in (
            [(start, end, tokens)] if is_whole else _cut(document.text, start, end, tokenizer, max_tokens)
        ):
            text = document.text[begin:stop]
            index, position[document.key] = position[document.key], position[document.key] + 1
            twin = twins[document.key, text]
            twins[document.key, text] += 1
            row = _row(document, section, begin, stop, text, count, index, twin)
            if document.path:
                row["start_line"], row["end_line"] = lines.of(document, begin), lines.of(document, stop - 1)
            rows.append(row)
    return rows


def cut_sections(
    document: ChunkedText, tokenizer: Tokenizer, max_tokens: int = MAX_TOKENS
) -> Iterator[tuple[Section, int, int]]:
    """Section, start and end of each chunk of a document, as `chunk_rows` cuts it; tokens of code are not counted."""
    for section in document.sections:
        start, end = _bounds(document.text, section)
        if start >= end:
            continue
        text = document.text[start:end]
        if section.kind in CODE_KINDS or tokenizer.count_many([text])[0] <= max_tokens:
            yield section, start, end
        else:
            for begin, stop, _ in _cut(document.text, start, end, tokenizer, max_tokens):
                yield section, begin, stop


def embedding_text(title: str, headings: Sequence[str], text: str) -> str:
    """What is embedded: the text under its title and headings, unless it begins with them already."""
    above = [line for line in dict.fromkeys([title, *headings]) if line and not text.startswith(line)]
    return "\n".join([*above, text])


def check_span(document: str, text: str, start: int, end: int, expected: str) -> None:
    """Stop when a span does not reproduce its text: a citation must be exact."""
    if text[start:end] != expected:
        raise SpanError(
            f"span [{start}, {end}) of {document} gives {text[start:end][:40]!r}, expected {expected[:40]!r}; "
            "the document and its chunks disagree: ingest it again"
        )


def _row(
    document: ChunkedText, section: Section, start: int, end: int, text: str, tokens: int, index: int, twin: int
) -> Row:
    check_span(document.key, document.text, start, end, text)
    title = _title(document, section)
    return {
        "_key": content_key("c", document.key, text, *([str(twin)] if twin else [])),
        "document": node_id("documents", document.key),
        "text": text,
        "span": [start, end],
        "chunk_index": index,
        "kind": str(section.kind),
        "headings": list(section.headings),
        "title": title,
        "token_count": tokens,
        "file_path": document.path,
        "symbol": section.symbol or "",
        "signature": section.signature,
        "words": _search_words(title, section, text) if document.path or section.kind is ChunkKind.COMMIT else "",
        "start_line": 0,
        "end_line": 0,
        "timestamp": document.created,
        "sha256": sha256_text(embedding_text(title, section.headings, text)),
        "metadata": "{}",
    }


def _title(document: ChunkedText, section: Section) -> str:
    """The path of code, the subject of a commit, else the title of the document."""
    if section.kind is ChunkKind.COMMIT:
        return section.headings[0]
    return document.path if section.kind in CODE_KINDS and document.path else document.title


def _search_words(title: str, section: Section, text: str) -> str:
    """What a unit is found by beside its text: parts of its identifiers, and the header that a later part repeats."""
    header = " ".join(section.headings[1:]) if section.kind in CODE_KINDS else ""
    return " ".join(filter(None, [header, *identifier_words(f"{title} {section.symbol or ''} {header} {text}")]))


class LineNumbers:
    """Lines of positions, counted from 1; the line starts of one document are held."""

    def __init__(self) -> None:
        self._key = ""
        self._starts: list[int] = []

    def of(self, document: ChunkedText, position: int) -> int:
        """The line that holds a character."""
        if self._key != document.key:
            self._key = document.key
            self._starts = _line_starts(document.text)
        return bisect_right(self._starts, position)


def _line_starts(text: str) -> list[int]:
    if "\r" in text:
        return [0, *(found.end() for found in _LINE_END.finditer(text))]
    return list(accumulate([len(line) + 1 for line in text.split("\n")[:-1]], initial=0))


def _bounds(text: str, section: Section) -> tuple[int, int]:
    """A section without white space at its ends; code keeps the indentation of its first line."""
    start, end = _trim(text, section.start, section.end)
    return (section.start, end) if section.kind in CODE_KINDS and start < end else (start, end)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without white space at its ends."""
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    return start + left, start + len(piece.rstrip())


def _cut(text: str, start: int, end: int, tokenizer: Tokenizer, max_tokens: int) -> list[tuple[int, int, int]]:
    """Pieces of at most `max_tokens`, cut at the last sentence end that fits, else at white space, else at a token."""
    piece = text[start:end]
    ends, tokens = tokenizer.word_ends(piece)
    sentence_ends = [match.end() for match in _SENTENCE_END.finditer(piece)]
    cuts: list[tuple[int, int, int]] = []
    begin, first, used = 0, 0, 0  # character, word, tokens before this piece
    while first < len(ends):
        fitting = max(bisect_right(tokens, used + max_tokens), first + 1)
        stop = len(piece) if fitting == len(ends) else _break_at(piece, sentence_ends, begin, ends[fitting - 1])
        last = max(bisect_right(ends, stop), first + 1)
        left, right = _trim(piece, begin, stop)
        if left < right:
            cuts.append((start + left, start + right, tokens[last - 1] - used))
        begin, first, used = stop, last, tokens[last - 1]
    return cuts


def _break_at(piece: str, sentence_ends: list[int], begin: int, limit: int) -> int:
    """The best place to break at or before `limit`; never before half of the room is used."""
    half = begin + (limit - begin) // 2
    position = bisect_right(sentence_ends, limit) - 1
    if position >= 0 and sentence_ends[position] > half:
        return sentence_ends[position]
    for place in range(limit, half, -1):
        if _WHITE_SPACE.match(piece, place - 1):
            return place
    return limit
