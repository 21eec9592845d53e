"""reStructuredText, and dialects of Markdown with roles and directives such as MyST, as plain
Markdown.

The number of lines stays, so that every passage keeps its lines. Comments, targets, options and
tables of contents become blank lines; boxes between colons, tags of site generators and HTML
headings become what a reader sees.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from hades.ingest.formats.markup import (
    ATX,
    MAX_HEADINGS,
    Heading,
    Outline,
    atx_title,
    outline,
    plain_title,
    table_lines,
)
from hades.text.blocks import BlockKind, read_blocks
from hades.text.sentences import sentences_of
from hades.text.word_lists import word_set

_DIRECTIVE = re.compile(r"(\s*)\.\. ([A-Za-z][\w:.-]*)::(?:[ \t]+(.*))?$")
_EXPLICIT = re.compile(r"\s*\.\.(?:[ \t]|$)")  # a target, a substitution or a comment
_LABEL = re.compile(r"\.\. _([^:`\n]{1,200}):$")
_NAMED_LINK = re.compile(r"\.\. _(?:`([^`\n]{1,200})`|([^:`\n]{1,200})):[ \t]+\S")
_SUBSTITUTION = re.compile(r"\s*\.\. \|([^|\n]{1,100})\| (replace|image|unicode)::[ \t]*(.*)$")
_SUBSTITUTED = re.compile(r"(?<!\w)\|([^|\s](?:[^|\n]{0,98}[^|\s])?)\|_{0,2}(?!\w)")
_LINK_NAME = re.compile(r"`([^`<>\n]{1,200})`_(?![\w_])|(?<![\w`])(\w(?:[\w.-]*\w)?)_(?![\w_`])")
_OPTION = re.compile(r"\s+:[\w-]+:(?:\s|$)")
_ROLE = re.compile(r":((?:[\w+-]+:)*[\w+-]+):`([^`<>\n]{0,300}?)\s{0,9}(?:<([^<>`\n]{0,300})>)?`")
_ESCAPE = re.compile(
    r"\\([-*|_\"'<>])(?![^`\n]*``)"
)  # `\-\-flag` is --flag; not before the end of a literal
_LITERAL = re.compile(r"``([^`\n]{1,300})``")
_RST_LINK = re.compile(r"`([^`<>\n]{1,300}?)\s{0,9}<([^<>`\s]{1,300})>`__?")
_CODE = word_set(
    """
    code-block code sourcecode parsed-literal prompt doctest ipython literal code-cell
    example run testcode testoutput
    """
)
_UNSEEN = word_set(
    """
    toctree contents index meta highlight currentmodule image raw include literalinclude
    """
)
_LAYOUT = word_set(
    """
    only ifconfig tabs tab-set container compound grid hlist program glossary epigraph
    pull-quote default-role role sectionauthor codeauthor moduleauthor tabularcolumns
    """
)
_TITLED = word_set(
    """
    admonition tab tab-item group-tab dropdown details collapse card grid-item-card topic
    sidebar centered
    """
)
_ADORNMENT = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}[ \t]*$")
_CSS_CLASS = re.compile(r"[a-z][a-z0-9_ ]*-[a-z0-9_ -]*")
_TABLES = frozenset({"csv-table", "list-table"})
_GRID_RULE, _SIMPLE_RULE = (
    re.compile(r"\s*\+(?:[-=]{2,}\+)+$"),
    re.compile(r"\s*={2,}(?: +={2,})+$"),
)
_DESCRIBED = word_set("function class method attribute data option envvar module")
_PLAIN_ROLES = word_set("ref doc term numref any emphasis strong sub sup title abbr")
# Directives that describe a name, and the roles that lead to names of code.
_CODE_ROLES = word_set(
    """
    class func function meth method attr attribute data exc exception mod module obj const
    """
)
_DESCRIBED_NAMES = _CODE_ROLES | {"option", "envvar", "confval"}
# Characters for private use, one a role of a page.
_FIRST_MARK, _MOST_MARKS = 0xF0000, 60_000
_MARK = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + _MOST_MARKS)}]")
_NAMED_ROLES = {
    "issue": "#{}",
    "pr": "#{}",
    "pep": "PEP {}",
    "rfc": "RFC {}",
}
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since",
}


def read_rst(text: str) -> tuple[str, Outline]:
    """The text as Markdown with as many lines, and its outline."""
    reader = _RstReader(text)
    starts = [0]

    for line in reader.written:
        starts.append(starts[-1] + len(line) + 1)

    headings = []
    for level, title, row in reader.headings[:MAX_HEADINGS]:
        headings.append(Heading(level, title, starts[row]))

    written = "\n".join(reader.written)
    return written, outline(written, headings)


class RoleLink(NamedTuple):
    """A role that leads somewhere, such as `ref`, its target, and the sentence that it is in."""

    role: str
    target: str
    sentence: str


def rst_links(text: str) -> list[RoleLink]:
    """The roles in the sentences of a page that may lead to another page or section."""
    reader = _RstReader(text, marks_roles=True)

    links = []
    for block in read_blocks("\n".join(reader.written)):
        if block.kind not in (BlockKind.PARAGRAPH, BlockKind.ITEM):
            continue

        for sentence in sentences_of(" ".join(block.source.split())):
            plain = _MARK.sub("", sentence)
            links += [RoleLink(*role, plain) for role in reader.marked_roles(sentence)]

    return links


class RoleLine(NamedTuple):
    """A role in the text of a page, with the number of its line, from 0."""

    line: int
    role: str
    target: str


def rst_roles(text: str) -> tuple[list[RoleLine], list[str]]:
    """The roles of a page that are no code, each with its line, and the titles of its sections."""
    reader = _RstReader(text, marks_roles=True)

    roles = []
    for row, line in enumerate(reader.written):
        roles += [RoleLine(row, *role) for role in reader.marked_roles(line)]

    return roles, [_MARK.sub("", title) for _, title, _ in reader.headings]


class Anchor(NamedTuple):
    """What a role can lead to: a name within a namespace, and the heading that it stands under."""

    namespace: str
    name: str
    heading: str


def rst_anchors(text: str) -> list[Anchor]:
    """The labels, terms and described names of a page."""
    reader = _RstReader(text)
    anchors = []
    module = ""

    for row, line in enumerate(reader.lines):
        if label := _LABEL.match(line):
            anchors.append(
                Anchor(
                    "ref",
                    label[1].lower(),
                    reader.heading_at(row),
                )
            )

        directive = _DIRECTIVE.match(line)
        if directive is None:
            continue

        kind = directive[2].rpartition(":")[2].removeprefix("auto")
        name = (directive[3] or "").partition("(")[0].strip()
        heading = reader.heading_above(row)

        if kind in ("currentmodule", "module"):
            module = name

        if kind in _DESCRIBED_NAMES and name:
            namespace = namespace_of(kind)
            anchors.append(Anchor(namespace, name, heading))
            anchors.append(Anchor(namespace, f"{module}.{name}", heading))

        if kind == "glossary":
            terms = _terms_below(reader.lines[row + 1 :])
            anchors += [Anchor("term", term, heading) for term in terms]

    return anchors


def namespace_of(role: str) -> str:
    """Where the target of a role is looked up: names of code are looked up together."""
    plain = role.rpartition(":")[2]
    if plain in _CODE_ROLES:
        return "code"

    return "ref" if plain == "numref" else plain


def _terms_below(lines: Sequence[str]) -> list[str]:
    """The terms of a glossary: its least indented lines."""
    body = takewhile(lambda line: not line or line[0] in " \t", lines)
    written = [line for line in body if line and not _OPTION.match(line)]
    margin = min(map(_indent, written), default=0)
    return [line.strip().lower() for line in written if _indent(line) == margin]


class _RstReader:
    """One pass over the lines; `written` has a line for each of them.

    With `marks_roles` a private character behind the words of a role gives its place in `roles`.
    """

    def __init__(self, text: str, marks_roles: bool = False) -> None:
        self.lines = [line.rstrip() for line in text.split("\n")]
        self._marks_roles = marks_roles
        self.roles: list[tuple[str, str]] = []  # role, target
        self.written: list[str] = []
        self.headings: list[tuple[int, str, int]] = []  # level, title, line
        self._levels: dict[tuple[str, bool], int] = {}
        plain = (line for line in self.lines if not _ADORNMENT.match(line))
        self._titles = _read_labels(
            plain,
            _LABEL,
            lambda line: "" if line.startswith("..") else line.strip(),
        )
        self._substitutions: dict[str, str] = {}

        self._links: set[str] = set()
        for line in self.lines:
            if link := _NAMED_LINK.match(line):
                self._links.add((link[1] or link[2]).casefold())
            if replaced := _SUBSTITUTION.match(line):
                self._substitutions[replaced[1]] = replaced[3] * (replaced[2] == "replace")

        self._read()

    def heading_above(self, row: int) -> str:
        """The heading that a line stands under."""
        above = []
        for _, heading, line in self.headings:
            if line <= row:
                above.append(heading)

        return above[-1] if above else ""

    def heading_at(self, row: int) -> str:
        """The heading that follows a label, or the one above it where a paragraph follows."""
        row += 1
        while row < len(self.lines) and (not self.lines[row] or _LABEL.match(self.lines[row])):
            row += 1

        return self.heading_above(row)

    def marked_roles(self, text: str) -> list[tuple[str, str]]:
        """The roles, with their targets, whose marks stand in a text that was written."""
        return [self.roles[ord(mark) - _FIRST_MARK] for mark in _MARK.findall(text)]

    def _read(self) -> None:
        """Every line; lines of blocks are taken by what begins them."""
        while len(self.written) < len(self.lines):
            row = len(self.written)
            line = self.lines[row]
            directive = _DIRECTIVE.match(line)

            if directive:
                self._directive(*directive.groups(default=""))
            elif self._title(row) or self._drawn_table(row):
                continue
            elif _EXPLICIT.match(line):
                self.written += [""] * (self._block_end(row, _indent(line)) - row)
            elif line.endswith("::"):
                start = line[:-2].rstrip()
                self.written.append(self._inline(f"{start}:" if start else ""))
                self._code(_indent(line), "")
            else:
                mark = ATX.match(line)  # which makes no heading here
                self.written.append(self._inline(line[mark.end() :].lstrip() if mark else line))

    def _title(self, row: int) -> bool:
        """A title with its underline, and the overline before it; a transition stays as it is."""
        line, following, third = [*self.lines[row : row + 3], "", ""][:3]
        is_over = bool(_ADORNMENT.match(line) and line == third and following)
        title, under = (following, third) if is_over else (line, following)
        adornment = _ADORNMENT.match(under)

        if not adornment or not title or len(under) < len(title) or _ADORNMENT.match(title):
            return False
        if not is_over and title.startswith((" ", "\t")):
            return False

        level = self._levels.setdefault((adornment[1], is_over), len(self._levels) + 1)
        self.headings.append((level, plain_title(self._inline(title)), row))
        self.written += [f"{'#' * min(level, 6)} {self._inline(title.strip())}", ""]

        if is_over:
            self.written.append("")

        return True

    def _directive(
        self,
        indent: str,
        name: str,
        argument: str,
    ) -> None:
        """A directive and its options; the text inside is read on unless it is code or not meant
        for readers.
        """
        row = len(self.written)
        kind = name.rpartition(":")[2].lower()

        if kind in _UNSEEN:
            self.written += [""] * (self._block_end(row, len(indent)) - row)
            return

        if kind in _CODE:
            self.written.append("")
            self._code(len(indent), argument.split(maxsplit=1)[0] if argument else "")
            return

        if kind in _TABLES:
            lines = self.lines[row + 1 : self._block_end(row, len(indent))]
            if kind == "csv-table":
                rows = _csv_rows(lines)
            else:
                rows = _list_rows(lines)

            self._table(list(rows), len(lines) + 1, argument)
            return

        has_body = self._block_end(row, len(indent)) > row + 1
        self.written.append(indent + self._inline(_directive_line(kind, argument, has_body)))
        self.written += _blank_options(_OPTION, self.lines, row + 1)

    def _drawn_table(self, row: int) -> bool:
        """A table that is drawn with lines."""
        if _GRID_RULE.match(self.lines[row]):
            lines = list(takewhile(bool, self.lines[row:]))
            rows = list(_grid_rows(lines))
        elif _SIMPLE_RULE.match(self.lines[row]):
            lines = _simple_table(self.lines[row:])
            rows = list(_simple_rows(lines))
        else:
            return False

        if rows:
            self._table(rows, len(lines))

        return bool(rows)

    def _table(
        self,
        rows: list[list[str]],
        n_lines: int,
        title: str = "",
    ) -> None:
        """Rows, the first of them the heading, as Markdown in the place of these lines."""
        if rows:
            table = table_lines([list(map(self._inline, row)) for row in rows])
        else:
            table = []

        if table and title:
            table = [self._inline(title), "", *table]

        self.written += [*table, *[""] * (n_lines - len(table))]

    def _code(self, indent: int, language: str) -> None:
        """The block that is indented beyond `indent` as fenced code, its fences in the blank lines
        around it.
        """
        self.written += _blank_options(
            _OPTION,
            self.lines,
            len(self.written),
        )
        first = len(self.written)

        while first < len(self.lines) and not self.lines[first]:
            first += 1

        if first < len(self.lines):
            last = self._block_end(first - 1, indent)
        else:
            last = first

        is_empty = first == len(self.written) or last <= first
        if is_empty or any(self.lines[last : last + 1]):
            # nothing is indented, or there is no blank line for a fence: it is read on as it stands
            return

        block = self.lines[first:last]
        margin = min(_indent(line) for line in block if line)
        if any("```" in line for line in block):
            fence = "~~~"
        else:
            fence = "```"

        self.written += [""] * (first - len(self.written) - 1)
        self.written += [fence + language, *(line[margin:] for line in block)]
        if last < len(self.lines):
            self.written.append(fence)
        else:
            self.written[-1] += f"\n{fence}"

    def _block_end(self, row: int, indent: int) -> int:
        """The line after the last one that is indented beyond `indent`, from the line after `row`
        on.
        """
        end = row + 1
        for place in range(row + 1, len(self.lines)):
            if self.lines[place]:
                if _indent(self.lines[place]) <= indent:
                    break
                end = place + 1

        return end

    def _inline(self, line: str) -> str:
        """Roles, literals and links of one line as Markdown writes them."""
        line = _ESCAPE.sub(r"\1", line)
        if self._substitutions and "|" in line:
            line = _SUBSTITUTED.sub(
                lambda match: self._substitutions.get(match[1], match[0]),
                line,
            )
        if self._links and "_" in line:
            line = _LINK_NAME.sub(self._link_words, line)
        if "`" not in line:
            return line

        shown = _ROLE.sub(self._role_words, line)
        return _LITERAL.sub(r"`\1`", _RST_LINK.sub(r"[\1](\2)", shown))

    def _role_words(self, match: re.Match[str]) -> str:
        shown = _role_text(match, self._titles)
        if not self._marks_roles or len(self.roles) >= _MOST_MARKS:
            return shown

        self.roles.append((match[1].rpartition(":")[2], match[3] or match[2]))
        return shown + chr(_FIRST_MARK + len(self.roles) - 1)

    def _link_words(self, match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return name if name.casefold() in self._links else match[0]


def _simple_rules(lines: Sequence[str]) -> list[int]:
    """The rows of the lines of `=` of a table."""
    return [row for row, line in enumerate(lines) if _SIMPLE_RULE.match(line)]


def _simple_table(lines: list[str]) -> list[str]:
    """The lines of a table below lines of `=`; blank lines may stand between its rows."""
    for rule in _simple_rules(lines)[1:3]:
        if not any(lines[rule + 1 : rule + 2]):
            return lines[: rule + 1]

    return []


def _grid_rows(lines: list[str]) -> Iterator[list[str]]:
    """The cells of a table drawn with `+---+`; a cell over several columns fills the first of
    them.
    """
    edges = [place for place, mark in enumerate(lines[0]) if mark == "+"]
    if not any("=" in line and _GRID_RULE.match(line) for line in lines):
        yield [""] * (len(edges) - 1)

    cells: list[list[str]] = []
    for line in lines[1:]:
        if re.search(r"\+[-=]{2,}", line):
            if any(map(any, cells)):
                yield [" ".join(filter(None, parts)) for parts in cells]

            cells = []
            continue

        cells = cells or [[] for _ in edges[1:]]
        begin = edges[0] + 1

        column = 0
        for place, edge in enumerate(edges[1:]):
            if line[edge : edge + 1] in ("|", "+"):
                cells[column].append(line[begin:edge].strip())
                begin = edge + 1
                column = place + 1


def _simple_rows(lines: list[str]) -> Iterator[list[str]]:
    """The cells of a table below lines of `=`; a line with nothing in its first column goes on with
    the row above.
    """
    if not lines:
        return

    begins = []
    for match in re.finditer(r"=+", lines[0]):
        begins.append(match.start())

    columns = []
    for bounds in zip(begins, [*begins[1:], None], strict=True):
        columns.append(slice(*bounds))

    if len(_simple_rules(lines)) == 2:
        yield [""] * len(columns)

    row: list[str] = []
    for line in lines[1:]:
        cells = [line[column].strip() for column in columns]
        if row and (not line.strip() or cells[0] or line in (lines[0], lines[-1])):
            yield row
            row = []

        if line.strip() and not re.fullmatch(r"[\s=-]+", line):
            above = row or [""] * len(cells)
            row = []
            for pair in zip(above, cells, strict=True):
                row.append(" ".join(pair).strip())


def _csv_rows(lines: list[str]) -> Iterator[list[str]]:
    head = next(
        (line.partition(":header:")[2].strip() for line in lines if ":header:" in line),
        "",
    )
    body = []
    for line in lines:
        if line.strip() and not _OPTION.match(line):
            body.append(line.strip())

    for row in csv.reader(
        [head, *body] if head else body,
        skipinitialspace=True,
    ):
        yield [" ".join(cell.split()) for cell in row]


def _list_rows(lines: list[str]) -> Iterator[list[str]]:
    """The rows of a list of lists."""
    row: list[str] = []
    for line in lines:
        entry = line.strip()
        if entry.startswith("* -"):
            if row:
                yield row
            row = [entry[3:].strip()]
        elif row and re.match(r"-(?:\s|$)", entry):
            row.append(entry[1:].strip())
        elif row:
            row[-1] = f"{row[-1]} {entry}".strip()

    if row:
        yield row


def _directive_line(
    kind: str,
    argument: str,
    has_body: bool,
) -> str:
    """The line that a reader sees where a directive stands."""
    if kind in _VERSIONS:
        return f"{_VERSIONS[kind]} {argument}" + (":" if has_body else ".")
    if kind == "class" and _CSS_CLASS.fullmatch(argument):
        return ""
    if kind.startswith("auto") or kind in _DESCRIBED:
        return f"`{argument}`" if argument else ""

    known = {
        "figure": "",
        "table": argument,
        "rubric": argument,
        "seealso": f"See also: {argument}".rstrip(),
    }
    if kind in _LAYOUT or kind in known:
        return known.get(kind, "")
    if argument and kind in _TITLED:
        return f"{argument}:"

    return f"{kind.capitalize()}: {argument}".rstrip()


def _role_text(match: re.Match[str], titles: Mapping[str, str]) -> str:
    """What a role shows: its text, the title of what it refers to, or a name of code."""
    name, shown, target = match.groups()
    kind = name.rpartition(":")[2]

    if kind in _PLAIN_ROLES:
        if target or " " in shown:
            return shown
        return titles.get(shown, re.sub("[_-]", " ", shown).strip("/~ "))

    if kind in _NAMED_ROLES:
        return _NAMED_ROLES[kind].format(shown)

    return f"`{(shown or target or '').lstrip('~!')}`"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


_ANY_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})(.*)$")  # of an item or a component too
_MYST_FENCE = re.compile(r"\s*(`{3,}|~{3,}|:{3,})\{([\w:.-]+)\}[ \t]*(.*)$")
_MYST_LABEL = re.compile(r"\(([\w:. -]{1,200})\)=\s*$")
_MYST_ROLE = re.compile(
    r"\{((?:[\w+-]+:)*[\w+-]+)\}`([^`<>\n]{0,300}?)\s{0,9}(?:<([^<>`\n]{0,300})>)?`"
)
_MYST_OPTION = re.compile(r"\s*:[\w-]+:(?:\s|$)")
_MKDOCSTRINGS = re.compile(r"::: ([\w.]{1,200})$")
_BOXES = word_set(
    """
    note tip info caution warning danger important details success hint question attention
    error abstract example failure bug quote seealso tabs steps
    """
)
_NAMED_BOXES = _BOXES - {"tabs", "steps", "details"}
_BOX = re.compile(
    r"(\s*):{3,}\s*(?:([A-Za-z][\w-]*)[ \t]*(?:\[([^\]\n]*)\]|([^{\[\n]*))(?:\{.*\})?)?\s*$"
)
_TEMPLATE_TAG = re.compile(
    r"(\s*)\{(?:%-?|\{[%<])\s*([\w-]+)?([^{}]*?)[%>-]{1,2}\}?\}\s*$"
)  # of Liquid, GitBook or Hugo
_TEMPLATE_TITLE = re.compile(
    r"\b(?:title|label|header|name|style)=[\"']([^\"'\n]{1,200})[\"']"
    r"|^\s*[\"']([^\"'\n]{1,200})[\"']"
)
_ALERT = re.compile(r"(\s*>\s*)\[!(\w+)\][+-]?[ \t]*(.*)$")
_HTML_HEADING = re.compile(r"[ \t]{0,3}<h([1-6])\b[^<>]*>", re.IGNORECASE)
_UNSEEN_LINE = re.compile(r"\s*(?:\[{1,2}toc\]{1,2}|\{[.#:][^{}]*\})\s*$", re.IGNORECASE)
_HEADING_LINES = 6  # of a heading between tags
_ATTRIBUTES = re.compile(
    r"(?:(?<=\))|(?<=\s))\{[.#:][^{}\n]{0,200}\}(?=\s*$)|(?<=\))\{[.#:][^{}\n]{0,200}\}"
)


def read_markdown(text: str) -> str:
    """The plain Markdown that a page in a dialect means; a page without any stays as it is."""
    lines = text.split("\n")
    titles = _read_labels(lines, _MYST_LABEL, atx_title)
    fence = ""
    written: list[str] = []
    open_directives: list[str] = []

    while len(written) < len(lines):
        row = len(written)
        line = lines[len(written)]
        directive = _MYST_FENCE.match(line)
        plain = _ANY_FENCE.match(line)
        described = _MKDOCSTRINGS.match(line)

        if fence:
            if plain and plain[1].startswith(fence) and not plain[2].strip():
                fence = ""
            written.append(line)
        elif directive:
            marks, name, argument = directive.groups()
            kind = name.rpartition(":")[2].lower()
            end = row + 1

            while end < len(lines) and lines[end].strip() != marks:
                end += 1

            if kind in _CODE:
                fence = marks
                written.append(marks + (argument.split(maxsplit=1)[0] if argument else ""))
            elif kind == "eval-rst":
                written += _evaluated_lines(lines[row : end + 1], end - row)
            elif kind in _UNSEEN:
                written += [""] * len(lines[row : end + 1])
            else:
                written.append(_directive_line(kind, argument, end > row + 1))
                written += _blank_options(_MYST_OPTION, lines, row + 1)
                open_directives += [marks] if end < len(lines) else []
        elif open_directives and line.strip() == open_directives[-1]:
            open_directives.pop()
            written.append("")
        elif described and described[1] not in _BOXES:
            written += [f"`{described[1]}`", *_blank_options(_MYST_OPTION, lines, row + 1)]
        elif _MYST_LABEL.match(line):
            written.append("")
        elif heading := _HTML_HEADING.match(line):
            written += _html_heading(heading[1], lines[row : row + _HEADING_LINES])
        else:
            fence = plain[1] if plain and "`" not in plain[2] else ""
            if not fence:
                line = _plain_line(_MYST_ROLE.sub(lambda match: _role_text(match, titles), line))
            written.append(line)

    return "\n".join(written)


def _evaluated_lines(lines: list[str], end: int) -> list[str]:
    """The lines of a directive of reStructuredText as Markdown; `end` is the row of its last
    fence.
    """
    inside, _ = read_rst("\n".join([*lines[1:end], ""]))
    shown = ["", *inside.split("\n")] if inside else []
    return shown + [""] * (len(lines) - len(shown))


def _plain_line(line: str) -> str:
    """A line of prose without the marks of a site generator; the beginning of a box or a tab is
    what it is called.
    """
    if box := _BOX.match(line):
        name = box[2] or ""
        title = box[3] or (box[4] or "").strip()
        shown = title or (name.capitalize() if name in _NAMED_BOXES else "")
        return f"{box[1]}{shown}:" if shown else ""

    if tag := _TEMPLATE_TAG.match(line):
        name = (tag[2] or "").lower()
        shown = name if name in _NAMED_BOXES else ""
        stated_title = _TEMPLATE_TITLE.search(tag[3])

        if stated_title and not name.startswith("include"):
            shown = stated_title[1] or stated_title[2]

        shown = shown.capitalize() if shown in _BOXES else shown
        return f"{tag[1]}{shown}:" if shown else ""

    if alert := _ALERT.match(line):
        return f"{alert[1]}{alert[3] or alert[2].capitalize()}:"
    if _UNSEEN_LINE.match(line):
        return ""
    if "{" in line and not line.endswith("`"):
        return _ATTRIBUTES.sub("", line).rstrip()

    return line


def _html_heading(level: str, lines: list[str]) -> list[str]:
    """A heading between tags, which may stand on lines of their own, in the place of its lines."""
    end = next(
        (place for place, line in enumerate(lines) if f"</h{level}>" in line.lower()),
        0,
    )
    title = " ".join(re.sub(r"<[^<>]*>", " ", " ".join(lines[: end + 1])).split())
    return [f"{'#' * int(level)} {title}" if title else "", *[""] * end]


def _blank_options(
    option: re.Pattern[str],
    lines: list[str],
    row: int,
) -> list[str]:
    """A blank line for each option of a directive that stands from this row on."""
    return [""] * len(list(takewhile(option.match, islice(lines, row, None))))


def _read_labels(
    lines: Iterable[str],
    label: re.Pattern[str],
    title_of: Callable[[str], str],
) -> dict[str, str]:
    """The title that follows each label, which a reference without a text of its own shows."""
    titles: dict[str, str] = {}

    waiting: list[str] = []
    for line in lines:
        if match := label.match(line):
            waiting.append(match[1])
        elif line.strip():
            titles.update(dict.fromkeys(waiting, title_of(line)))
            waiting = []

    return {name: title for name, title in titles.items() if title}
