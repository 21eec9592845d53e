"""Sentences that people wrote inside code: those of docstrings."""

from __future__ import annotations

import re

from hades.text.sentences import sentences

_DOCSTRING = re.compile(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'', re.DOTALL)
# What ends the first paragraph: a blank line, a field, an example, a directive or a rule.
_PARAGRAPH_END = re.compile(r"\n[ \t]*(?:\n|:|@|>>>|\.\. |-{3,}|={3,})")
_LEAST_WORDS = 4


def documentation_sentences(code: str) -> list[tuple[int, int]]:
    """Spans of the whole sentences in the first paragraph of the first docstring of a unit."""
    found = _DOCSTRING.search(code)
    if found is None:
        return []
    start, end = found.span(found.lastindex or 0)
    body = code[start:end].rstrip()
    offset = start + len(body) - len(body.lstrip())
    paragraph = body.lstrip()
    stop = _PARAGRAPH_END.search(paragraph)
    spans = sentences(paragraph[: stop.start()] if stop else paragraph)
    return [
        (offset + first, offset + last)
        for first, last in spans
        if paragraph[last - 1] in ".!?" and len(paragraph[first:last].split()) >= _LEAST_WORDS
    ]
