"""Small array helpers and the names of array types; nothing here knows what the numbers mean."""

from __future__ import annotations

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


def place_in_run(values: Longs) -> Longs:
    """For each place how many equal values stand right before it."""
    changes = np.ones(len(values), dtype=np.bool_)
    changes[1:] = values[1:] != values[:-1]
    here = np.arange(len(values))
    return here - np.maximum.accumulate(np.where(changes, here, 0)) if len(values) else here


def running(flags: Flags) -> Ints:
    """How many flags are set before each place and before the end, so that a difference counts those in a span."""
    counts = np.zeros(len(flags) + 1, dtype=np.int32)
    np.cumsum(flags, out=counts[1:])
    return counts
