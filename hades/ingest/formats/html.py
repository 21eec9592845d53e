"""HTML as Markdown with its headings, lists, tables and code, parsed by lexbor; no recursion that
could overflow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hades.ingest.formats.markup import MAX_HEADINGS, Heading, Outline, outline
from hades.ingest.formats.registry import ExtractedDocument, PartList, write_table

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_SPACE = re.compile(r"[ \t\r\n\f\v\xa0]+")
_HIDDEN_NAMES = "head -comment script style noscript template svg math iframe object textarea"
_HIDDEN = frozenset(_HIDDEN_NAMES.split())
_BLOCK_NAMES = (
    "address article aside blockquote body br caption center dd details dialog div dl dt fieldset "
    "figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol option p pre section "
    "summary table tbody "
    "tfoot thead tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_BULLET = "- "
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LAYOUT = "table, h1, h2, h3, h4, h5, h6, pre, ul, ol, p + p"


def read_page(markup: str) -> list[ExtractedDocument]:
    """The visible text under its headings."""
    text, outlined = html_to_text(markup)
    parts = PartList()
    parts.add_regions(text, outlined.regions)
    return [parts.document(outlined.title)]


def html_to_text(markup: str) -> tuple[str, Outline]:
    """The visible text, one block a line, and its outline; the title is the page's own or its first
    heading.
    """
    from selectolax.lexbor import LexborHTMLParser

    writer = _Writer()
    tree = LexborHTMLParser(markup.replace("\0", "\ufffd"))
    title = tree.css_first("title")
    inside: int | None = None  # of the table that was written

    if tree.root is not None:
        for node, is_end in _walk(tree.root):
            if inside is not None:
                inside = None if is_end and node.mem_id == inside else inside
            elif not is_end and _is_data_table(node):
                writer.break_line(2)
                writer.append(write_table([_cell_texts(row) for row in node.css("tr")]) + "\n\n")
                inside = node.mem_id
            elif node.tag == "-text":
                writer.write(node.text_content or "" if not is_end else "")
            else:
                writer.tag(node.tag or "", is_end)

    text = "".join(writer.parts).rstrip()
    if title is not None:
        page_title = _SPACE.sub(" ", title.text()).strip()[:300]
    else:
        page_title = ""

    return text, outline(text, writer.headings, 0, page_title)


def _is_data_table(node: LexborNode) -> bool:
    """Whether a node is a table of values; one with blocks in its cells arranges the page."""
    return node.tag == "table" and not any(cell.css_first(_LAYOUT) for cell in node.css("td"))


def _cell_texts(row: LexborNode) -> list[str]:
    return [cell.text() for cell in row.css("th, td")]


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Every visible node in the order of the page, once at its beginning and once at its end."""
    node = root
    is_end = False

    while True:
        is_hidden = node.tag in _HIDDEN
        if not is_hidden:
            yield node, is_end

        if not is_end and not is_hidden and node.first_child is not None:
            node = node.first_child
        elif not is_end:
            is_end = True
        elif node.mem_id == root.mem_id:
            return
        elif node.next is not None:
            node = node.next
            is_end = False
        else:
            assert node.parent is not None
            node = node.parent


class _Writer:
    """Collects text; knows whether it is inside a heading or preformatted lines."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.headings: list[Heading] = []
        self._length = 0
        self._newlines = 0  # how many the text so far ends with
        self._line_is_empty = True
        self._pending_space = False
        self._preformatted = 0
        self._mark = ""  # of a heading or of code, written with its first words
        self._heading: tuple[int, int, int] | None = None  # level, start, index of its first part

    def write(self, text: str) -> None:
        """Text between tags."""
        if self._preformatted:
            self.append(text.replace("\r", "") if text.strip() or not self._mark else "")
            return

        folded = _SPACE.sub(" ", text)
        if folded.startswith(" ") and not self._line_is_empty:
            self._pending_space = True

        words = folded.strip(" ")
        if words:
            self.append(" " + words if self._pending_space else words)
            self._pending_space = folded.endswith(" ")

    def tag(self, tag: str, is_end: bool) -> None:
        """The effect of a tag on the layout."""
        if tag in ("td", "th"):
            self._pending_space = not self._line_is_empty
        if tag not in _BLOCKS or (tag in ("br", "hr") and is_end):
            return
        if is_end or tag in _HEADINGS:
            self._end_heading()

        if tag == "pre" and is_end:
            self._preformatted -= 1
            if not self._preformatted and not self._mark:
                self.break_line(1)
                self.append("```")

            self._mark = ""

        self.break_line(2 if tag in _HEADINGS or tag in ("p", "table", "pre", "blockquote") else 1)
        if tag == "pre" and not is_end:
            self._preformatted += 1
            self._mark = "```\n" if self._preformatted == 1 else self._mark

        if tag in _HEADINGS and not is_end:
            self._heading = (_HEADINGS[tag], self._length, len(self.parts))
            self._mark = "#" * _HEADINGS[tag] + " "

        if tag == "li" and not is_end:
            self.append(_BULLET)
            self._line_is_empty = True

    def _end_heading(self) -> None:
        if self._heading is not None:
            level, start, first = self._heading
            title = " ".join("".join(self.parts[first:])[level:].split())[:200]
            if title and len(self.headings) < MAX_HEADINGS:
                self.headings.append(Heading(level, title, start))

            self._mark = ""

        self._heading = None

    def break_line(self, newlines: int) -> None:
        """End the line, so that the text ends with at least this number of newlines."""
        self._pending_space = False
        if (
            self.parts
            and not self._mark
            and self.parts[-1] != _BULLET
            and self._newlines < newlines
        ):
            self.append("\n" * (newlines - self._newlines))

        self._line_is_empty = True

    def append(self, text: str) -> None:
        """Text as it stands."""
        if text:
            text, self._mark = self._mark + text, ""
            trailing = len(text) - len(text.rstrip("\n"))
            self._newlines = trailing if trailing < len(text) else self._newlines + trailing
            self._line_is_empty = trailing > 0
            self.parts.append(text)
            self._length += len(text)
