"""Bringing a derived collection to what it should hold: only what is new, changed or stale is written.

Derived rows are a function of the documents, so they are computed whole and compared with those of the store. Columns
that other builds fill in (weights, topics) are not compared and survive a change of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ports.store import RowStore
from schemas.catalogue import columns_schema

Flags = NDArray[np.bool_]


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


def find_difference(store: RowStore, collection: str, owned: Sequence[str], wanted: pa.Table) -> Difference:
    """What separates the collection from the wanted rows (each key once), by the `owned` columns."""
    schema = columns_schema(collection, owned)
    mine = wanted.select(owned).cast(schema)
    keys = wanted.column("_key").combine_chunks()
    is_new = np.ones(len(keys), dtype=np.bool_)
    changed: list[pa.Table] = [schema.empty_table()]
    stale: list[str] = []
    for batch in store.scan(collection, columns=list(owned)):
        place = pc.index_in(batch.column("_key"), value_set=keys)
        known = place.is_valid()
        stale += batch.column("_key").filter(pc.invert(known)).to_pylist()
        rows = place.drop_null()
        is_new[rows.to_numpy()] = False
        now = mine.take(rows)
        same = _equal_rows(pa.Table.from_batches([batch]).select(owned).filter(known), now)
        changed.append(now.filter(pa.array(~same)))
    return Difference(wanted.filter(pa.array(is_new)), pa.concat_tables(changed), stale)


def apply_removals(store: RowStore, collection: str, change: Difference) -> None:
    """Remove what is stale; edges before the nodes they join."""
    if change.stale:
        store.delete(collection, keys=change.stale)


def apply_writes(store: RowStore, collection: str, change: Difference) -> Change:
    """Write what is new or changed; nodes before the edges that join them."""
    if change.added.num_rows:
        store.upsert(collection, change.added.sort_by("_key"))
    if change.changed.num_rows:
        fixed = [name for name in change.changed.column_names if name not in ("_from", "_to")]
        store.patch(collection, change.changed.select(fixed).sort_by("_key"))
    return Change(change.added.num_rows, change.changed.num_rows, len(change.stale), tuple(change.stale))


def _equal_rows(held: pa.Table, wanted: pa.Table) -> Flags:
    """Whether the tables say the same, row by row."""
    same = np.ones(held.num_rows, dtype=np.bool_)
    for name in held.column_names:
        same &= _equal(held.column(name).combine_chunks(), wanted.column(name).combine_chunks())
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
    first, second = first.take(pa.array(rows)), second.take(pa.array(rows))
    different = ~_equal(first.flatten(), second.flatten())
    same[np.repeat(rows, lengths[rows])[different]] = False
    return same
