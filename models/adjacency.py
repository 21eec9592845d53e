"""Entries of adjacency rows as machine code; loaded when a process asks on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.machine_code import compile_loop

Longs = NDArray[np.int64]
Entries = tuple[Longs, Longs]  # rows and places, by row, then place
Columns = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32]]
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


def merge_entries(
    out: Entries, into: Entries, out_columns: Columns, into_columns: Columns, fanout: int
) -> tuple[NDArray[Any], ...]:
    """Entries of both directions by row, then heaviest first, then by edge, at most `fanout` of a row.

    Columns are targets, edges, types and weights; the entries of a row stand in that order already. The result has the
    columns row, target, edge, type, weight, and whether an entry points out.
    """
    most = len(out[0]) + len(into[0])
    kinds = (np.int64, np.int64, np.int64, np.uint8, np.float32, np.bool_)
    found: tuple[NDArray[Any], ...] = tuple(np.empty(most, kind) for kind in kinds)
    count = _merge(*out, *into, *out_columns, *into_columns, fanout, *found)
    return tuple(column[:count] for column in found)


def _merge_in_python(  # pragma: no cover
    out_row: Any,
    out_entry: Any,
    in_row: Any,
    in_entry: Any,
    out_target: Any,
    out_edge: Any,
    out_type: Any,
    out_weight: Any,
    in_target: Any,
    in_edge: Any,
    in_type: Any,
    in_weight: Any,
    fanout: int,
    row: Any,
    target: Any,
    edge: Any,
    kind: Any,
    weight: Any,
    outbound: Any,
) -> int:
    a = b = found = taken = 0
    last = np.int64(-1)
    while a < len(out_row) or b < len(in_row):
        if a == len(out_row) or b == len(in_row):
            is_out = a < len(out_row)
        elif out_row[a] != in_row[b]:
            is_out = out_row[a] < in_row[b]
        else:
            mine, other = out_weight[out_entry[a]], in_weight[in_entry[b]]
            is_out = mine > other or (mine == other and out_edge[out_entry[a]] < in_edge[in_entry[b]])
        own = out_row[a] if is_out else in_row[b]
        taken = taken + 1 if own == last else 1
        last = own
        if fanout == ALL or taken <= fanout:
            row[found] = own
            outbound[found] = is_out
            at = out_entry[a] if is_out else in_entry[b]
            target[found] = out_target[at] if is_out else in_target[at]
            edge[found] = out_edge[at] if is_out else in_edge[at]
            kind[found] = out_type[at] if is_out else in_type[at]
            weight[found] = out_weight[at] if is_out else in_weight[at]
            found += 1
        if is_out:
            a += 1
        else:
            b += 1
    return found


_take = compile_loop(_take_in_python)
_merge = compile_loop(_merge_in_python)
