"""Markdown and MDX: where sections begin and end, and what the JavaScript around Markdown says to a
reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hades.ingest.parsers.facts import Section

_LINE = re.compile(r"[^\n]*\n?")
ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_NOT_PARAGRAPH = re.compile(r" {0,3}(?:[-*+>|]|\d+[.)][ \t])|[ \t]*$| {4}|\t")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
# Code, an escape, emphasis, a tag.
_INLINE = re.compile(r"(`+)(.+?)\1(?!`)|\\([!-/:-@\[-`{-~])|[`*]|<[^<>\n]*>")
FRONT_MATTER = re.compile(
    r"---[ \t]*\r?\n(.{0,65536}?)^(?:---|\.\.\.)[ \t]*\r?$",
    re.DOTALL | re.MULTILINE,
)
_FRONT_TITLE = re.compile(r"^title:(.*)$", re.MULTILINE)
MAX_HEADINGS = 10_000  # a text with more is data; the rest of it is one section
_HEADING_CHARS = 200


@dataclass(frozen=True)
class Heading:
    """A heading line and where its section begins."""

    level: int
    title: str
    start: int


@dataclass(frozen=True)
class Outline:
    """A document's title, empty where it states none, and its sections in order."""

    title: str
    regions: tuple[Section, ...]


def outline_markdown(text: str) -> Outline:
    """Sections by ATX and Setext headings; fenced code and front matter hold none."""
    front = FRONT_MATTER.match(text)
    body, stated = (front.end(), _FRONT_TITLE.search(front[1])) if front else (0, None)
    headings = list(islice(markdown_headings(text, body), MAX_HEADINGS))
    return outline(
        text,
        headings,
        body,
        plain_title(stated[1].strip().strip("\"'")) if stated else "",
    )


def outline(
    text: str,
    headings: list[Heading],
    begin: int = 0,
    title: str = "",
) -> Outline:
    """Regions from headings: each runs to the next heading; one with nothing but its heading is
    left out.
    """
    path: list[Heading] = []
    regions: list[Section] = []
    starts = [*(heading.start for heading in headings), len(text)]
    _add_region(regions, text, begin, starts[0], ())

    for heading, end in zip(headings, starts[1:], strict=True):
        while path and path[-1].level >= heading.level:
            path.pop()

        path.append(heading)
        titles = tuple(above.title for above in path if above.title)
        _add_region(
            regions,
            text,
            heading.start,
            end,
            titles,
            heading.title,
        )

    if not regions:
        _add_region(regions, text, 0, len(text), ())

    title = title or next((heading.title for heading in headings if heading.title), "")
    return Outline(title, tuple(regions))


def _add_region(
    regions: list[Section],
    text: str,
    start: int,
    end: int,
    headings: tuple[str, ...],
    title: str | None = None,
) -> None:
    """Add a section from its heading on; one of blanks, or with no letter or digit below its
    heading, is left out.
    """
    piece = text[start:end]
    if title is None:
        body = piece
    else:
        body = "".join(filter(str.isalnum, piece.strip().partition("\n")[2]))

    if body.strip():
        start += len(piece) - len(piece.lstrip())
        regions.append(
            Section(
                start,
                start + len(piece.strip()),
                "prose",
                headings,
            )
        )


def markdown_headings(text: str, begin: int) -> Iterator[Heading]:
    """The headings of a text from `begin` on, outside of fenced code."""
    fence = ""
    previous = ""
    previous_start = begin

    for match in _LINE.finditer(text, begin):
        line = match.group().rstrip("\r\n")
        start = match.start()
        opened = _FENCE.match(line)

        if fence:
            if opened and opened.group(1).startswith(fence) and not opened.group(2).strip():
                fence = ""

            previous = ""
            continue

        if opened and not (opened.group(1)[0] == "`" and "`" in opened.group(2)):
            fence = opened.group(1)
            previous = ""
            continue

        atx = ATX.match(line)
        underline = _SETEXT.match(line)
        if atx:
            yield Heading(len(atx.group(1)), atx_title(line), start)
            previous = ""
        elif underline and previous:
            yield Heading(
                1 if underline.group(1)[0] == "=" else 2,
                plain_title(previous),
                previous_start,
            )
            previous = ""
        else:
            previous = "" if _NOT_PARAGRAPH.match(line) else line
            previous_start = start


def atx_title(line: str) -> str:
    """The title of an ATX heading without the marks around it; "" for another line."""
    heading = ATX.match(line)
    if heading:
        return plain_title(_without_closing_marks(line[heading.end() :]))

    return ""


