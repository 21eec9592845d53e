"""Which sorted tables a collection is kept in: its rows, its look-ups, its full text; and how they are made.

Everything follows from the catalogue. A field added there becomes a new layout (older pages are read with the default),
an index added there is built from the rows when `provision` runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from hades.errors import NotProvisioned
from hades.stores.rows import REV
from hades.stores.sqlite.pages import Tree
from schemas.catalogue import COLLECTIONS, Collection, Index, edge_collections

ROW_PAGE_BYTES = 128 * 1024
LOOKUP_PAGE_BYTES = 16 * 1024
VALUE = "_value"
VALIDITY = ("valid_from", "valid_until", "recorded_at", "retracted_at")


@dataclass(frozen=True)
class Lookup:
    """A sorted table of (value, key), or of keys alone, beside the rows."""

    name: str
    fields: tuple[str, ...]

    @property
    def sort(self) -> tuple[str, ...]:
        """What it is sorted by: keys alone, or value then key."""
        return (VALUE, "_key") if self.fields else ("_key",)

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""
        return pa.schema([pa.field(name, pa.string()) for name in self.sort])


def lookups_of(collection: Collection) -> tuple[Lookup, ...]:
    """The look-ups the embedded store keeps for a collection."""
    found = [_lookup(index) for index in collection.indexes if not index.broad]
    if any(collection.name in (*edge.edge.sources, *edge.edge.targets) for edge in edge_collections() if edge.edge):
        found.append(Lookup("#keys", ()))
    return tuple(found)


def _lookup(index: Index) -> Lookup:
    return Lookup("#" + "+".join(index.fields), index.fields)


def row_schema(collection: Collection) -> pa.Schema:
    """Rows as kept: the catalogue's columns and the revision. Rules on absence are checked before, not here."""
    fields = [pa.field(field.name, field.type) for field in collection.schema]
    return pa.schema([*fields, pa.field(REV, pa.int64())])


def tree_specs() -> Mapping[str, tuple[pa.Schema, tuple[str, ...], int, dict[str, object]]]:
    """Every sorted table by name: schema, sort columns, page size, defaults."""
    specs: dict[str, tuple[pa.Schema, tuple[str, ...], int, dict[str, object]]] = {}
    for collection in COLLECTIONS:
        defaults = {column.name: column.default for column in collection.columns}
        specs[collection.name] = (row_schema(collection), ("_key",), ROW_PAGE_BYTES, defaults)
        for lookup in lookups_of(collection):
            specs[collection.name + lookup.name] = (lookup.schema, lookup.sort, LOOKUP_PAGE_BYTES, {})
    return specs


class Registry:
    """The trees of one file, read once per handle."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        ids = dict(connection.execute("SELECT name, id FROM tree").fetchall())
        layouts: dict[int, dict[int, pa.Schema]] = {}
        encoded: dict[tuple[int, bytes], int] = {}
        for number, tree, schema in connection.execute("SELECT id, tree, schema FROM layout"):
            layouts.setdefault(tree, {})[number] = pa.ipc.read_schema(pa.py_buffer(schema))
            encoded[tree, bytes(schema)] = number
        self._trees: dict[str, Tree] = {}
        for name, (schema, sort, page_bytes, defaults) in tree_specs().items():
            layout = encoded.get((ids.get(name, -1), schema.serialize().to_pybytes()))
            if layout is None:
                raise NotProvisioned(f"{name} is not as the catalogue declares it; run `hades provision`")
            self._trees[name] = Tree(ids[name], name, sort, layout, layouts[ids[name]], defaults, page_bytes)

    def rows(self, collection: Collection) -> Tree:
        """The tree of a collection's rows."""
        return self._trees[collection.name]

    def lookup(self, collection: Collection, lookup: Lookup) -> Tree:
        """The tree of one of its look-ups."""
        return self._trees[collection.name + lookup.name]

    @cached_property
    def trees(self) -> tuple[Tree, ...]:
        """All of them."""
        return tuple(self._trees.values())


def register(connection: sqlite3.Connection) -> list[str]:
    """Declare trees and layouts that are not there yet; names of the new trees."""
    known = {row[0] for row in connection.execute("SELECT name FROM tree")}
    created = []
    for name, (schema, _, _, _) in tree_specs().items():
        if name not in known:
            connection.execute("INSERT INTO tree (name) VALUES (?)", (name,))
            created.append(name)
        connection.execute(
            "INSERT OR IGNORE INTO layout (tree, schema) SELECT id, ? FROM tree WHERE name = ?",
            (schema.serialize().to_pybytes(), name),
        )
    return created
