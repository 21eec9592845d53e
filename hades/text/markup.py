"""Prose out of Markdown and reStructuredText: what a person reads, without the marks around it."""

from __future__ import annotations

import re

# Blocks that are no prose: fenced code, comments, headings with their underlines, tables, rules, directives.
_BLOCKS = re.compile(
    r"^ {0,3}(?:```|~~~).*?(?:^ {0,3}(?:```|~~~)[^\n]*$|\Z)"
    r"|<!--.*?(?:-->|\Z)"
    r"|^ {0,3}#{1,6} [^\n]*$"
    r"|^ {0,3}\|[^\n]*$"
    r"|^(?P<over>([=~^\"'`#*+-])\2{2,})\n[^\n]+\n(?P=over)$"
    r"|^[^\n]+\n([=~^\"'`#*+-])\3{2,}[ \t]*$"
    r"|^ {0,3}([=_*-])(?: ?\4){2,}[ \t]*$"
    r"|^[ \t]*\.\. (?:[\w-]+::[^\n]*|_[^\n]*:[^\n]*|[^\n]*)(?:\n[ \t]+:[\w-]+:[^\n]*)*$",
    re.DOTALL | re.MULTILINE,
)
# Where a list item, a quotation or a term of a glossary begins, another sentence begins.
_ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)]|>)[ \t]+", re.MULTILINE)
_INLINE = (
    (re.compile(r"!\[([^\]]*)\]\([^)]*\)"), r"\1"),  # a picture
    (re.compile(r"\[([^\]\[]+)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)"), r"\1"),  # a link
    (re.compile(r"\[([^\]\[]+)\]\[[^\]]*\]"), r"\1"),
    (re.compile(r"\[\[(?:[^\]|]*\|)?([^\]|]+)\]\]"), r"\1"),  # a link of a vault
    (re.compile(r":[\w:+.-]+:`~?([^`<]+?)(?:\s*<[^`>]*>)?`"), r"\1"),  # a role
    (re.compile(r"`([^`<]+?)\s*<[^`>]+>`__?"), r"\1"),  # a link of reStructuredText
    (re.compile(r"(`{1,3})(?=\S)(.+?)(?<=\S)\1(?:__?\b)?"), r"\2"),  # code in a line
    (re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])(.+?)(?<=[^\s*])\1(?![\w*])"), r"\2"),  # emphasis
    (re.compile(r"(?<!\w)_(?=[^\s_])([^_]+?)(?<=[^\s_])_(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)__(?=[^\s_])([^_]+ [^_]+?)(?<=[^\s_])__(?!\w)"), r"\1"),
    (re.compile(r"~~(?=\S)(.+?)(?<=\S)~~"), r"\1"),
    (re.compile(r"</?(?:a|b|br|code|div|em|i|img|kbd|li|ol|p|pre|span|strong|sub|sup|u|ul)\b[^<>]*>"), ""),
)
_ROW, _RULE = re.compile(r"\s{0,3}\|.*\|\s*$"), re.compile(r"\s{0,3}\|[\s:|-]+\|\s*$")
_LINE_MARK = re.compile(r"^(?:[-*+>•]|\d{1,3}[.)])\s+")


def keep_prose(text: str) -> str:
    """The text without the blocks that are no prose; an item of a list is a paragraph of its own."""
    return _ITEM.sub("\n\n", _BLOCKS.sub("\n\n", text))


def table_rows(text: str) -> list[str]:
    """The rows of Markdown tables as they stand, without headings and rules."""
    lines = text.split("\n")
    rows = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _ROW.match(line) and not _RULE.match(line) and not _RULE.match(following):
            rows.append(line.strip())
    return rows


def row_words(row: str) -> str:
    """A row of a table as a line: its first cell, then what the others say of it."""
    cells = [strip_markup(part) for part in row.strip().strip("|").split("|")]
    first, others = cells[0], [cell for cell in cells[1:] if cell]
    return f"{first}: {'; '.join(others)}" if others else first


def strip_markup(text: str) -> str:
    """One line of plain words: no emphasis, links, roles or marks of a list."""
    plain = " ".join(text.split())
    plain = _LINE_MARK.sub("", plain)
    for pattern, kept in _INLINE:
        plain = pattern.sub(kept, plain)
    return " ".join(plain.split())


def plain_text(text: str) -> str:
    """The prose of a text as one line; where it is nothing but headings or tables, their words."""
    return strip_markup(keep_prose(text)) or strip_markup(re.sub(r"(?m)^ {0,3}#{1,6} |[|]", " ", text))
