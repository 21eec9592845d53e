"""CSR rows and their expansion."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Csr, Expansion, Flags, Numbers, Validity
from hades.snapshot.files import ArrayReader, Folder
from models.kernels import compile_loop
from schemas.ids import Mask

# Adjacency as two compressed rows, one a direction, each row heaviest first.


PARTS = ("starts", "target", "edge", "type", "weight")


def build(
    near: NDArray[np.int32],
    far: NDArray[np.int32],
    types: NDArray[np.uint8],
    weights: NDArray[np.float32],
    n_nodes: int,
) -> Csr:
    """The rows of one direction: edges by their near end, heaviest first, equal weights in edge order."""
    order = np.lexsort((-weights, near))  # stable, so edge order settles ties
    starts = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(near, minlength=n_nodes), out=starts[1:])
    return Csr(starts, far[order], order.astype(np.int32), types[order], weights[order])


def effective(weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """What a weight counts: itself, or 1.0 where it is missing (NaN)."""
    counted: NDArray[np.float32] = np.where(np.isnan(weights), 1.0, weights).astype(np.float32)
    return counted


def write(folder: Folder, name: str, rows: Csr) -> None:
    """Put one direction into the folder."""
    for part in PARTS:
        folder.whole(f"{name}.{part}", getattr(rows, part))


def read(arrays: ArrayReader, name: str) -> Csr:
    """One direction as it was written, mapped."""
    parts: dict[str, NDArray[Any]] = {part: arrays[f"{name}.{part}"] for part in PARTS}
    return Csr(**parts)


# Expanding nodes over compressed rows: looks no further along a row than the fanout needs.


_FIRST_LOOK = 64  # entries of a row looked at first when a filter may throw some away
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EVERY_TYPE = np.zeros(0, np.bool_)
KERNEL = "hades.snapshot.adjacency"  # the machine code; it is not worth loading for one question
Filter = Callable[[Numbers, Numbers], Flags]  # (entries, near nodes) -> which of them stay


@dataclass(frozen=True)
class ExpandedEntries:
    """Entries of one direction that were kept, by row, then place in the row."""

    row: Numbers
    entry: Numbers
    work: int
    capped: bool


def follow(
    rows: Csr, numbers: Numbers, keep: Filter | None, fanout: int | None, max_work: int | None
) -> ExpandedEntries:
    """The first `fanout` entries of each node's row that pass the filter, looking at `max_work` entries at most."""
    cursor, stop = rows.starts[numbers], rows.starts[numbers + 1]
    need = np.full(len(numbers), np.iinfo(np.int64).max if fanout is None else fanout, np.int64)
    look = max(_FIRST_LOOK, 4 * (fanout or 0))
    kept_rows, kept_entries = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    work = 0
    while True:
        bound = need if keep is None or fanout is None else look
        width = np.minimum(np.where(need > 0, stop - cursor, 0), bound)
        if max_work is not None:
            before = np.cumsum(width) - width
            width = np.clip(max_work - work - before, 0, width)
        if not width.any():
            break
        row = np.repeat(np.arange(len(numbers)), width)
        entry = _ranges(cursor, width)
        work += len(entry)
        cursor = cursor + width
        if keep is not None:
            passed = keep(entry, numbers[row])
            row, entry = row[passed], entry[passed]
        if fanout is not None:
            allowed = np.arange(len(row)) - np.searchsorted(row, row) < need[row]
            row, entry = row[allowed], entry[allowed]
            need = need - np.bincount(row, minlength=len(numbers))
        kept_rows.append(row)
        kept_entries.append(entry)
        look *= 8
    row, entry = np.concatenate(kept_rows), np.concatenate(kept_entries)
    if len(kept_rows) > 2:  # one look leaves them in order
        order = np.lexsort((entry, row))
        row, entry = row[order], entry[order]
    return ExpandedEntries(row, entry, work, bool(((need > 0) & (cursor < stop)).any()))


