"""What single characters are: letters and how they fold, and the kinds of mark that part words.

Folding is letter by letter, so that a folded text has the length of the text and offsets mean the same in both.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hades.text.arrays import Bits, Gaps, Hashes

LETTER, UPPER, DIGIT, UNDERSCORE = 1, 2, 4, 8
# What may stand between a word and the one before it.
SPACE, LINK, DOT, COMMA, OPEN, CLOSE, QUOTE, STOP, NEWLINE = 1, 2, 4, 8, 16, 32, 64, 128, 256

_KNOWN_CODES = 0x3000  # beyond these code points letters are asked for one by one
_UNDECOMPOSED = {"ł": "l", "ø": "o", "đ": "d", "ı": "i", "ð": "d", "þ": "t", "æ": "a", "œ": "o", "ß": "s"}
_GAPS = {
    SPACE: " \t\u00a0\u2009\u202f",
    LINK: "-'’‘&/–‐‑+",
    DOT: ".",
    COMMA: ",:",
    OPEN: "([{",
    CLOSE: ")]}",
    QUOTE: '"“”«»`„',
    NEWLINE: "\n\r",
}


def fold(text: str) -> str:
    """Lower case without diacritics, letter by letter, as words are compared."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def letter_columns(codes: NDArray[np.uint32]) -> tuple[Bits, Hashes]:
    """For each character its class and the hash value of its folded letter."""
    classes, values, _ = _tables()
    index = codes.astype(np.intp)
    columns = classes.take(index, mode="clip"), values.take(index, mode="clip")
    far = np.flatnonzero(codes >= _KNOWN_CODES)
    if len(far):
        rare, which = np.unique(codes[far], return_inverse=True)
        kinds = np.array([_class_of(chr(code)) for code in rare.tolist()], dtype=np.uint8)
        folded = np.array([ord(_fold_char(chr(code))) for code in rare.tolist()], dtype=np.uint64)
        columns[0][far] = kinds[which]
        columns[1][far] = _mix(folded)[which]
    return columns


def gap_bits(codes: NDArray[np.uint32]) -> Gaps:
    """The bit each character sets in the gap it stands in."""
    gaps = _tables()[2]
    return np.where(codes < _KNOWN_CODES, gaps[np.minimum(codes, _KNOWN_CODES - 1)], np.uint16(STOP))


@cache
def _tables() -> tuple[Bits, Hashes, Gaps]:
    """By code point: class of character, hash value of its folded letter, and the bit it sets in a gap."""
    chars = [chr(code) for code in range(_KNOWN_CODES)]
    classes = np.array([_class_of(char) for char in chars], dtype=np.uint8)
    folded = np.array([ord(_fold_char(char)) for char in chars], dtype=np.uint64)
    gaps = np.full(_KNOWN_CODES, STOP, dtype=np.uint16)
    for bit, members in _GAPS.items():
        for char in members:
            gaps[ord(char)] = bit
    return classes, _mix(folded), gaps


def _mix(values: Hashes) -> Hashes:
    """A well-spread 64-bit number for each code point (the finaliser of splitmix64)."""
    mixed = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _class_of(char: str) -> int:
    if char == "_":
        return LETTER | UNDERSCORE
    if not char.isalnum():
        return 0
    return LETTER | (UPPER if char.isupper() else 0) | (DIGIT if char.isdigit() else 0)


class _Folding(dict[int, str]):
    """The folded letter of each code point, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold_char(chr(code))
        return folded


_FOLDING = _Folding()


def _fold_char(char: str) -> str:
    lower = char.lower()[:1]
    plain = unicodedata.normalize("NFKD", lower)[:1] or char
    return _UNDECOMPOSED.get(plain, plain)
