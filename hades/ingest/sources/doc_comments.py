"""Comments of brace languages: blocks on lines of their own, and the one that stands right before a symbol."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hades.ingest.sources.code_facts import CharOffsets, Enclosing, SectionFact, SymbolFact, headings, is_worth_reading

_BETWEEN = (b"@", b"#[", b"template")  # what may stand between a doc comment and what it documents
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

    def documentation(self, comment: Comment, module: str, symbol: SymbolFact) -> Iterator[SectionFact]:
        """The region of a doc comment; the first symbol of a line takes it."""
        if comment.start not in self._documenting:
            self._documenting.add(comment.start)
            yield self._section(comment, "docstring", module, symbol)

    def remarks(self, module: str, symbols: list[SymbolFact]) -> Iterator[SectionFact]:
        """Regions of the comments that document no symbol but say something."""
        enclosing = Enclosing(symbols)
        for block in self._blocks:
            lines = block.last_row - block.first_row + 1
            if block.start not in self._documenting and is_worth_reading(
                self._text_of(block), lines, at_top=block.first_row < 3
            ):
                yield self._section(block, "comment", module, enclosing.at(self._chars[block.start]))

    def _text_of(self, comment: Comment) -> str:
        return self._text[self._chars[comment.start] : self._chars[comment.end]]

    def _section(self, comment: Comment, kind: str, module: str, symbol: SymbolFact | None) -> SectionFact:
        """The span without the marks of a block comment; those of line comments stand between the words."""
        start, end = self._chars[comment.start], self._chars[comment.end]
        if self._text.startswith("/*", start) and self._text.endswith("*/", start, end):
            inner = self._text[start:end].lstrip("/*! \t\r\n")
            start, end = end - len(inner), end - len("*/")
        qualified = symbol.qualified_name if symbol else None
        return SectionFact(start, max(start, end), kind, headings(module, qualified), qualified)
