"""A page as the blocks a person sees: paragraphs, list items, table rows, terms and code, each as
plain Markdown.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, groupby, pairwise

from hades.text.word_lists import word_set


class BlockKind(StrEnum):
    """What a block is on the page."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"  # of a list
    TERM = "term"  # a name or an option with its description
    ROW = "row"  # of a table
    CODE = "code"


@dataclass(frozen=True)
class Block:
    """One block. `markdown` shows it without directives, labels and roles; `source` is how it
    stands in the page.
    """

    kind: BlockKind
    markdown: str
    source: str
    head: str = ""  # of a row: the heading of its table, as Markdown

    @property
    def lines(self) -> int:
        """Lines of code, without the fence around them; 0 for text."""
        if self.kind is BlockKind.CODE:
            return self.markdown.count("\n") - 1
        return 0

    @property
    def words(self) -> int:
        """Words of text; 0 for code."""
        if self.kind is BlockKind.CODE:
            return 0
        return len(self.markdown.split())


# Directives of reStructuredText, MyST and MkDocs whose body is prose; a name with a colon or in
# `_CODE` holds code, and the others show nothing here (tables of contents, pictures, generated
# pages).
_PROSE = re.compile(
    r"admonition|attention|caution|danger|error|hint|important|note|seealso|sidebar|tip|topic"
    r"|warning|rubric|option"
    r"|versionadded|versionchanged|deprecated|describe|function|class|method|attribute|data"
    r"|exception|glossary"
    r"|info|abstract|success|question|failure|bug|example|quote|tab|details|list-table"
)
_CODE = re.compile(r"code|code-block|code-cell|sourcecode|parsed-literal|doctest|testcode|prompt")
_VERSION = {
    "versionadded": "Added in",
    "versionchanged": "Changed in",
    "deprecated": "Deprecated since",
}

_DEEPEST = 12  # blocks inside blocks
_FENCE = re.compile(r"\s*(`{3,}|~{3,}|:{3,})\s*(.*?)\s*$")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*$")
_UNDERLINE = re.compile(r"([=~^\"'`#*+.:-])\1{2,}\s*$")
_RULE = re.compile(r"\s*([-_*=])(?:\s*\1){2,}\s*$")
_SIMPLE_TABLE = re.compile(r"\s*={2,}(?:\s+={2,})+\s*$|\s*\+(?:[-=]+\+)+\s*$")
_ITEM = re.compile(r"(\s*)([-*+•]|\d{1,3}[.)]|#\.)(\s+)(?=\S)")
_DIRECTIVE = re.compile(r"(\s*)\.\. ([\w:+.-]+)::\s*(.*)$")
_MKDOCS = re.compile(r"(\s*)(?:!!!|\?\?\?\+?|===)\s+([\w-]*)\s*(?:\"(.*)\")?\s*$")
_FIELD = re.compile(r"\s*:([\w -]+):(?!`)\s*(.*)$")
_SKIPPED = re.compile(
    r"\s*(?:\.\.(?:\s|$)|\([\w-]+\)=\s*$|<!--.*-->\s*$|\[[^\]]+\]:\s|__? |(?:\|\w[\w-]*\|\s*)+$)"
)
_ROW, _ROW_RULE = re.compile(r"\s{0,3}\|.*\|?\s*$"), re.compile(r"\s{0,3}\|[\s:|-]+\|?\s*$")
_NAMED_ONLY = re.compile(
    r"\s*\|[^|]*\|(?:\s*\|){2,}\s*$"
)  # a row that names a part of the table and says nothing
_OWN_LINE = re.compile(
    r"\s*[^\W_a-z].{0,59}$"
)  # three such lines are a list that was written without marks
_SHORT_LINE = 60
_OPTION_LINE = re.compile(
    r"`{0,2}-{1,2}[A-Za-z?][^\s`]*`{0,2}[^\n]*?\s{2,}\S"
)  # with its description
_LITERAL = re.compile(r"(?:(?<=\S)(:)|(?:^|\s+):):\s*$")  # the mark that a block of code follows
_CONSOLE = re.compile(r"\s*(?:>>> |\$ |% |C:\\)")

