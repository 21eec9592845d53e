"""Rows that enter the look-ups of their collection together, after the last batch of a call."""

from __future__ import annotations

import sqlite3
from functools import partial

import pyarrow as pa

from hades.stores.sqlite.lookups import columns_of_entry, maintain, make_entries
from hades.stores.sqlite.registry import Registry, lookups_of
from hades.stores.sqlite.row_batches import sort_by_key
from schemas.catalogue import Collection


class LaterRows:
    """Holds the rows of one call, of each the columns that look-ups are made of, until they are entered.

    A look-up is sorted by values that lie anywhere in the batches: entered batch by batch, each batch would write
    nearly all its pages again.
    """

    def __init__(self, connection: sqlite3.Connection, registry: Registry, collection: Collection) -> None:
        self._connection, self._registry, self._collection = connection, registry, collection
        self._lookups = lookups_of(collection)
        columns = {"_key"}.union(*(columns_of_entry(one, collection.edge) for one in self._lookups))
        self._columns = [name for name in collection.schema.names if name in columns]
        self._rows: list[pa.Table] = []

    def add(self, old: pa.Table, new: pa.Table) -> None:
        """Hold rows that were written. Rows that replaced `old` ones are entered now, after those that are held."""
        if old.num_rows:
            self.enter()
            self._enter(old, new)
        else:
            self._rows.append(new.select(self._columns))

    def enter(self) -> None:
        """Enter the rows that are held."""
        if self._rows:
            rows, self._rows = sort_by_key(pa.concat_tables(self._rows).combine_chunks()), []
            self._enter(rows.slice(0, 0), rows)

    def _enter(self, old: pa.Table, new: pa.Table) -> None:
        for lookup in self._lookups:  # one after the other: the entries of one can be as large as the rows
            tree = self._registry.lookup(self._collection, lookup)
            entries = partial(make_entries, tree, self._collection, lookup, new)
            maintain(self._connection, self._registry, self._collection, [lookup], old, [entries])
