"""Entries of adjacency rows as machine code; loaded when a process asks on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.machine_code import compile_loop

Longs = NDArray[np.int64]
ALL = -1  # as a fanout: every entry that passes


def take_entries(
    starts: Longs,
    target: NDArray[np.int32],
    types: NDArray[np.uint8],
    numbers: Longs,
    wanted: NDArray[np.bool_],
    no_loops: bool,
    fanout: int,
    look: int,
) -> tuple[Longs, Longs, int]:
    """For each node the first `fanout` entries of its row that pass: their rows, places, and how many were looked at.

    An entry passes whose type is wanted (by code; every type where `wanted` is empty) and, with `no_loops`, that leads
    elsewhere. Where entries may be thrown away a row is looked at in pieces: `look` entries, then eight times as many.
    """
    numbers = np.array(numbers, np.int64)  # machine code is kept by type, and some arrays may not be written
    degrees = starts[numbers + 1] - starts[numbers]
    most = int(degrees.sum() if fanout == ALL else np.minimum(degrees, fanout).sum())
    rows, entries, counts = np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(2, np.int64)
    _take(starts, target, types, numbers, wanted, no_loops, fanout, look, rows, entries, counts)
    return rows[: counts[0]], entries[: counts[0]], int(counts[1])


def _take_in_python(  # pragma: no cover
    starts: Any,
    target: Any,
    types: Any,
    numbers: Any,
    wanted: Any,
    no_loops: bool,
    fanout: int,
    look: int,
    rows: Any,
    entries: Any,
    counts: Any,
) -> None:
    found = work = 0
    by_type = len(wanted) > 0
    in_pieces = (by_type or no_loops) and fanout != ALL
    for row in range(len(numbers)):
        node = numbers[row]
        cursor, stop = starts[node], starts[node + 1]
        need = stop - cursor if fanout == ALL else fanout
        piece = look if in_pieces else need
        while need > 0 and cursor < stop:
            end = min(stop, cursor + piece)
            work += end - cursor
            for at in range(cursor, end):
                if need > 0 and (not by_type or wanted[types[at]]) and not (no_loops and target[at] == node):
                    rows[found] = row
                    entries[found] = at
                    found += 1
                    need -= 1
            cursor = end
            piece *= 8
    counts[0] = found
    counts[1] = work


_take = compile_loop(_take_in_python)
