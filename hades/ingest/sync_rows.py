"""Bringing a collection to what it should hold: write what is new or changed, remove what is stale, leave the rest.

Derived rows are a function of the documents, so they are computed whole and compared; only the difference is written.
They are compared with the rows of the last derivation where these are at hand, else with all that the store holds.
Columns that other builds fill in (weights, topics, vectors) are not compared and survive a change of the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.increment.equal_rows import equal_rows
from hades.ingest.increment.reuse_rows import RowChange
from hades.ports.store import RowStore
from schemas.catalogue import collection_named

Flags = NDArray[np.bool_]
Longs = NDArray[np.int64]
ADDED_BYTES = 32 << 20  # of rows that are written at a time: look-ups take up all of them at the end
PATCHED_BYTES = 128 << 20  # each portion writes its look-ups
STORE_ROWS = 16_384  # compared at a time
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


@dataclass(frozen=True)
class Suspects:
    """Keys of all rows that may differ from those of the last derivation, those of them that it had, and its rows."""

    keys: pa.Array
    known: pa.Array
    n_before: int


def find_difference(store: RowStore, how: Comparison, wanted: pa.Table, suspects: Suspects | None) -> Difference:
    """What separates the collection from the wanted rows (each key once).

    Where it is known which rows may differ from the last derivation only those are read from the store. A count tells
    whether the others are still there; otherwise everything is compared.
    """
    if suspects is not None and len(suspects.keys) * _MANY <= suspects.n_before:
        keys = suspects.keys
        held = store.get(how.collection, keys.to_pylist(), columns=list(how.owned))
        known = pc.is_in(keys, value_set=suspects.known)
        absent = pc.invert(pc.is_in(keys, value_set=held.column("_key").combine_chunks()))
        lost = pc.sum(pc.and_(known, absent)).as_py() or 0
        found = pc.sum(pc.and_(pc.invert(known), pc.invert(absent))).as_py() or 0
        if store.count(how.collection) == suspects.n_before - lost + found:
            chosen = wanted.filter(pc.is_in(wanted.column("_key"), value_set=keys))
            return _compare_all(how, held, chosen)
    return _compare_with_store(store, how, wanted)


def suspect_all(how: Comparison, wanted: pa.Table, before: pa.Table) -> Suspects | None:
    """The rows that differ from those of the last derivation; None when it had other columns."""
    keys = _find_suspects(how, wanted, before)
    if keys is None:
        return None
    known = before.column("_key").filter(pc.is_in(before.column("_key"), value_set=keys)).combine_chunks()
    return Suspects(keys, known, before.num_rows)


def suspect_changed(
    how: Comparison, change: RowChange, derived: pa.Table, beside: pa.Table, before: pa.Table, n_before: int
) -> Suspects | None:
    """The rows of a change, and the rows beside it that differ.

    `derived` are all rows that follow from names now, and `change` says which of them are new; `beside` are the others
    and `before` those of the last derivation. One key may stand in both.
    """
    moved = _find_suspects(how, beside, before)
    if moved is None:
        return None
    keys = pa.array(sorted({*change.new.to_pylist(), *change.gone.to_pylist(), *moved.to_pylist()}), pa.string())
    standing = derived.column("_key").filter(pc.is_in(derived.column("_key"), value_set=keys))
    stayed = {*standing.to_pylist()} - {*change.new.to_pylist()}
    held = before.column("_key").filter(pc.is_in(before.column("_key"), value_set=keys))
    known = sorted({*change.gone.to_pylist(), *stayed, *held.to_pylist()})
    return Suspects(keys, pa.array(known, pa.string()), n_before)


def _find_suspects(how: Comparison, wanted: pa.Table, before: pa.Table) -> pa.Array | None:
    """Keys of rows that are not those of the last derivation; None when it had other columns."""
    if set(before.column_names) != set(how.compared):
        return None
    change = _compare(before, wanted.select(how.compared), how.compared)
    keys = [*change.added.column("_key").to_pylist(), *change.changed.column("_key").to_pylist()]
    return pa.array(sorted({*keys, *change.stale, *how.suspects}), pa.string())


def _compare_with_store(store: RowStore, how: Comparison, wanted: pa.Table) -> Difference:
    """The difference from all that the store holds; both come in key order, so that memory holds a part of them."""
    schema = pa.schema([_declare(how.collection).field(name) for name in how.owned])
    if not store.count(how.collection):
        return _compare_all(how, schema.empty_table(), wanted)
    order = pc.sort_indices(wanted.column("_key"))
    keys = wanted.column("_key").combine_chunks()
    parts: list[Difference] = []
    begin = 0
    for batch in store.scan(how.collection, columns=how.owned, batch_rows=STORE_ROWS):
        last = batch.column("_key")[-1].as_py()
        end = bisect_right(range(len(order)), last, lo=begin, key=lambda row: keys[order[row].as_py()].as_py())
        parts.append(_compare_all(how, pa.Table.from_batches([batch]), wanted.take(order.slice(begin, end - begin))))
        begin = end
    parts.append(_compare_all(how, schema.empty_table(), wanted.take(order.slice(begin))))
    return Difference(
        pa.concat_tables([part.added for part in parts]),
        pa.concat_tables([part.changed for part in parts]),
        [key for part in parts for key in part.stale],
    )


def _compare_all(how: Comparison, held: pa.Table, wanted: pa.Table) -> Difference:
    return _compare(held, how.complete(wanted), how.owned)


def _compare(held: pa.Table, wanted: pa.Table, owned: Sequence[str]) -> Difference:
    """Rows that are new or differ in the owned columns, and keys that are not wanted."""
    if not held.num_rows:
        return Difference(wanted, held.select(owned), [])
    keys = held.column("_key").combine_chunks()
    place: Longs = pc.fill_null(pc.index_in(wanted.column("_key"), value_set=keys), -1).to_numpy().astype(np.int64)
    rows = np.flatnonzero(place >= 0)
    changed = rows[~equal_rows(held.select(owned), wanted.select(owned), place[rows], rows)]
    is_wanted = np.zeros(len(keys), dtype=np.bool_)
    is_wanted[place[rows]] = True
    return Difference(
        _take(wanted, np.flatnonzero(place < 0)),
        _take(wanted.select(owned), changed).cast(held.select(owned).schema),
        keys.filter(pa.array(~is_wanted)).to_pylist(),
    )


def _take(table: pa.Table, rows: Longs) -> pa.Table:
    """These rows; Arrow joins all chunks of a text column even to take none."""
    return table.take(pa.array(rows)) if len(rows) else table.slice(0, 0)


def apply_removals(store: RowStore, collection: str, change: Difference) -> None:
    """Remove what is stale; edges before the nodes they join."""
    if change.stale:
        store.delete(collection, keys=change.stale)


def apply_writes(store: RowStore, collection: str, change: Difference) -> Change:
    """Write what is new or changed; nodes before the edges that join them."""
    if change.added.num_rows:
        store.upsert(
            collection, (rows.combine_chunks().to_batches()[0] for rows in _portions(change.added, ADDED_BYTES))
        )
    fixed = [name for name in change.changed.column_names if name not in ("_from", "_to")]
    for rows in _portions(change.changed.select(fixed), PATCHED_BYTES):
        store.patch(collection, rows)
    return Change(change.added.num_rows, change.changed.num_rows, len(change.stale), tuple(change.stale))


def _portions(table: pa.Table, size: int) -> Iterator[pa.Table]:
    """The rows in key order, some at a time, so that a large write needs little room beside itself."""
    if not table.num_rows:
        return
    rows = max(1, size * table.num_rows // max(1, table.nbytes))
    keys = table.column("_key").combine_chunks()
    is_sorted = pc.all(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py()
    order = None if is_sorted else pc.sort_indices(keys)
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows) if order is None else table.take(order.slice(start, rows))


def _declare(collection: str) -> pa.Schema:
    declared = collection_named(collection)
    assert declared is not None
    return declared.schema