def _without_closing_marks(title: str) -> str:
    """`Title ##` -> `Title`, but `C#` stays."""
    bare = title.strip().rstrip("#")
    if bare and not bare.endswith((" ", "\t")):
        return title.strip()

    return bare.strip()


def plain_title(title: str) -> str:
    """A heading without links, emphasis and tags, on one line; cut first, so that odd input stays
    cheap.
    """
    plain = _INLINE.sub(
        lambda match: match[2] or match[3] or "",
        _LINK.sub(r"\1", title[: 5 * _HEADING_CHARS]),
    )
    return " ".join(plain.split())[:_HEADING_CHARS]


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as the lines of a Markdown table, the first of them its heading; short rows are
    filled.
    """
    width = max(map(len, rows))

    lines = []
    for row in rows:
        cells = [cell.replace("|", "\\|") for cell in row] + [""] * (width - len(row))
        lines.append(f"| {' | '.join(cells)} |")

    lines.insert(1, "|---" * width + "|")
    return lines


_MDX_STATEMENT = re.compile(
    r"import\s.+from\s+['\"]|import\s+['\"]|import\s*(?:\w+\s*,\s*)?\{[^}]*$|export\s"
)
_MDX_PART = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n(?:.*\n)*?(?:[ \t>]*(?P=fence)[`~]*+[ \t]*$|\Z)"
    r"|(?<!`)(?P<code>`{1,8})(?!`)[^\n]{1,1000}?(?<!`)(?P=code)(?!`)|\\.|(?P<open>\{"
    r"|</?(?=[A-Za-z>]))",
    re.MULTILINE,
)
_JSX = re.compile(
    r"\"(?:\\.|[^\"\\]){0,2000}\"|'(?:\\.|[^'\\\n]){0,2000}'|`(?:\\.|[^`\\]){0,5000}`"
    r"|/\*.{0,2000}?\*/|[{}>]",
    re.S,
)
_MDX_TITLE, _MDX_ABOUT = (
    re.compile(rf"\b(?:{names})=\{{?[\"']([^\"'\n]{{1,200}})[\"']")
    for names in ("title|label|header", "description")
)
_HTML_HEAD = re.compile(r"</?h[1-6]\b")
_LONGEST_TAG = 20_000  # characters
_MOST_OPEN = 20  # tags that do not end, after which a page is read as it stands


def read_mdx(text: str) -> str:
    """The Markdown of a page, with as many lines; a component is what its title and description
    say.
    """
    lines = text.split("\n")
    fence = ""
    in_statement = False

    for row, line in enumerate(lines):
        mark = re.match(r"[ \t>]*(`{3,}|~{3,})", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (in_statement or _MDX_STATEMENT.match(line)):
            in_statement = bool(line.strip()) and not line.rstrip().endswith((";", "'", '"'))
            lines[row] = ""

    return "".join(_without_jsx("\n".join(lines)))


def _without_jsx(text: str) -> Iterator[str]:
    """The pieces of a page that a reader sees; code stays as it is."""
    position = n_open = 0
    while n_open < _MOST_OPEN and (part_match := _MDX_PART.search(text, position)):
        if part_match["open"]:
            end = _end_of_jsx(
                text,
                part_match.end(),
                part_match["open"],
            )
        else:
            end = 0

        n_open += bool(part_match["open"] and not end)
        part = text[part_match.start() : end]
        yield text[position : part_match.start()]

        if not end or _HTML_HEAD.match(part) or text.startswith("<!--", part_match.start()):
            yield part_match[0]
        else:
            yield _jsx_text(part) + "\n" * part.count("\n")

        if end and not _HTML_HEAD.match(part):
            position = end
        else:
            position = part_match.end()

    yield text[position:]


def _end_of_jsx(text: str, begin: int, opened: str) -> int:
    """Where a tag or an expression ends whose mark ends at `begin`; 0 where it does not."""
    depth = int(opened == "{")
    for mark in _JSX.finditer(text, begin, begin + _LONGEST_TAG):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0 and mark[0] == ("}" if opened == "{" else ">"):
            return mark.end()

    return 0


def _jsx_text(part: str) -> str:
    """What a reader sees of an expression or a tag: a text, or its title and description."""
    if part.startswith("{"):
        text = re.fullmatch(r"\{\s*([\"'`])(.*)\1\s*\}", part)
        return text[2] if text and "\n" not in part else ""

    title = _MDX_TITLE.search(part)
    about = _MDX_ABOUT.search(part)
    if title and part[1] != "/" and part[1:2].isupper():
        shown_title = f"{title[1]}: "
    else:
        shown_title = ""

    if shown_title and about:
        return f"{shown_title}{about[1]}"

    return shown_title