_ROLE = re.compile(r"(?::([\w:+.-]+):|\{([\w:+.-]+)\})`([^`]+)`")
_TARGET = re.compile(r"\s*<[^<>]*>$")
_SPOKEN_ROLES = word_set("ref doc term numref any abbr std:ref std:doc gh issue pr")
_TAGS = (
    "a|b|br|center|code|details|div|em|figure|font|hr|i|img|kbd|li|ol|p|picture|pre|section"
    "|small|source|span|strong"
    "|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul|video"
)
_INLINE = (
    (re.compile(r"``(?=\S)(.+?)(?<=\S)``(?!`)"), r"`\1`"),
    (re.compile(r"`([^`<]+?)\s*<[^`>]+>`__?"), r"\1"),  # a link of reStructuredText
    (re.compile(r"`(?=\S)([^`<>]+)(?<=\S)`__?(?![\w`])"), r"\1"),
    (re.compile(r"!\[([^\]]*)\]\((?:[^()]|\([^()]*\))*\)"), ""),  # a picture
    (re.compile(r"\[([^\]\[]+)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)"), r"\1"),  # a link
    (re.compile(r"\[([^\]\[]+)\]\[[^\]]*\]"), r"\1"),
    (re.compile(r"\[\[(?:[^\]|]*\|)?([^\]|]+)\]\]"), r"\1"),  # a link of a vault
    (re.compile(r"\[[#\d]+\]_|\[\^[\w-]+\]|\\ "), ""),  # a footnote, an escaped blank
    (
        re.compile(rf"(`[^`]*`)|</?(?:{_TAGS})\b[^<>]*>"),
        r"\1",
    ),  # a tag, but not one that code speaks of
)


def read_blocks(text: str, begins_in_code: bool = False) -> list[Block]:
    """The blocks of a text in Markdown, MyST, reStructuredText or none of them, in reading
    order.
    """
    lines = text.expandtabs(4).split("\n")
    if begins_in_code:
        marks = filter(None, map(_FENCE.match, lines))
        fence = next((mark[1] for mark in marks if not mark[2]), "```")
        lines = [fence, *lines]

    return list(_read(lines))


def as_markdown(
    text: str,
    begins_in_code: bool = False,
    most: int = 0,
) -> str:
    """A page as plain Markdown without its headings: a blank line between blocks, rows of one table
    together.

    With `most`, its beginning: blocks until there are that many characters, the last cut at a line
    or a word.
    """
    blocks = []
    for block in read_blocks(text, begins_in_code):
        if block.kind is not BlockKind.HEADING:
            blocks.append(block)

    if most:
        blocks = list(_begin(blocks, most))

    tables = (
        list(group) for _, group in groupby(blocks, key=lambda block: block.head or id(block))
    )
    return "\n\n".join(join_rows(rows) for rows in tables)


def _begin(blocks: Sequence[Block], most: int) -> Iterator[Block]:
    for block in blocks:
        written = block.markdown
        if len(written) > most:
            if block.kind is BlockKind.CODE:
                opening, *lines, closing = written.split("\n")
                lines = lines[: max(2, written.count("\n", 0, most))]
                yield replace(
                    block,
                    markdown="\n".join([opening, *lines, "…", closing]),
                )
            elif block.kind is not BlockKind.ROW:
                yield replace(
                    block,
                    markdown=f"{written[:most].rpartition(' ')[0]} …",
                )

            return

        yield block
        most -= len(written)


def join_rows(blocks: Sequence[Block]) -> str:
    """Rows of one table below its heading, or another block alone, as Markdown."""
    head = [blocks[0].head] if blocks[0].head else []
    return "\n".join([*head, *(block.markdown for block in blocks)])


def inline_markdown(text: str) -> str:
    """One line of text with emphasis and code in line kept, and roles, links and escapes reduced to
    their words.
    """
    plain = _ROLE.sub(_role_words, " ".join(text.split()))
    for pattern, replacement in _INLINE:
        plain = pattern.sub(replacement, plain)

    return " ".join(plain.split())


def plain_words(text: str) -> str:
    """The prose of a text as one line without any markup; where it has none, the words of headings
    and code.
    """
    blocks = read_blocks(text)
    prose = [
        block for block in blocks if block.kind not in (BlockKind.HEADING, BlockKind.CODE)
    ] or blocks
    return " ".join(strip_marks(block.markdown) for block in prose)


_MARKS = (
    (re.compile(r"(?m)^\s*(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)\s+|^```.*$"), ""),
    (re.compile(r"(`{1,2})(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])(.+?)(?<=[^\s*])\1(?![\w*])"), r"\2"),
    (re.compile(r"(?<!\w)_(?=[^\s_])([^_]+?)(?<=[^\s_])_(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)__(?=[^\s_])([^_]+ [^_]+?)(?<=[^\s_])__(?!\w)"), r"\1"),
    (re.compile(r"~~(?=\S)(.+?)(?<=\S)~~"), r"\1"),
    (re.compile(r"\s*\|\s*"), " "),
)


