"""Identifiers as words: `maxRetries`, `max_retries` and `http.Client` are found by their parts and as a whole.

One rule serves what is stored and what is asked, so that every store finds the same. Words that texts hold anyway are
not repeated: only the parts of compound names and the joined form of dotted ones are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_COMPOUND = re.compile(r"[a-z\d][A-Z]|[A-Z]{2}[a-z]|[^_]_+[^_]|[^\W\d_]\d|\w\.\w")
_PART = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_RECEIVERS = frozenset({"self", "cls", "this", "super"})
_SHORTEST = 2  # of a part; a single letter finds everything
_MAX_NAME = 200  # longer runs are data
_KEPT_NAMES = 1 << 18


def identifier_words(text: str) -> list[str]:
    """Parts of the compound names in a text, in order, and each dotted name joined by underscores, once."""
    if not _COMPOUND.search(text):
        return []
    seen: set[str] = set()
    found: list[str] = []
    names = _NAME.findall(text)
    for name, words in zip(names, map(_WORDS.__getitem__, names), strict=True):
        if words is not None:
            joined, parts = words
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


class _WordsOfNames(dict[str, tuple[tuple[str, ...], tuple[str, ...]] | None]):
    """What a dotted name adds as a whole, and the parts of its components; None for a plain word.

    Names of code come back again and again, and so do the components of dotted ones.
    """

    def __missing__(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        if len(self) >= _KEPT_NAMES:
            self.clear()
        words = None if len(name) > _MAX_NAME else self._read(name)
        self[name] = words
        return words

    def _read(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        components = name.split(".")
        if len(components) == 1:
            parts = () if name.isalpha() and name.islower() else tuple(split_identifier(name))
            return ((), parts) if parts else None
        read = [self[one] for one in components]
        joined = tuple(_join_dotted(components))
        return joined, tuple([part for words in read if words is not None for part in words[1]])


def _join_dotted(components: list[str]) -> Iterator[str]:
    """The joined form of a dotted name, without the receiver, and its components."""
    kept = [one.strip("_").lower() for one in components if one not in _RECEIVERS]
    kept = [one for one in kept if len(one) >= _SHORTEST]
    if len(kept) > 1:
        yield "_".join(kept)
    yield from kept


_WORDS = _WordsOfNames()
