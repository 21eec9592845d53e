"""Which vectors came near each other, kept between derivations: only new vectors are compared with the others.

Vectors are known by a digest of their numbers. A cache that is absent, damaged or of another threshold costs time,
never a result.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Found = tuple[NDArray[np.bool_], Longs, Longs]
_FILE = "similar-pairs.npz"
_DIGEST_BYTES = 16


class PairCache:
    """Digests of vectors in order, and pairs of places among them whose products came near the threshold."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE

    def find(self, digests: NDArray[np.bytes_], threshold: float) -> Found:
        """Which of these distinct digests are known, and the pairs of known ones, as places in `digests`."""
        held, left, right = self._load(threshold)
        place = np.searchsorted(digests, held)
        place[place == len(digests)] = 0
        still = np.flatnonzero(digests[place] == held) if len(digests) else np.zeros(0, np.int64)
        number = np.full(len(held), -1, dtype=np.int64)
        number[still] = place[still]
        known = np.zeros(len(digests), dtype=bool)
        known[place[still]] = True
        both = (number[left] >= 0) & (number[right] >= 0)
        return known, number[left[both]], number[right[both]]

    def keep(self, digests: NDArray[np.bytes_], left: Longs, right: Longs, threshold: float) -> None:
        """Write the pairs of these vectors in place of those held, unless these are the same."""
        if np.array_equal(digests, self._load(threshold)[0]):
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_name(f"{_FILE}.{os.getpid()}.partial")
        with partial.open("wb") as out:
            np.savez(out, digests=digests, left=left, right=right, threshold=np.array(threshold))
        partial.replace(self._file)

    def _load(self, threshold: float) -> tuple[NDArray[np.bytes_], Longs, Longs]:
        nothing = np.zeros(0, f"S{2 * _DIGEST_BYTES}"), np.zeros(0, np.int64), np.zeros(0, np.int64)
        try:
            with np.load(self._file, allow_pickle=False) as held:
                digests, left, right = held["digests"], held["left"], held["right"]
                is_same = float(held["threshold"]) == threshold
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return nothing
        ends = np.concatenate([left, right])
        is_whole = len(left) == len(right) and (not len(ends) or (ends.min() >= 0 and ends.max() < len(digests)))
        return (digests, left, right) if is_same and is_whole else nothing


def vector_digests(vectors: NDArray[np.float32], rows: Longs) -> NDArray[np.bytes_]:
    """One digest for each of these rows, as hexadecimal digits."""
    texts = (hashlib.blake2b(vectors[row].tobytes(), digest_size=_DIGEST_BYTES).hexdigest() for row in rows.tolist())
    return np.array([text.encode() for text in texts], dtype=f"S{2 * _DIGEST_BYTES}")
