"""Words of many texts as arrays: where each stands, how it is written, and what parts it from the word before.

A corpus is read once, in blocks, with no Python loop over words; every later step works on these columns. A word is a
maximal run of letters, digits and underscores; folding drops case and diacritics, so punctuation, hyphens, apostrophes
and possessives cannot keep two spellings of a name apart. Word identity is a 64-bit polynomial hash of the folded
letters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hades.text.arrays import Bits, Flags, Gaps, Hashes, Ints, Longs, encode
from hades.text.letters import (
    DIGIT,
    NEWLINE,
    SPACE,
    STOP,
    UNDERSCORE,
    UPPER,
    fold,
    gap_bits,
    letter_columns,
)

# How a word is written.
CAPITAL, ALL_CAPS, DIGIT_FIRST, CODE_LIKE, SINGLE = 1, 2, 4, 8, 16

_BLOCK_CHARS = 1 << 18  # columns of a block fit into the cache of a core
_WIDEST_GAP = 8
CHAR_BASE = 0x9E3779B97F4A7C15  # of the hash of a word; odd, so it has an inverse modulo 2**64
WORD_BASE = 0xD6E8FEB86659FD93


@dataclass(frozen=True)
class Words:
    """Words of a list of texts, in order: one row a word, and each distinct word's hash and folded letters."""

    text: Ints  # index of the text
    start: Ints  # [start, end) in characters of that text
    end: Ints
    word: Ints
    shape: Bits
    vocabulary: Hashes  # sorted; `word` points into it
    folded: tuple[str, ...]  # beside `vocabulary`

    def __len__(self) -> int:
        return len(self.word)

    def take(self, rows: Longs) -> Words:
        """Some of the words, in the order given."""
        return Words(
            self.text[rows],
            self.start[rows],
            self.end[rows],
            self.word[rows],
            self.shape[rows],
            self.vocabulary,
            self.folded,
        )


@dataclass(frozen=True)
class Tokens(Words):
    """Words as a text is first read: with what stands between them."""

    gap: Gaps  # what stands before the word; STOP at the start of a text
    _answers: dict[frozenset[str], Flags] = field(default_factory=dict, repr=False, compare=False)

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
    return Tokens(text, start, end, word, shape, vocabulary, folded, gap)


def span_hashes(tokens: Words, first: Longs, last: Longs) -> Hashes:
    """One hash for each run of words [first, last); equal runs of folded words have equal hashes."""
    hashes, sums = tokens.vocabulary, np.zeros(len(first), dtype=np.uint64)
    width = int((last - first).max(initial=0))
    power = 1
    for step in range(width):
        here = first + step
        inside = here < last
        sums[inside] += hashes[tokens.word[here[inside]]] * np.uint64(power)
        power = power * WORD_BASE & 0xFFFFFFFFFFFFFFFF
    return sums ^ (sums >> np.uint64(31))


def _blocks(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Ranges of texts of about a quarter of a million characters, so that memory does not follow the corpus."""
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
    classes, values = letter_columns(codes)
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
        _gaps(codes, starts, ends, shapes, of_text),
    )


def _shapes(classes: Bits, starts: Longs, ends: Longs) -> Bits:
    """How each word is written: bits for capital first, all capitals, digit first, mixed like code, one letter."""
    head, size = classes[starts], ends - starts
    inner = _inner_count(classes, UPPER, starts)
    shape = np.where((head & UPPER) != 0, CAPITAL, 0).astype(np.uint8)
    full = (shape != 0) & (inner == size - 1) & (size > 1)
    shape[full] |= ALL_CAPS
    shape[(inner > 0) & ~full] |= CODE_LIKE
    shape[((head & UNDERSCORE) != 0) | (_inner_count(classes, UNDERSCORE, starts) > 0)] |= CODE_LIKE
    shape[(head & DIGIT) != 0] |= DIGIT_FIRST
    shape[size == 1] |= SINGLE
    return shape


def _inner_count(classes: Bits, kind: int, starts: Longs) -> Longs:
    """How many characters of a kind each word holds after its first; such characters are few."""
    places = np.flatnonzero(((classes[1:] & kind) != 0) & (classes[:-1] != 0)) + 1
    return np.bincount(np.searchsorted(starts, places, side="right") - 1, minlength=len(starts))


def _gaps(codes: NDArray[np.uint32], starts: Longs, ends: Longs, shapes: Bits, of_text: Longs) -> Gaps:
    """The kinds of character before each word: nearly always one space, so only longer gaps are looked at again."""
    bits = np.full(len(starts), STOP, dtype=np.uint16)
    if len(starts) < 2:
        return bits
    size = starts[1:] - ends[:-1]
    bits[1:] = gap_bits(codes[ends[:-1]])
    long = np.flatnonzero(size > 1)
    for step in range(1, _WIDEST_GAP):
        long = long[size[long] > step]
        bits[long + 1] |= gap_bits(codes[ends[long] + step])
    bits[1:][size > _WIDEST_GAP] |= STOP
    # A wrapped line goes on in lower case; anything else on a new line is a new sentence.
    broken = (bits & NEWLINE) != 0
    bits[broken] = np.where(shapes[broken] & CAPITAL, STOP, (bits[broken] ^ NEWLINE) | SPACE)
    bits[1:][of_text[1:] != of_text[:-1]] = STOP
    return bits


@cache
def _powers(bits: int) -> tuple[Hashes, Hashes]:
    """Powers of the base and of its inverse modulo 2**64, so that any slice of a running sum becomes a word's hash."""
    tables = [np.full(1 << bits, base, dtype=np.uint64) for base in (CHAR_BASE, pow(CHAR_BASE, -1, 1 << 64))]
    for table in tables:
        table[0] = 1
        np.cumprod(table, out=table)
    return tables[0], tables[1]
