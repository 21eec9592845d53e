"""How text becomes terms, the same for what is searched and for what is asked."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from hades.text.stemmer import stem

_WORD = re.compile(r"[\w\u0300-\u036f]+")
_CACHED_WORDS = 1 << 20
# What the pattern does, for ASCII, several times faster: letters in lower case, blanks for what is in no word.
_ASCII = bytes(ord(c.lower()) if c.isalnum() or c == "_" else 32 for c in map(chr, range(128))).ljust(256)


def fold(text: str) -> str:
    """Lower case without accents."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.lower())
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def words(text: str) -> list[str]:
    """The words of a text, folded, in order."""
    if text.isascii():
        return text.encode().translate(_ASCII).decode().split()
    return _WORD.findall(fold(text))


def spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text stand, in characters of it as written."""
    return [match.span() for match in _WORD.finditer(text)]


def terms(text: str) -> list[str]:
    """The distinct stems of a text, in order of appearance."""
    return list(dict.fromkeys(map(stem_word, words(text))))


stem_word = lru_cache(1 << 16)(stem)  # the stem of a folded word; words come back


class Vocabulary(dict[str, int]):
    """Word to term number, filled as words are met; the words are a bounded cache, the terms are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.terms: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        number = self.terms.setdefault(stem(word), len(self.terms))
        if len(self) >= _CACHED_WORDS:
            self.clear()
        self[word] = number
        return number

    def numbers(self, text: str) -> list[int]:
        """The term of each word of a text."""
        return [self[word] for word in words(text)]
