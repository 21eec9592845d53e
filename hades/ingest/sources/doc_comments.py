"""Comments of brace languages: blocks on lines of their own, and the one that stands right before a symbol."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hades.ingest.sources.code_facts import CharOffsets, is_worth_reading
from hades.ingest.sources.code_units import Lines

_BETWEEN = (b"@", b"#[", b"template")  # what may stand between a doc comment and what it documents
_BETWEEN_TEXT = tuple(mark.decode() for mark in _BETWEEN)
_MARKS = re.compile(r"^[ \t]*(?:/\*+!?|\*+/|\*|///?!?|#+)?[ \t]?|\*+/$", re.MULTILINE)


@dataclass
class Comment:
    """Comments on adjoining lines, with nothing else on them; offsets in bytes."""

    start: int
    end: int
    first_row: int
    last_row: int


class CommentBlocks:
    """Comments in the order of the text, joined into blocks as they come."""

    def __init__(self, text: str, data: bytes, chars: CharOffsets) -> None:
        self._text, self._data, self._chars = text, data, chars
        self._lines = data.split(b"\n")
        self._blocks: list[Comment] = []
        self._documenting: set[int] = set()

    def add(self, start: int, end: int, row: int) -> None:
        """One comment; behind code on the same line it is a remark on that line and is left out."""
        if self._data[self._data.rfind(b"\n", 0, start) + 1 : start].strip():
            return
        content = self._data[start:end].rstrip()
        last_row = row + content.count(b"\n")
        last = self._blocks[-1] if self._blocks else None
        continues = last is not None and last.last_row == row - 1 and not content.startswith(b"/*")
        if last is not None and continues and self._data[last.start : last.start + 2] == content[:2]:
            last.end, last.last_row = start + len(content), last_row
        else:
            self._blocks.append(Comment(start, start + len(content), row, last_row))

    def by_last_row(self) -> dict[int, Comment]:
        """Blocks by the line they end on."""
        return {block.last_row: block for block in self._blocks}

    def before(self, row: int, by_last_row: dict[int, Comment]) -> Comment | None:
        """The block that documents what begins on this line: right above it, attributes between allowed."""
        while row > 0 and self._lines[row - 1].lstrip().startswith(_BETWEEN):
            row -= 1
        return by_last_row.get(row - 1)

    def plain(self, comment: Comment | None) -> str:
        """A comment's words without its marks."""
        return _MARKS.sub("", self._text_of(comment)).strip() if comment else ""

    def document(self, comment: Comment) -> None:
        """Mark a comment as the documentation of a symbol."""
        self._documenting.add(comment.start)

    def prose(self) -> Iterator[tuple[int, int]]:
        """Spans of the comments that document a symbol or say something, without the marks of block comments."""
        for block in self._blocks:
            lines = block.last_row - block.first_row + 1
            if block.start in self._documenting or is_worth_reading(
                self._text_of(block), lines, at_top=block.first_row < 3
            ):
                yield self._inner_span(block)

    def lead_lines(self, lines: Lines) -> set[int]:
        """Lines that hold only a comment, or begin with what may stand between a comment and a definition."""
        found = {row for row in range(len(lines)) if lines.text(row).lstrip().startswith(_BETWEEN_TEXT)}
        for block in self._blocks:
            first, last = lines.at(self._chars[block.start]), lines.at(self._chars[block.end] - 1)
            found.update(range(first, last + 1))
        return found

    def _text_of(self, comment: Comment) -> str:
        return self._text[self._chars[comment.start] : self._chars[comment.end]]

    def _inner_span(self, comment: Comment) -> tuple[int, int]:
        start, end = self._chars[comment.start], self._chars[comment.end]
        if self._text.startswith("/*", start) and self._text.endswith("*/", start, end):
            inner = self._text[start:end].lstrip("/*! \t\r\n")
            start, end = end - len(inner), end - len("*/")
        return start, max(start, end)
