"""Names of kinds of arrays, and helpers for rows of them, that every part shares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]
BLOCK_ROWS = 32_768  # intermediate arrays of a block stay in the processor's cache


def unit_rows(rows: NDArray[Any]) -> Singles:
    """(n, dim) float32: each row at length one; a zero row stays zero."""
    lengths = np.linalg.norm(
        rows,
        axis=1,
        keepdims=True,
    )
    scaled: Singles = (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def blocks_of(rows: int, block_rows: int = BLOCK_ROWS) -> list[slice]:
    """Split rows into blocks, in order."""
    return [slice(start, min(start + block_rows, rows)) for start in range(0, rows, block_rows)]


def rows_of(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of columns of one length, as plain Python values."""
    return zip(*(column.tolist() for column in columns), strict=True)
