"""Words of many texts as arrays: where each stands, what it is when folded, how it is written, what parts it from the last.

A corpus is read once, in blocks, with no Python loop over words; every later step works on these columns. A word is a
maximal run of letters, digits and underscores; folding drops case and diacritics, so punctuation, hyphens, apostrophes and
possessives cannot keep two spellings of a name apart. Word identity is a 64-bit polynomial hash of the folded letters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Bits = NDArray[np.uint8]
Gaps = NDArray[np.uint16]
Flags = NDArray[np.bool_]
T = TypeVar("T", np.int64, np.uint64)

# How a word is written.
CAPITAL, ALL_CAPS, DIGIT_FIRST, CODE_LIKE, SINGLE = 1, 2, 4, 8, 16
# What stands between a word and the one before it.
SPACE, LINK, DOT, COMMA, OPEN, CLOSE, QUOTE, STOP, _NEWLINE = 1, 2, 4, 8, 16, 32, 64, 128, 256

_KNOWN_CODES = 0x3000  # beyond these code points letters are asked for one by one
_LETTER, _UPPER, _DIGIT, _UNDERSCORE = 1, 2, 4, 8
_BLOCK_CHARS = 1 << 21
_WIDEST_GAP = 8
_CHAR_BASE = 0x9E3779B97F4A7C15  # odd, so it has an inverse modulo 2**64
_WORD_BASE = 0xD6E8FEB86659FD93
_UNDECOMPOSED = {"ł": "l", "ø": "o", "đ": "d", "ı": "i", "ð": "d", "þ": "t", "æ": "a", "œ": "o", "ß": "s"}
_GAPS = {
    SPACE: " \t\u00a0\u2009\u202f",
    LINK: "-'’‘&/–‐‑+",
    DOT: ".",
    COMMA: ",:",
    OPEN: "([{",
    CLOSE: ")]}",
    QUOTE: '"“”«»`„',
    _NEWLINE: "\n\r",
}


@dataclass(frozen=True)
class Tokens:
    """Words of a list of texts, in order: one row a word, and for each distinct word its hash and its folded letters."""

    text: Ints  # index of the text
    start: Ints  # [start, end) in characters of that text
    end: Ints
    word: Ints
    shape: Bits
    gap: Gaps  # what stands before the word; STOP at the start of a text
    vocabulary: Hashes  # sorted; `word` points into it
    folded: tuple[str, ...]  # beside `vocabulary`
    _answers: dict[frozenset[str], Flags] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.word)

    def among(self, words: frozenset[str]) -> Flags:
        """Which rows hold one of these words; asked once a distinct word, and remembered."""
        if words not in self._answers:
            self._answers[words] = self.where(words.__contains__)
        return self._answers[words]

    def where(self, holds: Callable[[str], bool]) -> Flags:
        """Which rows hold a word that satisfies the test, given in its folded form."""
        answers = np.fromiter(map(holds, self.folded), dtype=np.bool_, count=len(self.folded))
        return answers[self.word]


def tokenize(texts: Sequence[str]) -> Tokens:
    """The words of every text; the same text always gives the same rows."""
    blocks = [_tokenize_block(texts[first:last], first) for first, last in _blocks(texts)]
    columns = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    text, start, end, hashes, shape, gap = columns
    word, vocabulary = encode(hashes)
    sample = np.zeros(len(vocabulary), dtype=np.int64)
    sample[word[::-1]] = np.arange(len(word) - 1, -1, -1)
    rows = zip(text[sample].tolist(), start[sample].tolist(), end[sample].tolist(), strict=True)
    folded = tuple(fold(texts[index][begin:stop]) for index, begin, stop in rows)
    return Tokens(text, start, end, word, shape, gap, vocabulary, folded)


def span_hashes(tokens: Tokens, first: Longs, last: Longs) -> Hashes:
    """One hash for each run of words [first, last); equal runs of folded words have equal hashes."""
    hashes, sums = tokens.vocabulary, np.zeros(len(first), dtype=np.uint64)
    width = int((last - first).max(initial=0))
    power = 1
    for step in range(width):
        here = first + step
        inside = here < last
        sums[inside] += hashes[tokens.word[here[inside]]] * np.uint64(power)
        power = power * _WORD_BASE & 0xFFFFFFFFFFFFFFFF
    return sums ^ (sums >> np.uint64(31))


def encode(hashes: Hashes) -> tuple[Ints, Hashes]:
    """Small numbers for hashes and the hash of each number, numbered in sorted order of the hashes."""
    table = pa.array(hashes).dictionary_encode()
    distinct: Hashes = table.dictionary.to_numpy(zero_copy_only=False)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[table.indices.to_numpy(zero_copy_only=False)], distinct[order]


def distinct(values: NDArray[T]) -> NDArray[T]:
    """The different values in order; by sorting, which is faster than hashing for what is nearly sorted."""
    ordered = np.sort(values)
    fresh = np.ones(len(ordered), dtype=np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


def running(flags: Flags) -> Ints:
    """How many flags are set before each place and before the end, so that a difference counts those in a span."""
    counts = np.zeros(len(flags) + 1, dtype=np.int32)
    np.cumsum(flags, out=counts[1:])
    return counts


def fold(text: str) -> str:
    """Lower case without diacritics, letter by letter, as words are compared."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def _blocks(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Ranges of texts of about two million characters, so that memory does not follow the corpus."""
    cuts, size = [0], 0
    for index, text in enumerate(texts):
        if size and size + len(text) + 1 > _BLOCK_CHARS:
            cuts.append(index)
            size = 0
        size += len(text) + 1
    return list(zip(cuts, [*cuts[1:], len(texts)], strict=True))