def follow_quickly(
    rows: Csr, numbers: Numbers, wanted: Flags | None, no_loops: bool, fanout: int | None, max_work: int | None
) -> ExpandedEntries | None:
    """What `follow` finds, by machine code; None where that is not loaded, or where `max_work` may end the search.

    `wanted` says by code which types pass; None for all.
    """
    if KERNEL not in sys.modules:
        return None
    if max_work is not None and int((rows.starts[numbers + 1] - rows.starts[numbers]).sum()) > max_work:
        return None

    look = max(_FIRST_LOOK, 4 * (fanout or 0))
    passing = _EVERY_TYPE if wanted is None else wanted
    most = ALL if fanout is None else fanout
    row, entry, work = take_entries(rows.starts, rows.target, rows.type, numbers, passing, no_loops, most, look)
    return ExpandedEntries(row, entry, work, False)


def gather(rows: Csr, found: ExpandedEntries, outbound: bool) -> Expansion:
    """What was found in one direction, as an answer."""
    entry = found.entry
    return Expansion(
        found.row,
        rows.target[entry].astype(np.int64),
        rows.edge[entry].astype(np.int64),
        rows.type[entry],
        rows.weight[entry],
        np.full(len(entry), outbound),
        found.work,
        found.capped,
    )


def join_ways(
    out_rows: Csr, out: ExpandedEntries, in_rows: Csr, into: ExpandedEntries, fanout: int | None
) -> Expansion:
    """What was found in both directions as one answer; by machine code where that is loaded."""
    if KERNEL not in sys.modules:
        return merge(gather(out_rows, out, True), gather(in_rows, into, False), fanout)

    pointing_out, pointing_in = ((rows.target, rows.edge, rows.type, rows.weight) for rows in (out_rows, in_rows))
    most = ALL if fanout is None else fanout
    found = merge_entries((out.row, out.entry), (into.row, into.entry), pointing_out, pointing_in, most)
    row, target, edge, kind, weight, outbound = found
    work, capped = out.work + into.work, out.capped or into.capped
    return Expansion(row, target, edge, kind, weight, outbound, work, capped)


def merge(out: Expansion, into: Expansion, fanout: int | None) -> Expansion:
    """Both directions as one answer, cut to the fanout again."""
    names = ("row", "target", "edge", "type", "weight", "outbound")
    both = {name: np.concatenate([getattr(out, name), getattr(into, name)]) for name in names}
    order = heaviest_first(both["row"], both["weight"], both["edge"])
    if fanout is not None:
        row = both["row"][order]
        order = order[np.arange(len(row)) - np.searchsorted(row, row) < fanout]
    parts = {name: values[order] for name, values in both.items()}
    return Expansion(**parts, work=out.work + into.work, capped=out.capped or into.capped)


def heaviest_first(row: Numbers, weight: NDArray[np.float32], edge: Numbers) -> Numbers:
    """By row, then falling weight, then edge: merges two sorted runs, where `lexsort` would sort everything."""
    bits = (weight + np.float32(0)).view(np.int32).astype(np.int64)  # ordered as the weights are, once signs are turned
    key = (row << 32) - np.where(bits < 0, bits ^ 0x7FFF_FFFF, bits)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    repeats = ordered[1:] == ordered[:-1]
    if repeats.any():  # of equal weight: only these are put in order of their edges
        tied = np.flatnonzero(np.append(repeats, False) | np.append(False, repeats))
        order[tied] = order[tied][np.lexsort((edge[order[tied]], ordered[tied]))]
    return order


def visible(validity: Validity, edges: NDArray[np.int32], mask: Mask) -> Flags:
    """Which edges a reader standing at the mask sees; both intervals are half-open."""
    seen = np.ones(len(edges), np.bool_)
    if mask.as_of is not None:
        moment = microseconds(mask.as_of)
        seen &= (validity.valid_from[edges] <= moment) & (moment < validity.valid_until[edges])
    if mask.known_at is not None:
        moment = microseconds(mask.known_at)
        seen &= (validity.recorded_at[edges] <= moment) & (moment < validity.retracted_at[edges])
    return seen


def microseconds(moment: datetime) -> int:
    """Since 1970, exactly."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def instant(value: int) -> datetime:
    """The moment this number of microseconds after 1970."""
    return _EPOCH + timedelta(microseconds=value)


def _ranges(starts: Numbers, widths: Numbers) -> Numbers:
    """starts[0], starts[0] + 1, ... for each width, one range after the other."""
    skipped = np.cumsum(widths) - widths
    entries: Numbers = np.repeat(starts - skipped, widths) + np.arange(int(widths.sum()))
    return entries


# Entries of adjacency rows as machine code; loaded when a process asks on.


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
