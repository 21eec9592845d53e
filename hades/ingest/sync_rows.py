"""Bringing a collection to what it should hold: write what is new or changed, remove what is stale, leave the rest.

Derived rows are a function of the documents, so they are computed whole and compared; only the difference is written.
They are compared with the rows of the last derivation where these are at hand, else with all that the store holds.
Columns that other builds fill in (weights, topics, vectors) are not compared and survive a change of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ports.store import RowStore
from schemas.catalogue import collection_named

Flags = NDArray[np.bool_]
PORTION_BYTES = 128 * 1024 * 1024
_MANY = 4  # a collection of which more than a quarter of the rows changed is compared whole


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


@dataclass(frozen=True)
class Comparison:
    """How a collection is compared: `owned` columns with the store, `compared` ones with the last derivation.

    `complete` adds columns that cost much to rows that are to be written. `suspects` are keys of rows that somebody
    else may have written since; they are always compared with the store.
    """

    collection: str
    owned: Sequence[str]
    compared: Sequence[str]
    complete: Callable[[pa.Table], pa.Table] = lambda table: table
    suspects: Sequence[str] = ()


def find_difference(store: RowStore, how: Comparison, wanted: pa.Table, before: pa.Table | None) -> Difference:
    """What separates the collection from the wanted rows (each key once).

    With the rows of the last derivation only those that differ from them are read from the store. A count tells whether
    the others are still there; otherwise everything is compared.
    """
    keys = _find_suspects(how, wanted, before) if before is not None else None
    if before is not None and keys is not None and len(keys) * _MANY <= before.num_rows:
        held = store.get(how.collection, keys.to_pylist(), columns=list(how.owned))
        known = pc.is_in(keys, value_set=before.column("_key").combine_chunks())
        absent = pc.invert(pc.is_in(keys, value_set=held.column("_key").combine_chunks()))
        lost = pc.sum(pc.and_(known, absent)).as_py() or 0
        found = pc.sum(pc.and_(pc.invert(known), pc.invert(absent))).as_py() or 0
        if store.count(how.collection) == before.num_rows - lost + found:
            chosen = wanted.filter(pc.is_in(wanted.column("_key"), value_set=keys))
            return _compare_all(how, held, chosen)
    schema = pa.schema([_declare(how.collection).field(name) for name in how.owned])
    held = pa.Table.from_batches(store.scan(how.collection, columns=how.owned), schema=schema)
    return _compare_all(how, held, wanted)


def _find_suspects(how: Comparison, wanted: pa.Table, before: pa.Table) -> pa.Array | None:
    """Keys of rows that are not those of the last derivation; None when it had other columns."""
    if set(before.column_names) != set(how.compared):
        return None
    change = _compare(before, wanted.select(how.compared), how.compared)
    keys = [*change.added.column("_key").to_pylist(), *change.changed.column("_key").to_pylist()]
    return pa.array(sorted({*keys, *change.stale, *how.suspects}), pa.string())


def _compare_all(how: Comparison, held: pa.Table, wanted: pa.Table) -> Difference:
    return _compare(held, how.complete(wanted), how.owned)


def _compare(held: pa.Table, wanted: pa.Table, owned: Sequence[str]) -> Difference:
    """Rows that are new or differ in the owned columns, and keys that are not wanted."""
    if not held.num_rows:
        return Difference(wanted, wanted.slice(0, 0).select(owned), [])
    held, wanted = held.combine_chunks(), wanted.combine_chunks()
    place = pc.index_in(wanted.column("_key"), value_set=held.column("_key").combine_chunks())
    known = pc.is_valid(place)
    both = wanted.filter(known).select(owned)
    before = held.select(owned).take(pc.drop_null(place))
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
