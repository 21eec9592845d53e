"""Expanding nodes over compressed rows: looks no further along a row than the fanout needs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Csr, Expansion, Flags, Numbers, Validity
from schemas.intervals import Mask

_FIRST_LOOK = 64  # entries of a row looked at first when a filter may throw some away
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EVERY_TYPE = np.zeros(0, np.bool_)
KERNEL = "models.adjacency"  # the machine code; it is not worth loading for one question

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
    from models.adjacency import ALL, take_entries

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
    from models.adjacency import ALL, merge_entries

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
