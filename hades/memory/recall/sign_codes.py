"""Signs of rotated vectors, one bit each: which of many vectors are worth comparing exactly.

The number of bits in which two codes differ grows with the angle between the vectors (Charikar 2002, "Similarity
Estimation Techniques from Rounding Algorithms"). Comparing codes reads an eighth to a thirty-second of the bytes.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

_LEAST_BITS = 256  # of a code; shorter vectors are rotated more than once
_WORD = 64
_SEED = 17
_FAR = np.iinfo(np.uint16).max


class SignCodes:
    """Codes of the vectors of places, in order; they grow by doubling."""

    def __init__(self, dimension: int) -> None:
        self._axes = _axes(dimension)
        self._size = 0
        self._codes = np.zeros((self._axes.shape[1] // _WORD, 0), np.uint64)  # one row a word of the code

    def __len__(self) -> int:
        return self._size

    def extend(self, vectors: NDArray[np.float32]) -> None:
        """Codes for the next places."""
        size = self._size + len(vectors)
        if size > self._codes.shape[1]:
            grown = np.zeros((len(self._codes), max(1_024, 2 * size)), np.uint64)
            grown[:, : self._size] = self._codes[:, : self._size]
            self._codes = grown
        self._codes[:, self._size : size] = self._encode(vectors)
        self._size = size

    def nearest(self, vector: NDArray[np.float32], allowed: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
        """At least `count` of the allowed places, where there are as many: those whose codes differ least."""
        asked = self._encode(vector[None, :])[:, 0]
        distances = np.zeros(self._size, np.uint16)
        differing, counts = np.empty(self._size, np.uint64), np.empty(self._size, np.uint8)
        for word, part in zip(self._codes, asked, strict=True):
            np.bitwise_xor(word[: self._size], part, out=differing)
            distances += np.bitwise_count(differing, out=counts)
        distances[~allowed] = _FAR
        bits = len(self._codes) * _WORD
        per_distance = np.bincount(np.minimum(distances, bits + 1), minlength=bits + 2)[: bits + 1]
        bound = int(np.searchsorted(np.cumsum(per_distance), count))
        return np.flatnonzero(distances <= min(bound, bits))

    def _encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
        """(words, n) uint64."""
        signs = np.packbits(vectors @ self._axes > 0, axis=1)
        return np.ascontiguousarray(signs.view(np.uint64).T)


@cache
def _axes(dimension: int) -> NDArray[np.float32]:
    """(dimension, bits): random rotations side by side, the same in every process."""
    bits = -(-max(_LEAST_BITS, dimension) // _WORD) * _WORD
    chance = np.random.default_rng(_SEED)
    rotations = [np.linalg.qr(chance.standard_normal((dimension, dimension)))[0] for _ in range(-(-bits // dimension))]
    return np.ascontiguousarray(np.hstack(rotations)[:, :bits], np.float32)
