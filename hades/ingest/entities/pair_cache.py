"""Which vectors came near each other, kept between derivations: only new vectors are compared with the others.

Vectors are known by a digest. A cache that is absent, damaged or of another threshold costs time, never a result.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Matrix = NDArray[np.float32]
Digests = NDArray[np.bytes_]
_FILE = "similar-pairs.npz"
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class KnownPairs:
    """Which of the digests asked for are known, the pairs of known ones, and the known vectors at unit length."""

    is_known: NDArray[np.bool_]
    left: Longs  # places among the digests asked for
    right: Longs
    units: Matrix  # one row a known digest, in their order

    @classmethod
    def none(cls, asked: int) -> KnownPairs:
        """Nothing is known."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(asked, dtype=np.bool_), empty, empty, np.zeros((0, 0), dtype=np.float32))


@dataclass(frozen=True)
class _Held:
    digests: Digests  # in order
    units: Matrix
    left: Longs
    right: Longs


class PairCache:
    """Digests of vectors in order, the vectors, and pairs of places whose products came near the threshold."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE
        self._held: tuple[float, _Held | None] | None = None  # as last read, with the threshold asked for

    def find(self, digests: Digests, threshold: float) -> KnownPairs:
        """What is known of these distinct digests, which are in order."""
        self._held = threshold, self._load(threshold)
        held = self._held[1]
        if held is None or not len(digests) or not len(held.digests):
            return KnownPairs.none(len(digests))
        place = np.searchsorted(digests, held.digests)
        place[place == len(digests)] = 0
        still = np.flatnonzero(digests[place] == held.digests)
        number = np.full(len(held.digests), -1, dtype=np.int64)
        number[still] = place[still]
        known = np.zeros(len(digests), dtype=np.bool_)
        known[place[still]] = True
        both = (number[held.left] >= 0) & (number[held.right] >= 0)
        return KnownPairs(known, number[held.left[both]], number[held.right[both]], held.units[still])

    def keep(self, digests: Digests, rows: Longs, units: Matrix, pairs: tuple[Longs, Longs], threshold: float) -> None:
        """Write these vectors and their pairs in place of those held, unless they are the same.

        `rows` are places among the digests, those that have a vector, beside `units`; so are the ends of `pairs`.
        """
        order = np.argsort(rows, kind="stable")
        held = self._held[1] if self._held and self._held[0] == threshold else None
        if held is not None and np.array_equal(digests[rows[order]], held.digests):
            return
        number = np.full(len(digests), -1, dtype=np.int64)
        number[rows[order]] = np.arange(len(rows))
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_name(f"{_FILE}.{os.getpid()}.partial")
        with partial.open("wb") as out:
            np.savez(
                out,
                digests=digests[rows[order]],
                units=units[order],
                left=number[pairs[0]],
                right=number[pairs[1]],
                threshold=np.array(threshold),
            )
        partial.replace(self._file)

    def _load(self, threshold: float) -> _Held | None:
        try:
            with np.load(self._file, allow_pickle=False) as file:
                held = _Held(file["digests"], file["units"], file["left"], file["right"])
                is_same = float(file["threshold"]) == threshold
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        ends = np.concatenate([held.left, held.right])
        is_whole = len(held.left) == len(held.right) and len(held.units) == len(held.digests)
        is_whole &= not len(ends) or bool(ends.min() >= 0 and ends.max() < len(held.digests))
        return held if is_same and is_whole and held.units.ndim == 2 else None


def vector_digests(vectors: Matrix, rows: Longs) -> Digests:
    """One digest for each of these rows, as hexadecimal digits."""
    texts = (hashlib.blake2b(vectors[row].tobytes(), digest_size=_DIGEST_BYTES).hexdigest() for row in rows.tolist())
    return np.array([text.encode() for text in texts], dtype=f"S{2 * _DIGEST_BYTES}")