def strip_marks(markdown: str) -> str:
    """A block of Markdown as one line of plain words."""
    for pattern, replacement in _MARKS:
        markdown = pattern.sub(replacement, markdown)

    return " ".join(markdown.split())


def _role_words(match: re.Match[str]) -> str:
    role = match[1] or match[2]
    target = match[3]
    if role in _SPOKEN_ROLES:
        return _TARGET.sub("", target).lstrip("~!")

    name = _TARGET.sub("", target)
    return f"`{name.rpartition('.')[2] if name.startswith('~') else name.lstrip('!')}`"


def _read(lines: Sequence[str], depth: int = 0) -> Iterator[Block]:
    if depth > _DEEPEST:
        yield from _paragraph(lines)
        return

    place = 0
    is_literal = False
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue

        blocks, place = _read_next(lines, place, depth, is_literal)
        yield from blocks
        is_literal = lines[min(place, len(lines)) - 1].rstrip().endswith("::")


def _read_next(
    lines: Sequence[str],
    place: int,
    depth: int,
    is_literal: bool,
) -> tuple[Iterable[Block], int]:
    """The blocks of what begins at a line that is not blank, and the place behind it."""
    line = lines[place]
    if place + 1 < len(lines):
        following = lines[place + 1]
    else:
        following = ""

    indent = _indent(line)
    if fence := _FENCE.match(line):
        end = _fence_end(lines, place, fence[1]) + 1
        return _directive(
            fence[2],
            lines[place + 1 : end - 1],
            depth,
        ), end

    if "<!--" in line and "-->" not in line:
        last = _while(lines, place, lambda text: "-->" not in text)
        return (), min(last + 1, len(lines))

    if directive := _DIRECTIVE.match(line):
        end = _indented_end(
            lines,
            place + 1,
            len(directive[1]) + 1,
        )
        info = f"{{{directive[2]}}} {directive[3]}"
        return _directive(info, lines[place + 1 : end], depth), end

    if directive := _MKDOCS.match(line):
        end = _indented_end(
            lines,
            place + 1,
            len(directive[1]) + 1,
        )
        body = _read(_dedent(lines[place + 1 : end]), depth + 1)
        if not directive[3]:
            return body, end

        title = Block(
            BlockKind.PARAGRAPH,
            f"**{inline_markdown(directive[3])}**",
            line,
        )
        return chain([title], body), end

    if _SKIPPED.match(line):
        is_directive = line.lstrip().startswith("..")
        return (), _indented_end(lines, place + 1, indent + 1) if is_directive else place + 1

    if is_literal and indent:
        end = _indented_end(lines, place, 1)
        return _code("", lines[place:end]), end

    if heading := _HEADING.match(line):
        return [
            Block(
                BlockKind.HEADING,
                inline_markdown(heading[2]),
                line,
            )
        ], place + 1
    if _UNDERLINE.match(line) and _is_over(lines, place):
        return [
            Block(
                BlockKind.HEADING,
                inline_markdown(following),
                following,
            )
        ], place + 3

    is_long_enough = len(following.strip()) >= min(4, len(line.strip()))
    if _UNDERLINE.match(following) and indent < 2 and is_long_enough:
        return [
            Block(
                BlockKind.HEADING,
                inline_markdown(line),
                line,
            )
        ], place + 2

    if _SIMPLE_TABLE.match(line):
        end = _while(lines, place, str.strip)
        return _code("", lines[place:end]), end

    if _RULE.match(line):  # it shows nothing
        return (), place + 1

    if _ROW.match(line):
        end = _while(lines, place, _ROW.match)
        return _rows(lines[place:end]), end

    if _CONSOLE.match(line):
        end = _while(lines, place, str.strip)
        if line.lstrip().startswith(">>>"):
            language = "python"
        else:
            language = ""

        return _code(language, lines[place:end]), end

    if mark := _ITEM.match(line):
        end = _indented_end(
            lines,
            _paragraph_end(lines, place),
            len(mark[1]) + 1,
        )
        return _item(mark, lines[place:end], depth), end

    if line.lstrip().startswith("> "):
        end = _while(
            lines,
            place,
            lambda text: text.lstrip().startswith(">"),
        )
        quoted = [text.lstrip()[1:].removeprefix(" ") for text in lines[place:end]]
        return _read(quoted, depth + 1), end

    if indent:
        end = _indented_end(lines, place, 1)
        lines = _dedent(lines[place:end])
        is_code = indent >= 4 and looks_like_code(lines)
        return _code("", lines) if is_code else _read(lines, depth + 1), end

    end = _paragraph_end(lines, place)
    return _paragraph(lines[place:end]), end


