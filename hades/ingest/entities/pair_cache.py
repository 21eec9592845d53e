"""Which vectors came near each other and how near, kept between derivations: only new ones are compared with others.

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
Doubles = NDArray[np.float64]
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
    cosine: Doubles  # of each pair
    own: Doubles  # of each known vector with itself, which rounding may put below 1
    units: Matrix  # one row a known digest, in their order; no rows when every digest is known and none was dropped

    @classmethod
    def none(cls, asked: int) -> KnownPairs:
        """Nothing is known."""
        empty, zero = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float64)
        return cls(np.zeros(asked, dtype=np.bool_), empty, empty, zero, zero, np.zeros((0, 0), dtype=np.float32))


@dataclass(frozen=True)
class _Held:
    """The file but for the vectors, which are read when some digest is new or gone."""

    digests: Digests  # in order
    left: Longs
    right: Longs
    cosine: Doubles
    own: Doubles


class PairCache:
    """Digests of vectors in order, the vectors, and pairs of places whose products came near the threshold."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE
        self._held: tuple[float, _Held | None] | None = None  # as last read, with the threshold asked for

    def find(self, digests: Digests, threshold: float) -> KnownPairs:
        """What is known of these distinct digests, which are in order."""
        held, units = self._load(digests, threshold)
        self._held = threshold, held
        if held is None or not len(digests) or not len(held.digests):
            return KnownPairs.none(len(digests))
        place = np.searchsorted(digests, held.digests)
        place[place == len(digests)] = 0
        still = np.flatnonzero(digests[place] == held.digests)
        number = np.full(len(held.digests), -1, dtype=np.int64)
        number[still] = place[still]
        known = np.zeros(len(digests), dtype=np.bool_)
        known[place[still]] = True
        both = np.flatnonzero((number[held.left] >= 0) & (number[held.right] >= 0))
        return KnownPairs(
            known,
            number[held.left[both]],
            number[held.right[both]],
            held.cosine[both],
            held.own[still],
            units[still] if len(units) else units,
        )

    def keep(self, digests: Digests, rows: Longs, pairs: KnownPairs, threshold: float) -> None:
        """Write these vectors and their pairs in place of those held, unless they are the same.

        `rows` are places among the digests, those that have a vector, beside `units` and `own`; so are the ends of the
        pairs.
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
                units=pairs.units[order],
                own=pairs.own[order],
                left=number[pairs.left],
                right=number[pairs.right],
                cosine=pairs.cosine,
                threshold=np.array(threshold),
            )
        partial.replace(self._file)

    def _load(self, digests: Digests, threshold: float) -> tuple[_Held | None, Matrix]:
        """What the file holds, and its vectors unless these digests are exactly those held."""
        none = np.zeros((0, 0), dtype=np.float32)
        try:
            with np.load(self._file, allow_pickle=False) as file:
                held = _Held(file["digests"], file["left"], file["right"], file["cosine"], file["own"])
                is_same = float(file["threshold"]) == threshold
                is_needed = is_same and not np.array_equal(held.digests, digests)
                units = file["units"] if is_needed else none
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None, none
        ends = np.concatenate([held.left, held.right])
        is_whole = len(held.left) == len(held.right) == len(held.cosine) and len(held.own) == len(held.digests)
        is_whole &= not is_needed or (units.ndim == 2 and len(units) == len(held.digests))
        is_whole &= not len(ends) or bool(ends.min() >= 0 and ends.max() < len(held.digests))
        return (held, units) if is_same and is_whole else (None, none)


def vector_digests(vectors: Matrix, rows: Longs) -> Digests:
    """One digest for each of these rows, as hexadecimal digits."""
    texts = (hashlib.blake2b(vectors[row].tobytes(), digest_size=_DIGEST_BYTES).hexdigest() for row in rows.tolist())
    return np.array([text.encode() for text in texts], dtype=f"S{2 * _DIGEST_BYTES}")
