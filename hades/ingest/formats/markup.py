"""Where the sections of Markdown and reStructuredText begin and end; the text itself stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

_LINE = re.compile(r"[^\n]*\n?")
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_NOT_PARAGRAPH = re.compile(r" {0,3}(?:[-*+>|]|\d+[.)][ \t])|[ \t]*$| {4}|\t")
_INLINE = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)|[`*]|<[^<>\n]*>")
_FRONT_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE)
_ADORNMENT = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}[ \t]*$")
MAX_HEADINGS = 10_000  # a text with more is data; the rest of it is one section
_FRONT_LINES = 200
_HEADING_CHARS = 200


@dataclass(frozen=True)
class Heading:
    """A heading line and where its section begins."""

    level: int
    title: str
    start: int


@dataclass(frozen=True)
class Region:
    """A section's span, from its heading on, under the path of headings that leads to it."""

    start: int
    end: int
    headings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outline:
    """A document's title, empty where it states none, and its sections in order."""

    title: str
    regions: tuple[Region, ...]


def outline_markdown(text: str) -> Outline:
    """Sections by ATX and Setext headings; fenced code and front matter hold none."""
    body, front_title = _after_front_matter(text)
    found = list(islice(_markdown_headings(text, body), MAX_HEADINGS))
    return outline(text, found, body, front_title)


def outline_rst(text: str) -> Outline:
    """Sections by underlined titles, levels in the order in which the adornments first appear."""
    return outline(text, list(islice(_rst_headings(text), MAX_HEADINGS)))


def outline(text: str, found: list[Heading], begin: int = 0, title: str = "") -> Outline:
    """Regions from headings: each runs to the next heading; one with nothing but its heading is left out."""
    path: list[Heading] = []
    regions: list[Region] = []
    starts = [*(heading.start for heading in found), len(text)]
    _add_region(regions, text, begin, starts[0], ())
    for heading, end in zip(found, starts[1:], strict=True):
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
        titles = tuple(one.title for one in path if one.title)
        _add_region(regions, text, heading.start, end, titles, heading.title)
    if not regions:
        _add_region(regions, text, 0, len(text), ())
    title = title or next((heading.title for heading in found if heading.title), "")
    return Outline(title, tuple(regions))


def _add_region(
    regions: list[Region], text: str, start: int, end: int, headings: tuple[str, ...], own: str | None = None
) -> None:
    piece = text[start:end]
    if not piece.strip() or (own is not None and not _has_body(piece)):
        return
    start += len(piece) - len(piece.lstrip())
    regions.append(Region(start, start + len(piece.strip()), headings))


def _has_body(section: str) -> bool:
    """Whether anything follows the heading: letters or digits on a line beyond it."""
    return any(character.isalnum() for character in section.strip().partition("\n")[2])


def _after_front_matter(text: str) -> tuple[int, str]:
    """Where the body begins behind a `---` block of metadata, and the title stated there."""
    if not text.startswith("---") or text[3:4] not in ("\n", "\r"):
        return 0, ""
    position = text.find("\n") + 1
    for _ in range(_FRONT_LINES):
        end = text.find("\n", position)
        line = text[position : end if end >= 0 else len(text)].strip()
        if line in ("---", "..."):
            title = _FRONT_TITLE.search(text, 0, position)
            return (end + 1 if end >= 0 else len(text)), _plain(title.group(1).strip().strip("\"'")) if title else ""
        if end < 0:
            break
        position = end + 1
    return 0, ""


def _markdown_headings(text: str, begin: int) -> Iterator[Heading]:
    fence = ""
    previous, previous_start = "", begin
    for found in _LINE.finditer(text, begin):
        line, start = found.group().rstrip("\r\n"), found.start()
        opened = _FENCE.match(line)
        if fence:
            if opened and opened.group(1).startswith(fence) and not opened.group(2).strip():
                fence = ""
            previous = ""
            continue
        if opened and not (opened.group(1)[0] == "`" and "`" in opened.group(2)):
            fence, previous = opened.group(1), ""
            continue
        atx = _ATX.match(line)
        underline = _SETEXT.match(line)
        if atx:
            yield Heading(len(atx.group(1)), _plain(_without_closing_marks(line[atx.end() :])), start)
            previous = ""
        elif underline and previous:
            yield Heading(1 if underline.group(1)[0] == "=" else 2, _plain(previous), previous_start)
            previous = ""
        else:
            previous = "" if _NOT_PARAGRAPH.match(line) else line
            previous_start = start


def _rst_headings(text: str) -> Iterator[Heading]:
    levels: dict[tuple[str, bool], int] = {}
    two_back = one_back = ""
    two_start = one_start = 0
    for found in _LINE.finditer(text):
        line = found.group().rstrip()
        adornment = _ADORNMENT.match(line)
        if adornment and one_back.strip() and len(line) >= len(one_back.rstrip()) and not _ADORNMENT.match(one_back):
            overlined = two_back == line
            if overlined or not one_back.startswith((" ", "\t")):
                level = levels.setdefault((adornment.group(1), overlined), len(levels) + 1)
                yield Heading(level, _plain(one_back), two_start if overlined else one_start)
                line = ""
        two_back, two_start = one_back, one_start
        one_back, one_start = line, found.start()


def _without_closing_marks(title: str) -> str:
    """`Title ##` -> `Title`, but `C#` stays."""
    bare = title.strip().rstrip("#")
    return title.strip() if bare and not bare.endswith((" ", "\t")) else bare.strip()


def _plain(title: str) -> str:
    """A heading without links, emphasis and tags, on one line; cut first, so that odd input stays cheap."""
    return " ".join(_INLINE.sub(r"\1", title[: 5 * _HEADING_CHARS]).split())[:_HEADING_CHARS]
