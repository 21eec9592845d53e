"""The product of a question with many codes, as machine code; loaded when a search first needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.machine_code import compile_loop

Longs = NDArray[np.int64]


def multiply(codes: NDArray[np.int8], parts: NDArray[np.int16]) -> NDArray[np.int32]:
    """(n,) integer products of every code with the question."""
    products = np.empty(len(codes), np.int32)
    _multiply(codes, parts, np.zeros(1, np.int64), np.array([len(codes)], np.int64), products)
    return products


def multiply_ranges(codes: NDArray[np.int8], parts: NDArray[np.int16], starts: Longs, ends: Longs) -> NDArray[np.int32]:
    """Products of the codes at [start, end) of each range, one range after the other."""
    products = np.empty(int((ends - starts).sum()), np.int32)
    _multiply(codes, parts, starts, ends, products)
    return products


def _multiply_in_python(codes: Any, parts: Any, starts: Any, ends: Any, products: Any) -> None:  # pragma: no cover
    dimension = len(parts)
    at = 0
    for place in range(len(starts)):
        for row in range(starts[place], ends[place]):
            total = np.int32(0)
            for column in range(dimension):
                total += np.int32(codes[row, column]) * np.int32(parts[column])
            products[at] = total
            at += 1


_multiply = compile_loop(_multiply_in_python)
