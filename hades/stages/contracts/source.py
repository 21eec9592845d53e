"""The rows a contract reads, and which of them lie in parts of the store that it has not seen hold before.

A row needs no second check while its own part and the parts of all rows it refers to are those of the last check that
held. So the frames of a contract have the rows of new parts, rows that refer to such rows, and rows that break a rule
over the whole collection (an end is missing, a value occurs twice, a sum differs), which is found by key columns alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hades.ports.store import RowStore
from hades.stages.contracts.columns import Flags, Longs, keep
from schemas.catalogue import collection_named

Marks = Mapping[str, frozenset[str]]  # of the parts of each collection that held


@dataclass(frozen=True)
class KeyedRows:
    """Some columns of every row of a collection, with the mark and the size of each part of it."""

    store: RowStore
    collection: str
    table: pa.Table
    marks: Sequence[str]
    sizes: Longs
    is_new: Flags

    def take(self, chosen: Flags, *columns: str) -> pa.Table:
        """These columns of the rows that are chosen; parts without such a row are not read."""
        names, schema = _choose(self.collection, columns)
        if set(names) <= set(self.table.column_names):  # every row was read with them
            return keep(self.table.select(names), chosen)
        ends = np.cumsum(self.sizes)
        parts = np.split(chosen, ends[:-1]) if len(ends) else []
        idle = {mark for mark, part in zip(self.marks, parts, strict=True) if not part.any()}
        batches, flags = [], [np.zeros(0, np.bool_)]
        scanned = self.store.scan_marked(self.collection, columns=names, known=idle)
        for part, rows in zip(parts, scanned, strict=True):
            if rows.batch is not None:
                batches.append(rows.batch)
                flags.append(part)
        return keep(pa.Table.from_batches(batches, schema=schema), np.concatenate(flags))


@dataclass(frozen=True)
class Source:
    """A store, and the parts of its collections that held when the contract was last checked; none: read everything.

    With known parts the store must be one moment of it (`GraphStore.reading`), because a collection is read twice.
    """

    store: RowStore
    known: Marks = field(default_factory=dict)

    def read(self, collection: str, *columns: str) -> pa.Table:
        """These columns of every row with its `_key`, in key order, one chunk a column."""
        names, schema = _choose(collection, columns)
        return pa.Table.from_batches(self.store.scan(collection, columns=names), schema=schema).combine_chunks()

    def read_keys(self, collection: str, keys: Sequence[str], others: Sequence[str] = ()) -> KeyedRows:
        """The columns `keys` of every row; where no part is known, the others too, for all rows are checked then."""
        known = self.known.get(collection, frozenset())
        names, schema = _choose(collection, keys if known else (*keys, *others))
        batches, marks, sizes, new = [], [], [], [np.zeros(0, np.bool_)]
        for part in self.store.scan_marked(collection, columns=names):
            if part.batch is not None:
                batches.append(part.batch)
            marks.append(part.mark)
            sizes.append(part.rows)
            new.append(np.full(part.rows, not (part.mark and part.mark in known)))
        table = pa.Table.from_batches(batches, schema=schema).combine_chunks()
        return KeyedRows(self.store, collection, table, marks, np.array(sizes, np.int64), np.concatenate(new))

    def read_new(self, collection: str, *columns: str) -> tuple[pa.Table, int]:
        """These columns of the rows in new parts, and how many rows lie in the others."""
        names, schema = _choose(collection, columns)
        known = self.known.get(collection, frozenset())
        batches, left = [], 0
        for part in self.store.scan_marked(collection, columns=names, known=known):
            if part.batch is not None:
                batches.append(part.batch)
            else:
                left += part.rows
        return pa.Table.from_batches(batches, schema=schema).combine_chunks(), left


def _choose(collection: str, columns: Sequence[str]) -> tuple[list[str], pa.Schema]:
    declared = collection_named(collection)
    assert declared is not None
    names = list(dict.fromkeys(("_key", *columns)))
    return names, pa.schema([declared.schema.field(name) for name in names])
