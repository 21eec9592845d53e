"""Sums of postings, as machine code; loaded when a process asks on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.machine_code import compile_loop

Longs = NDArray[np.int64]


def add_postings(
    rows: NDArray[np.int32], shares: NDArray[np.float32], starts: Longs, ends: Longs, n_rows: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The rows that stand in any of the postings [start, end), in no order, and the sum of the shares of each.

    Shares are greater than 0 and are added posting by posting.
    """
    scores = np.zeros(n_rows, np.float32)
    found = np.empty(min(n_rows, int((ends - starts).sum())), np.int32)
    held = found[: _add(rows, shares, starts, ends, scores, found)]
    return held, scores[held]


def _add_in_python(  # pragma: no cover
    rows: Any, shares: Any, starts: Any, ends: Any, scores: Any, found: Any
) -> int:
    count = 0
    for place in range(len(starts)):
        for at in range(starts[place], ends[place]):
            row = rows[at]
            if scores[row] == 0:
                found[count] = row
                count += 1
            scores[row] += shares[at]
    return count


_add = compile_loop(_add_in_python)
