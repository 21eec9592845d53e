"""Texts found by hash: two sorted arrays answer many look-ups at once and take the place of a dictionary."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


def hash_texts(texts: Iterable[str]) -> Hashes:
    """64 bits of BLAKE2b of each text; the same on every machine."""
    blake = hashlib.blake2b
    joined = b"".join(blake(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(joined, "<u8").astype(np.uint64)


@dataclass(frozen=True)
class Places:
    """Runs of equal hashes: the answers to question `asked[i]` stand at `first[i]:last[i]`."""

    asked: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def spread(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Question and place of every answer, in the order of the questions."""
        counts = self.last - self.first
        skipped = np.cumsum(counts) - counts
        return np.repeat(self.asked, counts), np.repeat(self.first - skipped, counts) + np.arange(int(counts.sum()))


def find(hashes: NDArray[Any], wanted: Hashes) -> Places:
    """Where these hashes stand in a sorted array; only those that do."""
    first = np.searchsorted(hashes, wanted, side="left")
    held = np.flatnonzero(first < len(hashes))
    asked = held[hashes[first[held]] == wanted[held]]
    last = np.searchsorted(hashes, wanted[asked], side="right")  # most are not there and need no second look
    return Places(asked, first[asked], last)