def _while(
    lines: Sequence[str],
    place: int,
    holds: Callable[[str], object],
) -> int:
    """The place of the first line for which it does not hold."""
    return next(
        (number for number in range(place, len(lines)) if not holds(lines[number])),
        len(lines),
    )


def _directive(
    info: str,
    body: Sequence[str],
    depth: int,
) -> Iterator[Block]:
    """What a fence or a directive shows; `info` is the language of code, or `{name} argument`."""
    match = re.match(r"\{([\w:+.-]+)\}\s*(.*)|([\w:+#.-]*)", info)
    name, argument = (match[1] or "", match[2] or "") if match else ("", "")

    if not name:
        yield from _code(match[3] if match else "", body)
        return

    while body and (not body[0].strip() or (match := _FIELD.match(body[0]))):
        body = body[1:]

    kind = re.sub(r"^(?:py|c|cpp|js|std):", "", name)
    if name in ("eval-rst", "div", "tab-set", "tab-item"):
        yield from _read(body, depth + 1)
    elif _PROSE.fullmatch(kind):
        if kind in _VERSION:
            body = [f"{_VERSION[kind]} {argument}: {_joined(body)}".rstrip(": ")]
        elif argument and kind in (
            "option",
            "function",
            "class",
            "method",
            "attribute",
            "data",
            "exception",
        ):
            yield Block(
                BlockKind.PARAGRAPH,
                f"`{argument}`",
                argument,
            )
        elif argument:
            body = [argument, "", *body]

        yield from _read(_dedent(body), depth + 1)
    elif _CODE.fullmatch(name) or ":" in kind:
        yield from _code("" if ":" in kind else argument, body)


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines).strip()


def _code(language: str, lines: Sequence[str]) -> Iterator[Block]:
    written = "\n".join(line.rstrip() for line in _dedent(lines)).strip("\n")
    if written:
        fence = "````" if "```" in written else "```"
        markdown = f"{fence}{language.partition(' ')[0]}\n{written}\n{fence}"
        yield Block(
            BlockKind.CODE,
            markdown,
            "\n".join(lines).strip(),
        )


def _item(
    mark: re.Match[str],
    lines: Sequence[str],
    depth: int,
) -> Iterator[Block]:
    """An item of a list and what stands below it; a nested list keeps its items."""
    if mark[3].count(" ") <= 4:
        offset = len(mark[0])
    else:
        offset = len(mark[1]) + 2

    body = [lines[0][len(mark[0]) :], *(line[min(offset, _indent(line)) :] for line in lines[1:])]
    sign = "-" if mark[2] in "-*+•" else mark[2].replace("#.", "1.")
    for number, block in enumerate(_read(body, depth + 1)):
        if number == 0 and block.kind in (BlockKind.PARAGRAPH, BlockKind.TERM):
            yield replace(
                block,
                kind=BlockKind.ITEM,
                markdown=f"{sign} {block.markdown}",
            )
        elif block.kind is BlockKind.ITEM:
            yield replace(block, markdown=f"  {block.markdown}")
        else:
            yield block


def _rows(lines: Sequence[str]) -> Iterator[Block]:
    """The rows of a table; lines with bars before each (`line blocks`) are read as text."""
    if len(lines) > 1 and _ROW_RULE.match(lines[1]):
        head = "\n".join(line.strip() for line in lines[:2])
    else:
        head = ""

    if not head and not lines[0].rstrip().endswith("|"):
        yield from _paragraph([line.strip().strip("|") for line in lines])
        return

    for line in lines[2:] if head else lines:
        if not _ROW_RULE.match(line) and not _NAMED_ONLY.match(line):
            yield Block(
                BlockKind.ROW,
                inline_markdown(line),
                line.strip(),
                head,
            )


