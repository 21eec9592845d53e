"""Vectors as 8-bit integers with a bound on their error, so that a scan of them loses nothing.

A row of length 1 is `step * code` plus an error whose length is at most `slack`. By Cauchy and Schwarz the product of
the row with a question of length 1 then differs from that of its code by at most `slack`, plus what rounding the
question itself costs. Rows that cannot be among the best by these bounds are left out; the others are compared exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Singles = NDArray[np.float32]

_LARGEST_CODE = 127
_LARGEST_SUM = 2**31 - 1
_LARGEST_PART = 2**15 - 1
ROUNDING = np.float32(2e-6)  # sums of a few hundred float32 products of unit rows differ by less


@dataclass(frozen=True)
class CodedRows:
    """(n, dimension) int8 codes; (n,) float32 steps and error bounds."""

    codes: NDArray[np.int8]
    steps: Singles
    slacks: Singles


@dataclass(frozen=True)
class CodedQuestion:
    """A question of length 1 as 16-bit integers: `parts * step`, off by a vector whose length is at most `slack`."""

    parts: NDArray[np.int16]
    step: float
    slack: float


def code_rows(values: Singles, norms: Singles) -> CodedRows:
    """Codes of rows at length 1; a row of zeros has zeros."""
    unit = values.astype(np.float64) / np.where(norms == 0, 1.0, norms)[:, None]
    steps = code_steps(unit)
    codes = np.rint(unit / steps[:, None].astype(np.float64)).clip(-_LARGEST_CODE, _LARGEST_CODE).astype(np.int8)
    error = unit - codes * steps[:, None].astype(np.float64)
    slacks = np.nextafter(np.linalg.norm(error, axis=1).astype(np.float32), np.float32(np.inf))
    return CodedRows(codes, steps, slacks)


def code_steps(rows: NDArray[np.floating[Any]]) -> Singles:
    """(n,) what one unit of a code is worth in each row, so that its largest part has the largest code."""
    most = np.abs(rows).max(axis=1, initial=0.0)
    return np.where(most > 0.0, most / _LARGEST_CODE, 1.0).astype(np.float32)


def code_question(unit: Singles) -> CodedQuestion:
    """The question with as many bits as a 32-bit sum over its dimension holds."""
    largest = min(_LARGEST_PART, _LARGEST_SUM // (_LARGEST_CODE * len(unit)))
    exact = unit.astype(np.float64)
    step = float(np.abs(exact).max()) / largest or 1.0
    parts = np.rint(exact / step).clip(-largest, largest).astype(np.int16)
    return CodedQuestion(parts, step, float(np.linalg.norm(exact - parts * step)))


def bounds(question: CodedQuestion, products: NDArray[np.int32], rows: CodedRows) -> tuple[Singles, Singles]:
    """(n,) the cosine that the codes give, and how far the exact one may lie from it."""
    near: Singles = products.astype(np.float32) * (rows.steps * np.float32(question.step))
    off: Singles = rows.slacks + np.float32(question.slack) * (1 + rows.slacks) + ROUNDING
    return near, off