def _tokenize_block(texts: Sequence[str], offset: int) -> tuple[Ints, Ints, Ints, Hashes, Bits, Gaps]:
    joined = "\n".join(texts) + "\n"
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    classes, values = _columns(codes)
    inside = classes != 0
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    if inside[0]:
        edges = np.concatenate([np.zeros(1, dtype=edges.dtype), edges])
    starts, ends = edges[0::2], edges[1::2]
    lengths = np.fromiter((len(text) + 1 for text in texts), dtype=np.int64, count=len(texts))
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    of_text = np.repeat(np.arange(len(texts)), np.diff(np.searchsorted(starts, bounds)))
    powers, inverses = _powers(max(12, len(codes).bit_length()))
    prefix = np.zeros(len(codes) + 1, dtype=np.uint64)
    np.multiply(values, powers[: len(codes)], out=values)
    np.cumsum(values, out=prefix[1:])
    words = (prefix[ends] - prefix[starts]) * inverses[starts]
    shapes = _shapes(classes, starts, ends)
    begin = bounds[of_text]
    return (
        (of_text + offset).astype(np.int32),
        (starts - begin).astype(np.int32),
        (ends - begin).astype(np.int32),
        words,
        shapes,
        _gap_bits(codes, starts, ends, shapes, of_text),
    )


def _shapes(classes: Bits, starts: Longs, ends: Longs) -> Bits:
    """How each word is written: bits for capital first, all capitals, digit first, mixed like code, one letter."""
    head, size = classes[starts], ends - starts
    inner = _inner_count(classes, _UPPER, starts)
    shape = np.where((head & _UPPER) != 0, CAPITAL, 0).astype(np.uint8)
    full = (shape != 0) & (inner == size - 1) & (size > 1)
    shape[full] |= ALL_CAPS
    shape[(inner > 0) & ~full] |= CODE_LIKE
    shape[((head & _UNDERSCORE) != 0) | (_inner_count(classes, _UNDERSCORE, starts) > 0)] |= CODE_LIKE
    shape[(head & _DIGIT) != 0] |= DIGIT_FIRST
    shape[size == 1] |= SINGLE
    return shape


def _inner_count(classes: Bits, kind: int, starts: Longs) -> Longs:
    """How many characters of a kind each word holds after its first; such characters are few."""
    places = np.flatnonzero(((classes[1:] & kind) != 0) & (classes[:-1] != 0)) + 1
    return np.bincount(np.searchsorted(starts, places, side="right") - 1, minlength=len(starts))


def _gap_bits(codes: NDArray[np.uint32], starts: Longs, ends: Longs, shapes: Bits, of_text: Longs) -> Gaps:
    """The kinds of character before each word: nearly always one space, so only longer gaps are looked at again."""
    bits = np.full(len(starts), STOP, dtype=np.uint16)
    if len(starts) < 2:
        return bits
    size = starts[1:] - ends[:-1]
    bits[1:] = _gap_of(codes[ends[:-1]])
    long = np.flatnonzero(size > 1)
    for step in range(1, _WIDEST_GAP):
        long = long[size[long] > step]
        bits[long + 1] |= _gap_of(codes[ends[long] + step])
    bits[1:][size > _WIDEST_GAP] |= STOP
    # A wrapped line goes on in lower case; anything else on a new line starts anew.
    broken = (bits & _NEWLINE) != 0
    bits[broken] = np.where(shapes[broken] & CAPITAL, STOP, (bits[broken] ^ _NEWLINE) | SPACE)
    bits[1:][of_text[1:] != of_text[:-1]] = STOP
    return bits


def _gap_of(codes: NDArray[np.uint32]) -> Gaps:
    gaps = _tables()[2]
    return np.where(codes < _KNOWN_CODES, gaps[np.minimum(codes, _KNOWN_CODES - 1)], np.uint16(STOP))


def _columns(codes: NDArray[np.uint32]) -> tuple[Bits, Hashes]:
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
        columns[1][far] = _mixed(folded)[which]
    return columns


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
    return classes, _mixed(folded), gaps


@cache
def _powers(bits: int) -> tuple[Hashes, Hashes]:
    """Powers of the base and of its inverse modulo 2**64, so that any slice of a running sum becomes a word's hash."""
    tables = [np.full(1 << bits, base, dtype=np.uint64) for base in (_CHAR_BASE, pow(_CHAR_BASE, -1, 1 << 64))]
    for table in tables:
        table[0] = 1
        np.cumprod(table, out=table)
    return tables[0], tables[1]


def _mixed(values: Hashes) -> Hashes:
    """A well-spread 64-bit number for each code point (the finaliser of splitmix64)."""
    mixed = (values + np.uint64(1)) * np.uint64(_CHAR_BASE)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _class_of(char: str) -> int:
    if char == "_":
        return _LETTER | _UNDERSCORE
    if not char.isalnum():
        return 0
    return _LETTER | (_UPPER if char.isupper() else 0) | (_DIGIT if char.isdigit() else 0)


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
