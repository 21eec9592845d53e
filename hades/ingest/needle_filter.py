"""Which texts of a column may hold one of many needles: one pass over the bytes, whatever the number of needles.

The bytes of a column are read as whole machine words. Wherever a needle of at least 15 bytes stands, one of the words
lies inside it, so the words at eight offsets of the needle find it. From 23 bytes on two neighbours lie inside it, and
both must agree; needles of 7 to 14 bytes are found by words of four bytes. Proposed texts are
tested exactly by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Longs = NDArray[np.int64]
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # spreads words over the table: Fibonacci hashing
_TABLE_BITS = 16
_BLOCK_WORDS = 1 << 15  # looked at together: what is worked out for them stays in the processor's cache


class NeedleFilter:
    """Proposes texts that may hold one of the needles; it never leaves out one that does."""

    def __init__(self, needles: Iterable[str]) -> None:
        held = sorted({needle.encode() for needle in needles})
        self._is_open = any(len(needle) < 7 for needle in held)  # nothing to go by: every text is proposed
        groups = (
            _Words(8, 2, [needle for needle in held if len(needle) >= 23]),
            _Words(8, 1, [needle for needle in held if 15 <= len(needle) < 23]),
            _Words(4, 1, [needle for needle in held if 7 <= len(needle) < 15]),
        )
        self._words = [words for words in groups if words.is_wanted]

    def propose(self, texts: pa.Array) -> Longs:
        """The places of texts, in order, that may hold a needle. `texts` is an array of strings."""
        if self._is_open:
            return np.arange(len(texts))
        if not len(texts):
            return np.zeros(0, dtype=np.int64)
        _, offsets_buffer, values = texts.buffers()
        if values is None:
            return np.zeros(0, dtype=np.int64)
        offsets = np.frombuffer(offsets_buffer, dtype=np.int32, count=texts.offset + len(texts) + 1)[texts.offset :]
        begin = int(offsets[0])
        data = np.frombuffer(values, dtype=np.uint8, offset=begin, count=int(offsets[-1]) - begin)
        places = np.concatenate([np.zeros(0, dtype=np.int64), *(words.find(data) for words in self._words)])
        return np.unique(np.searchsorted(offsets, begin + places, side="right") - 1)


class _Words:
    """Finds runs of `count` machine words of `width` bytes that stand in needles."""

    def __init__(self, width: int, count: int, needles: Sequence[bytes]) -> None:
        self._width, self._count, self._kind = width, count, np.dtype(f"<u{width}")
        size = width * count
        found = [needle[-(size + width - 1) :][at : at + size] for needle in needles for at in range(width)]
        runs = np.frombuffer(b"".join(found), dtype=self._kind).reshape(-1, count)
        self._codes = np.unique(_join([runs[:, number] for number in range(count)]))
        self._table = np.zeros(1 << _TABLE_BITS, dtype=np.bool_)
        self._table[_spread(runs[:, 0])] = True

    @property
    def is_wanted(self) -> bool:
        """Whether there is anything to find."""
        return len(self._codes) > 0

    def find(self, data: NDArray[np.uint8]) -> Longs:
        """Where such a run begins in the bytes."""
        words = data[: len(data) // self._width * self._width].view(self._kind)
        firsts = words[: max(0, len(words) - self._count + 1)]
        blocks = (firsts[begin : begin + _BLOCK_WORDS] for begin in range(0, len(firsts), _BLOCK_WORDS))
        found = [
            np.flatnonzero(self._table.take(_spread(block))) + place * _BLOCK_WORDS
            for place, block in enumerate(blocks)
        ]
        likely = np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
        codes = _join([words[likely + number] for number in range(self._count)])
        place = np.searchsorted(self._codes, codes)
        place[place == len(self._codes)] = 0
        places: Longs = likely[self._codes[place] == codes] * self._width
        return places


def _join(words: Sequence[NDArray[np.unsignedinteger]]) -> NDArray[np.uint64]:
    """One number for each run of words; two runs may share it, which proposes a text too many."""
    code = np.zeros(len(words[0]), dtype=np.uint64)
    for one in words:
        code = code * _MULTIPLIER + one
    return code


def _spread(words: NDArray[np.unsignedinteger]) -> Longs:
    """A number below the size of the table for each word."""
    product = words * _MULTIPLIER
    product >>= np.uint64(64 - _TABLE_BITS)
    return product.view(np.int64)
