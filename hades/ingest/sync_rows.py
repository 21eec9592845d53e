"""Bringing a collection to what it should hold: write what is new or changed, remove what is stale, leave the rest.

Derived rows are a function of the documents, so they are computed whole and compared; only the difference is written.
Columns that other builds fill in (weights, topics, vectors) are not compared and survive a change of the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ports.store import RowStore
from schemas.catalogue import collection_named

Flags = NDArray[np.bool_]
PORTION_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class Change:
    """What bringing a collection up to date did."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    removed_keys: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Rows touched."""
        return self.added + self.changed + self.removed


@dataclass(frozen=True)
class Difference:
    """New rows whole, changed rows with the columns compared, keys of stale rows."""

    added: pa.Table
    changed: pa.Table
    stale: list[str]


def difference(store: RowStore, collection: str, wanted: pa.Table, owned: Sequence[str]) -> Difference:
    """What separates the collection from the wanted rows (each key once), by the owned columns."""
    schema = pa.schema([_declare(collection).field(name) for name in owned])
    held = pa.Table.from_batches(store.scan(collection, columns=owned), schema=schema).combine_chunks()
    if not held.num_rows:
        return Difference(wanted, wanted.slice(0, 0).select(owned), [])
    wanted = wanted.combine_chunks()
    place = pc.index_in(wanted.column("_key"), value_set=held.column("_key").combine_chunks())
    known = pc.is_valid(place)
    both = wanted.filter(known).select(owned)
    before = held.take(pc.drop_null(place))
    changed = both.filter(pa.array(~_equal_rows(before, both.cast(before.schema))))
    stale = pc.invert(pc.is_in(held.column("_key"), value_set=wanted.column("_key").combine_chunks()))
    return Difference(wanted.filter(pc.invert(known)), changed, held.column("_key").filter(stale).to_pylist())


def apply_removals(store: RowStore, collection: str, change: Difference) -> None:
    """Remove what is stale; edges before the nodes they join."""
    if change.stale:
        store.delete(collection, keys=change.stale)


def apply_writes(store: RowStore, collection: str, change: Difference) -> Change:
    """Write what is new or changed; nodes before the edges that join them."""
    for rows in _portions(change.added):
        store.upsert(collection, rows)
    fixed = [name for name in change.changed.column_names if name not in ("_from", "_to")]
    for rows in _portions(change.changed.select(fixed)):
        store.patch(collection, rows)
    return Change(change.added.num_rows, change.changed.num_rows, len(change.stale), tuple(change.stale))


def _portions(table: pa.Table) -> Iterator[pa.Table]:
    """The rows in key order, some at a time, so that a large write needs little room beside itself."""
    if not table.num_rows:
        return
    order = pc.sort_indices(table.column("_key"))
    rows = max(1, PORTION_BYTES * table.num_rows // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield table.take(order.slice(start, rows))


def _equal_rows(first: pa.Table, second: pa.Table) -> Flags:
    same = np.ones(first.num_rows, dtype=bool)
    for name in first.column_names:
        same &= _equal(first.column(name).combine_chunks(), second.column(name).combine_chunks())
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


def _declare(collection: str) -> pa.Schema:
    declared = collection_named(collection)
    assert declared is not None
    return declared.schema
