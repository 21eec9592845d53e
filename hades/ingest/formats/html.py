"""HTML as plain text with headings, in time linear in its size.

The standard library's parser is not used: on broken input its time grows with the square of the size (200 kB of `<!--`
take a minute on Python 3.11). Only tag names matter here, so a scan with `str.find` is enough, and it has no nesting to
overflow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from hades.ingest.formats.markup import MAX_HEADINGS, Heading, Outline, outline

_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9:-]{0,30})")
_OPENING = re.compile(r"<(?=[a-zA-Z!?/])")  # any other is a character of the text
_TAG_PUNCTUATION = re.compile(r"[>\"']")
_SPACE = re.compile(r"[ \t\r\n\f\v\xa0]+")
_LONG_REFERENCE = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{7,});?")  # beyond Unicode; int() refuses very long ones
_RAW = frozenset({"script", "style", "noscript", "template", "svg", "math", "iframe", "object", "textarea"})
_BLOCK_NAMES = (
    "address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol option p pre section summary table tbody "
    "tfoot thead title tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_BULLET = "- "
_CELLS = frozenset({"td", "th"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


def html_to_text(markup: str) -> tuple[str, Outline]:
    """The visible text, one block a line, and its outline; the title is the page's own or its first heading."""
    writer = _Writer()
    for tag, closing, content in _tokens(markup):
        if tag:
            writer.tag(tag, closing)
        else:
            writer.write(content)
    writer.tag("p", closing=True)
    text = "".join(writer.parts).rstrip()
    return text, outline(text, writer.headings, 0, _SPACE.sub(" ", writer.title).strip()[:300])


class _Writer:
    """Collects text; knows whether it is inside a title, a heading or preformatted lines."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.headings: list[Heading] = []
        self.title = ""
        self._length = 0
        self._newlines = 0  # how many the text so far ends with
        self._line_is_empty = True
        self._pending_space = False
        self._in_title = False
        self._preformatted = False
        self._heading: tuple[int, int, int] | None = None  # level, start, index of its first part

    def write(self, content: str) -> None:
        """Text between tags."""
        text = unescape(_LONG_REFERENCE.sub("\ufffd", content)).replace("\0", "\ufffd")
        if self._in_title:
            self.title += text[: 1000 - len(self.title)] if len(self.title) < 1000 else ""
            return
        if self._preformatted:
            self._append(text.replace("\r", ""))
            return
        folded = _SPACE.sub(" ", text)
        if folded.startswith(" ") and not self._line_is_empty:
            self._pending_space = True
        words = folded.strip(" ")
        if words:
            self._append(" " + words if self._pending_space else words)
            self._pending_space = folded.endswith(" ")

    def tag(self, tag: str, closing: bool) -> None:
        """The effect of a tag on the layout."""
        if tag in _CELLS:
            self._pending_space = not self._line_is_empty
        if tag not in _BLOCKS:
            return
        if tag == "title":
            self._in_title = not closing and not self.title
            return
        if closing or tag in _HEADINGS:
            self._end_heading()
        self._break_line(2 if tag in _HEADINGS or tag in ("p", "table", "pre", "blockquote") else 1)
        if tag == "pre":
            self._preformatted = not closing
        if tag in _HEADINGS and not closing:
            self._heading = (_HEADINGS[tag], self._length, len(self.parts))
        if tag == "li" and not closing:
            self._append(_BULLET)
            self._line_is_empty = True

    def _end_heading(self) -> None:
        if self._heading is not None:
            level, start, first = self._heading
            title = " ".join("".join(self.parts[first:]).split())[:200]
            if title and len(self.headings) < MAX_HEADINGS:
                self.headings.append(Heading(level, title, start))
        self._heading = None

    def _break_line(self, newlines: int) -> None:
        self._pending_space = False
        if self.parts and self.parts[-1] != _BULLET and self._newlines < newlines:
            self._append("\n" * (newlines - self._newlines))
        self._line_is_empty = True

    def _append(self, text: str) -> None:
        if text:
            trailing = len(text) - len(text.rstrip("\n"))
            self._newlines = trailing if trailing < len(text) else self._newlines + trailing
            self._line_is_empty = trailing > 0
            self.parts.append(text)
            self._length += len(text)


def _tokens(markup: str) -> Iterator[tuple[str, bool, str]]:
    """Tags as (name, closing, "") and text as ("", False, text); comments and raw elements are dropped."""
    seek = _Seeker(markup)
    position = 0
    while position < len(markup):
        candidate = _OPENING.search(markup, position)
        opening = candidate.start() if candidate else len(markup)
        if opening > position:
            yield "", False, markup[position:opening]
        if opening >= len(markup):
            return
        if markup.startswith("<!--", opening):
            position = seek.after("-->", opening + 4)
            continue
        found = _TAG.match(markup, opening)
        if not found:
            position = seek.after(">", opening + 1)
            continue
        name, closing = found.group(1).lower(), markup[opening + 1] == "/"
        position = seek.end_of_tag(found.end())
        if name in _RAW and not closing and markup[position - 2 : position] != "/>":
            position = seek.find(f"</{name}", position)
        yield name, closing, ""


class _Seeker:
    """`find` that never scans the same stretch in vain twice: a text once not found ahead is not sought again."""

    def __init__(self, markup: str) -> None:
        self._markup = markup
        self._lower = markup.lower() if len(markup.lower()) == len(markup) else markup
        self._absent: set[str] = set()

    def find(self, needle: str, position: int) -> int:
        """Where it stands next, or the end."""
        if needle not in self._absent:
            found = self._lower.find(needle, position)
            if found >= 0:
                return found
            self._absent.add(needle)
        return len(self._markup)

    def after(self, needle: str, position: int) -> int:
        """The position behind its next occurrence, or the end."""
        return min(self.find(needle, position) + len(needle), len(self._markup))

    def end_of_tag(self, position: int) -> int:
        """Behind the `>` that closes a tag; quoted attribute values may hold one too."""
        while True:
            found = _TAG_PUNCTUATION.search(self._markup, position)
            if found is None:
                return len(self._markup)
            if found.group() == ">":
                return found.end()
            ending = self.find(found.group(), found.end())
            if ending >= len(self._markup):
                return self.after(">", found.end())
            position = ending + 1
