"""The products of questions with many codes, as machine code; loaded when a search first needs it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.machine_code import compile_loop

Longs = NDArray[np.int64]


def multiply(codes: NDArray[np.int8], parts: NDArray[np.int16]) -> NDArray[np.int32]:
    """(questions, n) integer products of every code with each question, whose parts are the rows of `parts`.

    Each code is read from memory once, which is most of the time that a question takes.
    """
    products = np.empty((len(parts), len(codes)), np.int32)
    _multiply_several(codes, parts, products)
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


def _multiply_several_in_python(codes: Any, parts: Any, products: Any) -> None:  # pragma: no cover
    dimension = parts.shape[1]
    for row in range(len(codes)):
        for place in range(len(parts)):
            total = np.int32(0)
            for column in range(dimension):
                total += np.int32(codes[row, column]) * np.int32(parts[place, column])
            products[place, row] = total


_multiply = compile_loop(_multiply_in_python)
_multiply_several = compile_loop(_multiply_several_in_python)
