"""Whether rows of two tables say the same, also in columns of lists and structs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.text.arrays import Flags, Longs

_SHORTEST_RUN = 64  # rows on average; of shorter runs a copy is faster than many comparisons


def equal_rows(held: pa.Table, wanted: pa.Table, first: Longs, second: Longs) -> Flags:
    """Whether the rows `first` of the one and `second` of the other are equal, pair by pair.

    Two derivations have most rows in the same order. Runs of neighbours are then compared where they lie, without a
    copy; one column is worked on at a time.
    """
    same = np.ones(len(first), dtype=np.bool_)
    starts = np.flatnonzero((np.diff(first, prepend=-2) != 1) | (np.diff(second, prepend=-2) != 1))
    runs = list(zip(starts.tolist(), [*starts[1:].tolist(), len(first)], strict=True)) if len(first) else []
    is_aligned = len(runs) * _SHORTEST_RUN <= len(first)
    for name in held.column_names:
        one, other = held.column(name), wanted.column(name).cast(held.schema.field(name).type)
        one, other = one.combine_chunks(), other.combine_chunks()
        if is_aligned:
            for begin, end in runs:
                left, right = one.slice(first[begin], end - begin), other.slice(second[begin], end - begin)
                if not left.equals(right):  # rows are told apart only in runs that differ
                    same[begin:end] &= _equal(left, right)
        else:
            same &= _equal(one.take(pa.array(first)), other.take(pa.array(second)))
    return same


def _equal(first: pa.Array, second: pa.Array) -> Flags:
    """Row by row equality; null equals null. Lists and structs by their parts, which Arrow does not compare itself."""
    nulls = pc.is_null(first).to_numpy(zero_copy_only=False)
    same_null = nulls == pc.is_null(second).to_numpy(zero_copy_only=False)
    if pa.types.is_struct(first.type):
        same = np.ones(len(first), dtype=bool)
        for number in range(first.type.num_fields):
            same &= _equal(pc.struct_field(first, number), pc.struct_field(second, number))
    elif pa.types.is_list(first.type):
        same = _equal_lists(first, second)
    else:
        same = pc.fill_null(pc.equal(first, second), False).to_numpy(zero_copy_only=False)
    agreed: Flags = same_null & (nulls | same)
    return agreed


def _equal_lists(first: pa.Array, second: pa.Array) -> Flags:
    lengths = pc.fill_null(pc.list_value_length(first), 0).to_numpy()
    same: Flags = lengths == pc.fill_null(pc.list_value_length(second), 0).to_numpy()
    rows = np.flatnonzero(same)
    if len(rows) < len(same):  # else both lie side by side already, and vectors are large
        first, second = first.take(pa.array(rows)), second.take(pa.array(rows))
    different = ~_equal(first.flatten(), second.flatten())
    if not different.any():
        return same
    owner = np.repeat(rows, lengths[rows])
    same[owner[different]] = False
    return same
