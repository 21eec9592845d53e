"""CSR rows and their expansion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Csr, Expansion, Flags, Numbers, Validity
from hades.snapshot.files import Arrays, ranges
from models.arrays import Ints, Singles
from schemas.ids import Mask, microseconds


def build(
    near: Ints,
    far: Ints,
    types: NDArray[np.uint8],
    weights: Singles,
    n_nodes: int,
) -> Csr:
    """The rows of one direction: edges by their near end, heaviest first, equal weights in edge
    order.
    """
    order = np.lexsort((-weights, near))  # stable, so edge order settles ties
    starts = np.zeros(n_nodes + 1, np.int64)
    np.cumsum(np.bincount(near, minlength=n_nodes), out=starts[1:])
    return Csr(
        starts,
        far[order],
        order.astype(np.int32),
        types[order],
        weights[order],
    )


def read(arrays: Arrays, name: str) -> Csr:
    """One direction as it was written, mapped."""
    return Csr(*(arrays[f"{name}.{part.name}"] for part in fields(Csr)))


_FIRST_LOOK = 64  # entries of a row looked at first when a filter may throw some away
Filter = Callable[[Numbers, Numbers], Flags]  # (entries, near nodes) -> which of them stay


def follow(
    rows: Csr,
    numbers: Numbers,
    keep: Filter | None,
    fanout: int | None,
    max_work: int | None,
    *,
    outbound: bool,
) -> Expansion:
    """The first `fanout` entries of each node's row that pass the filter, looking at `max_work`
    entries at most.
    """
    cursor = rows.starts[numbers]
    stop = rows.starts[numbers + 1]
    need = np.full(
        len(numbers),
        np.iinfo(np.int64).max if fanout is None else fanout,
        np.int64,
    )
    look = max(_FIRST_LOOK, 4 * (fanout or 0))
    kept_rows = [np.empty(0, np.int64)]
    kept_entries = [np.empty(0, np.int64)]
    work = 0

    while True:
        bound = need if keep is None or fanout is None else look
        width = np.minimum(np.where(need > 0, stop - cursor, 0), bound)
        if max_work is not None:
            entries_ahead = np.cumsum(width) - width
            width = np.clip(max_work - work - entries_ahead, 0, width)

        if not width.any():
            break

        row = np.repeat(np.arange(len(numbers)), width)
        entry = ranges(cursor, width)
        work += len(entry)
        cursor = cursor + width

        if keep is not None:
            passed = keep(entry, numbers[row])
            row = row[passed]
            entry = entry[passed]

        if fanout is not None:
            allowed = np.arange(len(row)) - np.searchsorted(row, row) < need[row]
            row = row[allowed]
            entry = entry[allowed]
            need = need - np.bincount(row, minlength=len(numbers))

        kept_rows.append(row)
        kept_entries.append(entry)
        look *= 8

    row = np.concatenate(kept_rows)
    entry = np.concatenate(kept_entries)
    if len(kept_rows) > 2:  # one look leaves them in order
        order = np.lexsort((entry, row))
        row = row[order]
        entry = entry[order]

    has_more = (need > 0) & (cursor < stop)
    return Expansion(
        row=row,
        target=rows.target[entry].astype(np.int64),
        edge=rows.edge[entry].astype(np.int64),
        type=rows.type[entry],
        weight=rows.weight[entry],
        outbound=np.full(len(entry), outbound),
        work=work,
        capped=bool(has_more.any()),
    )


def merge(
    out: Expansion,
    into: Expansion,
    fanout: int | None,
) -> Expansion:
    """Both directions as one answer, cut to the fanout again."""
    names = ("row", "target", "edge", "type", "weight", "outbound")

    both = {}
    for name in names:
        both[name] = np.concatenate([getattr(out, name), getattr(into, name)])

    order = np.lexsort((both["edge"], -both["weight"], both["row"]))
    if fanout is not None:
        row = both["row"][order]
        order = order[np.arange(len(row)) - np.searchsorted(row, row) < fanout]

    parts = {}
    for name, values in both.items():
        parts[name] = values[order]

    return Expansion(
        **parts,
        work=out.work + into.work,
        capped=out.capped or into.capped,
    )


def edges_true_at(
    validity: Validity,
    edges: Ints,
    mask: Mask,
) -> Flags:
    """Which edges a reader standing at the mask sees; both intervals are half-open."""
    is_visible = np.ones(len(edges), np.bool_)
    if mask.as_of is not None:
        moment = microseconds(mask.as_of)
        is_visible &= (validity.valid_from[edges] <= moment) & (
            moment < validity.valid_until[edges]
        )

    if mask.known_at is not None:
        moment = microseconds(mask.known_at)
        is_visible &= (validity.recorded_at[edges] <= moment) & (
            moment < validity.retracted_at[edges]
        )

    return is_visible
