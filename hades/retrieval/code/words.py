"""Words of code: identifiers whole and in parts, and the phrases of string literals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from hades.text.stemmer import stem

CODE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]{3,}")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LITERAL = re.compile(r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`", re.S)
_LITERAL_WORD = re.compile(r"[a-z]{2,}")
_SHORTEST_LITERAL = 10
_LONGEST_WORD = 80
_COMMON = frozenset(
    """a an and are as at be been but by can could did do does for from had has have how i if in into is it its just me
    my no not of on or our should so some than that the their them then there these they this to was we were what when
    where which while who why will with would you your self cls def return import none true false elif else except raise
    try class lambda yield pass print async await const let var function new null undefined public private static void
    int str please like also get""".split()  # noqa: SIM905
)


def code_terms(text: str) -> list[str]:
    """The terms of a text in order: each identifier in parts, stemmed, and whole where it has several parts."""
    return [term for word in CODE_WORD.findall(text) for term in split_identifier(word)]


@lru_cache(1 << 17)
def split_identifier(word: str) -> tuple[str, ...]:
    """`parseHTTPHeader` gives pars, http, header and parsehttpheader. Common words give nothing."""
    if len(word) > _LONGEST_WORD:
        return ()
    parts = [part.lower() for part in _PART.findall(word)]
    found = [stem(part) for part in parts if len(part) > 1 and part not in _COMMON]
    whole = word.strip("_").lower()
    if len(parts) > 1 and len(whole) > 1:
        found.append(whole)
    return tuple(found)


def literals(text: str) -> Iterator[str]:
    """The string literals of code that are long enough to hold a phrase."""
    return (literal for literal in _LITERAL.findall(text) if len(literal) >= _SHORTEST_LITERAL)


def literal_words(text: str) -> list[str]:
    """The words of a sentence or literal in lower case; words join across numbers and placeholders."""
    return _LITERAL_WORD.findall(text.lower())
