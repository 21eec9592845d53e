"""Patched and later rows."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ports.store import Changes
from hades.stores.sqlite import lookups, pages
from hades.stores.sqlite import lookups as fulltext
from hades.stores.sqlite.lookups import Registry, columns_of_entry, lookups_of, maintain_lookups, make_entries
from hades.stores.sqlite.trees import Tree, sort_by_key
from schemas.catalogue import Collection
from schemas.record import make_array

# Which rows of a followed collection changed when, so that an index in another process can catch up.


MANY = 10_000  # rows in one write; beyond it a reader had better read everything again
KEPT = 20_000  # revisions that the list reaches back
_TIDY_EVERY = 1_000


def record(connection: sqlite3.Connection, tree: Tree, keys: Sequence[str]) -> None:
    """Note the rows of a write inside its transaction, under a revision of their own."""
    revision = connection.execute(
        "UPDATE counter SET value = value + 1 WHERE name = 'revision' RETURNING value"
    ).fetchone()[0]
    if len(keys) > MANY:
        _forget_before(connection, revision)
        return
    connection.executemany(
        "INSERT INTO change (revision, tree, key) VALUES (?, ?, ?)", [(revision, tree.id, key) for key in keys]
    )
    if revision % _TIDY_EVERY == 0:
        _forget_before(connection, revision - KEPT)


def changes(connection: sqlite3.Connection, tree: Tree, since: int) -> Changes | None:
    """The keys of a collection that changed after a revision; None for keys when the list begins later.

    None in all where the file is of a version before the list; `hades provision` adds it.
    """
    counters = dict(connection.execute("SELECT name, value FROM counter").fetchall())
    revision = counters["revision"]
    if "changes_after" not in counters:
        return None
    if since < counters["changes_after"]:
        return Changes(revision, None)
    if since == revision:
        return Changes(revision, [])
    found = connection.execute("SELECT DISTINCT key FROM change WHERE tree = ? AND revision > ?", (tree.id, since))
    return Changes(revision, [key for (key,) in found])


def _forget_before(connection: sqlite3.Connection, revision: int) -> None:
    connection.execute("DELETE FROM change WHERE revision <= ?", (revision,))
    connection.execute("UPDATE counter SET value = max(value, ?) WHERE name = 'changes_after'", (revision,))


# Some columns of rows that exist are changed in their pages; the other columns of a page are taken over as they
# are. Rows stay in their pages and in their order, so nothing is sorted or merged, and of the rows only the columns
# that look-ups and the full text are made of are looked at. A page that grows beyond its size is left to
# `pages.write`, which cuts it.


_GROWN = 2  # times the size of a page, from which on it is cut
_HELD_BYTES = 64 << 20  # of pages that are read once; more are read again to be changed
_ONE_PAGE = "SELECT layout, absent, data FROM page WHERE id = ?"
_REPLACE = "UPDATE page SET layout = ?, absent = ?, crc = ?, data = ? WHERE id = ?"


class _Content(NamedTuple):
    """The rows of a page, and how many bytes it has."""

    batch: pa.RecordBatch
    size: int


@dataclass(frozen=True)
class TouchedPage:
    """A page, which of the sorted changes fall into it (from first to before last), and the row of each there.

    `content` is the page, as long as there is room for it.
    """

    number: int
    fence: str
    first: int
    last: int
    rows: NDArray[np.int64]
    content: _Content | None


def find_rows(connection: sqlite3.Connection, tree: Tree, keys: Sequence[str]) -> list[TouchedPage] | None:
    """The pages in which these sorted keys stand; None where one of them stands in none."""
    touched, room = [], _HELD_BYTES
    for number, fence, first, last in pages.find_pages(connection, tree, keys):
        content = _read(connection, tree, number)
        held = content.batch.column(tree.sort[0])
        places = pc.index_in(make_array(keys[first:last], pa.string()), value_set=held)
        if places.null_count:
            return None
        room -= content.size
        rows = places.cast(pa.int64()).to_numpy()
        touched.append(TouchedPage(number, fence, first, last, rows, content if room > 0 else None))
    return touched if touched or not keys else None


def patch_rows(
    connection: sqlite3.Connection,
    registry: Registry,
    collection: Collection,
    touched: Sequence[TouchedPage],
    changes: pa.Table,
) -> None:
    """Set the columns of `changes`, sorted by key, with the look-ups and the full text that hold one of them."""
    tree, names = registry.rows(collection), changes.column_names
    concerned, in_text = lookups.lookups_over(collection, names), not set(names).isdisjoint(collection.text_fields)
    needed = {"_key"}.union(*(lookups.columns_of_entry(one, collection.edge) for one in concerned))
    needed |= set(collection.text_fields) if in_text else set()
    wanted = [name for name in tree.schema.names if name in needed] if concerned or in_text else []
    old, new = patch_pages(connection, tree, touched, changes, wanted)
    if concerned:
        with lookups.prepare(registry, collection, concerned, new) as entries:
            lookups.maintain_lookups(connection, registry, collection, concerned, old, entries)
    if in_text:
        fulltext.maintain_fulltext(connection, collection, old, new)
    if collection.followed:
        record(connection, tree, changes.column("_key").to_pylist())


def patch_pages(
    connection: sqlite3.Connection, tree: Tree, touched: Sequence[TouchedPage], changes: pa.Table, wanted: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """Set the columns in the pages; the columns `wanted` of the rows that changed, as they were and as they are now."""
    columns = {name: changes.column(name).cast(tree.schema.field(name).type) for name in changes.column_names}
    arrays = {name: pa.concat_arrays(one.chunks) for name, one in columns.items() if one.num_chunks}
    schema = pa.schema([tree.schema.field(name) for name in wanted])
    before, after = [], []
    for page in touched:
        old, size = page.content or _read(connection, tree, page.number)
        mine = {name: values.slice(page.first, page.last - page.first) for name, values in arrays.items()}
        new = _set_columns(old, page.rows, mine)
        if wanted:
            places = pa.array(page.rows)
            before.append(old.select(list(wanted)).take(places))
            after.append(new.select(list(wanted)).take(places))
        ((_, absent, data),) = tree.codec.encode(tree, new, max(1, new.num_rows))
        if len(data) > size and len(data) > _GROWN * tree.page_bytes:
            pages.write(connection, tree, pa.Table.from_batches([new.take(pa.array(page.rows))]))
            continue
        tree.held.drop(tree.id, page.fence, page.fence)
        connection.execute(_REPLACE, (tree.layout, absent, zlib.crc32(data), data, page.number))
    return pa.Table.from_batches(before, schema=schema), pa.Table.from_batches(after, schema=schema)


def _read(connection: sqlite3.Connection, tree: Tree, number: int) -> _Content:
    layout, absent, data = connection.execute(_ONE_PAGE, (number,)).fetchone()
    return _Content(tree.codec.decode(tree, layout, absent, data), len(data))


def _set_columns(batch: pa.RecordBatch, rows: NDArray[np.int64], columns: dict[str, pa.Array]) -> pa.RecordBatch:
    """The batch with other values of these columns in these rows."""
    chosen = np.arange(batch.num_rows)
    chosen[rows] = batch.num_rows + np.arange(len(rows))
    places = pa.array(chosen)
    arrays = [
        pa.concat_arrays([held, columns[name]]).take(places) if name in columns else held
        for name, held in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


# Rows that enter the look-ups of their collection together, after the last batch of a call.


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
            maintain_lookups(self._connection, self._registry, self._collection, [lookup], old, [entries])