def _paragraph(lines: Sequence[str]) -> Iterator[Block]:
    """A paragraph, a field, a term with its definition below it, or short lines that each begin
    anew.
    """
    source = "\n".join(lines)
    if field := _FIELD.match(lines[0]):
        name = field[1].split()[-1]
        description = inline_markdown(" ".join([field[2], *lines[1:]]))
        yield Block(
            BlockKind.TERM,
            f"**{name}**: {description}",
            source,
        )
    elif (
        len(lines) > 1
        and _indent(lines[1]) >= 2
        and not lines[0].rstrip().endswith(("::", ","))
        and (term := inline_markdown(lines[0]).rstrip(":"))  # a tag alone is no term
    ):
        description = inline_markdown(" ".join(line for line in lines[1:] if line.strip()))
        yield Block(
            BlockKind.TERM,
            f"**{term}**: {description}",
            source,
        )
    elif _OPTION_LINE.match(lines[0]):
        begins = []
        for place, line in enumerate(lines):
            if _OPTION_LINE.match(line):
                begins.append(place)

        for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
            name, _, description = re.sub(
                r"\s{2,}",
                "\0",
                lines[begin].strip(),
                count=1,
            ).partition("\0")
            description = inline_markdown(" ".join([description, *lines[begin + 1 : end]]))
            yield Block(
                BlockKind.TERM,
                f"`{name.strip('`')}`: {description}",
                "\n".join(lines[begin:end]),
            )
    elif len(lines) > 2 and (all(map(_OWN_LINE.match, lines)) or _break_by_choice(lines)):
        yield from (
            Block(
                BlockKind.ITEM,
                f"- {inline_markdown(line)}",
                line.strip(),
            )
            for line in lines
        )
    elif description := inline_markdown(_LITERAL.sub(r"\1", " ".join(lines))):
        yield Block(BlockKind.PARAGRAPH, description, source)


def _break_by_choice(lines: Sequence[str]) -> bool:
    """Whether short lines each begin anew, as a list without marks: the next word had room on the
    line before.
    """
    width = max(map(len, lines))
    if (
        width > _SHORT_LINE
        or lines[0].lstrip().startswith("<")
        or any(line.rstrip().endswith((".", ",", ";", ":", "!", "?", "\\", "-")) for line in lines)
    ):
        return False

    overfull = 0
    for line, following in pairwise(lines):
        first_word = following.split(maxsplit=1)[0]
        overfull += len(line.rstrip()) + 1 + len(first_word) > width

    return overfull <= sum(len(line) == width for line in lines[:-1])


def _paragraph_end(lines: Sequence[str], place: int) -> int:
    for number in range(place + 1, len(lines)):
        line = lines[number]
        starts_another = (
            _FENCE.match(line)
            or _HEADING.match(line)
            or _ITEM.match(line)
            or _DIRECTIVE.match(line)
        )
        if not line.strip() or starts_another or (_ROW.match(line) and line.rstrip().endswith("|")):
            return number
        if number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]) and not _indent(line):
            return number

    return len(lines)


def _is_over(lines: Sequence[str], place: int) -> bool:
    """Whether a heading with a line above and below begins here."""
    return (
        place + 2 < len(lines)
        and lines[place + 2].strip() == lines[place].strip() != lines[place + 1].strip()
    )


def _fence_end(lines: Sequence[str], place: int, mark: str) -> int:
    closing = re.compile(rf"\s*{mark[0]}{{{len(mark)},}}\s*$")
    return _while(
        lines,
        place + 1,
        lambda line: closing.match(line) is None,
    )


def _indented_end(
    lines: Sequence[str],
    place: int,
    indent: int,
) -> int:
    """The end of the lines that are blank or stand at least `indent` to the right; blank ones at
    the end are left.
    """
    end = place
    for number in range(place, len(lines)):
        if lines[number].strip():
            if _indent(lines[number]) < indent:
                break
            end = number + 1

    return end


CODE_SIGN = re.compile(
    r"\w\(|\)\s*$|[={};$|\\]|->|::|^\s*(?:#|//) |--\w|^\s*(?:import|from|def|class|await|pip)\s",
    re.M,
)

_PROSE_SIGN = re.compile(
    r"^\s*(?:[-*+] +)?\*\*[^\s*][^*]*\*\*|\]\(https?://|^\s*(?:```|~~~)",
    re.M,
)


def looks_like_code(lines: Sequence[str]) -> bool:
    """Whether lines that stand to the right of the prose are code rather than a quotation or the
    body of an item.
    """
    if _PROSE_SIGN.search("\n".join(lines)):
        return False
    return CODE_SIGN.search("\n".join(lines)) is not None or not lines[0].rstrip().endswith(
        (".", "?", "!")
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _dedent(lines: Sequence[str]) -> list[str]:
    return textwrap.dedent("\n".join(lines)).split("\n")
