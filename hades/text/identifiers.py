"""Identifiers as words: `maxRetries`, `max_retries` and `http.Client` are found by their parts and as a whole.

One rule serves what is stored and what is asked, so that every store finds the same. Words that texts hold anyway are
not repeated: only the parts of compound names and the joined form of dotted ones are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_COMPOUND = re.compile(r"[a-z\d][A-Z]|[A-Z]{2}[a-z]|[^_]_+[^_]|[^\W\d_]\d|\w\.\w")
_PART = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_RECEIVERS = frozenset({"self", "cls", "this", "super"})
_SHORTEST = 2  # of a part; a single letter finds everything
_MAX_NAME = 200  # longer runs are data


def identifier_words(text: str) -> list[str]:
    """Parts of the compound names in a text, in order, and each dotted name joined by underscores, once."""
    if not _COMPOUND.search(text):
        return []
    seen: set[str] = set()
    found: list[str] = []
    for name in _NAME.findall(text):
        joined, parts = _words_of(name)
        if joined and name not in seen:
            seen.add(name)
            found += joined
        found += parts
    return found


def split_identifier(name: str) -> list[str]:
    """The parts of a compound name in lower case; none for a plain word.

    A capitalised word of two parts whose first has at most two letters is a surname (`McDonald`), not an identifier.
    """
    if not _COMPOUND.search(name):
        return []
    parts = _PART.findall(name)
    if len(parts) < 2 or (len(parts) == 2 and len(parts[0]) <= 2 and parts[0].istitle() and parts[1].istitle()):
        return []
    return [part.lower() for part in parts if len(part) >= _SHORTEST]


def with_identifiers(text: str) -> str:
    """A question with the parts of its identifiers behind it."""
    return " ".join([text, *dict.fromkeys(identifier_words(text))])


@lru_cache(1 << 16)
def _words_of(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a dotted name adds as a whole, and the parts of its components; names of code come back again and again."""
    if len(name) > _MAX_NAME or not _COMPOUND.search(name):
        return (), ()
    components = name.split(".")
    joined = tuple(_join_dotted(components)) if len(components) > 1 else ()
    return joined, tuple(part for component in components for part in split_identifier(component))


def _join_dotted(components: list[str]) -> Iterator[str]:
    """The joined form of a dotted name, without the receiver, and its components."""
    kept = [one.strip("_").lower() for one in components if one not in _RECEIVERS]
    kept = [one for one in kept if len(one) >= _SHORTEST]
    if len(kept) > 1:
        yield "_".join(kept)
    yield from kept
