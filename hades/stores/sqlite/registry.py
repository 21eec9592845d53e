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
from hades.stores.sqlite.adjacency import VALUE, EdgePages, lookup_schema
from hades.stores.sqlite.held_pages import HeldPages
from hades.stores.sqlite.trees import ArrowPages, Codec, Tree
from schemas.catalogue import Collection, Index, edge_collections
from schemas.parts import collections_in, part_of

ROW_PAGE_BYTES = 128 * 1024
LOOKUP_PAGE_BYTES = 16 * 1024
EDGE_PAGE_BYTES = 6 * 1024  # some fifty edges: a traversal reads a page for each of its nodes


@dataclass(frozen=True)
class Lookup:
    """A sorted table beside the rows: of (value, key), of keys alone, or of edges by one of their ends."""

    name: str
    fields: tuple[str, ...]
    far: str | None = None  # of an edge look-up: the column of the other end

    @property
    def sort(self) -> tuple[str, ...]:
        """What it is sorted by: keys alone, or value then key."""
        return (VALUE, "_key") if self.fields else ("_key",)

    def schema(self, collection: Collection) -> pa.Schema:
        """Its columns."""
        if self.far and collection.edge:
            return lookup_schema(self.far, collection.edge.type_field)
        return pa.schema([pa.field(name, pa.string()) for name in self.sort])

    @property
    def codec(self) -> Codec:
        """How its pages are kept."""
        return EdgePages() if self.far else ArrowPages()

    @property
    def page_bytes(self) -> int:
        """How large its pages are."""
        return EDGE_PAGE_BYTES if self.far else LOOKUP_PAGE_BYTES


def lookups_of(collection: Collection) -> tuple[Lookup, ...]:
    """The look-ups the embedded store keeps for a collection."""
    found = [_lookup(index) for index in collection.indexes if not index.broad]
    if collection.edge:
        found += [Lookup("#from", ("_from",), "_to"), Lookup("#to", ("_to",), "_from")]
    if any(collection.name in (*edge.edge.sources, *edge.edge.targets) for edge in edge_collections() if edge.edge):
        found.append(Lookup("#keys", ()))
    return tuple(found)


def _lookup(index: Index) -> Lookup:
    return Lookup("#" + "+".join(index.fields), index.fields)


def row_schema(collection: Collection) -> pa.Schema:
    """Rows as kept: the catalogue's columns and the revision. Rules on absence are checked before, not here."""
    fields = [pa.field(field.name, field.type) for field in collection.schema]
    return pa.schema([*fields, pa.field(REV, pa.int64())])


@dataclass(frozen=True)
class Spec:
    """How a sorted table is to be."""

    schema: pa.Schema
    sort: tuple[str, ...]
    page_bytes: int
    codec: Codec
    defaults: dict[str, object]


def tree_specs(part: str) -> Mapping[str, Spec]:
    """Every sorted table of a part of the catalogue, by name."""
    specs: dict[str, Spec] = {}
    for collection in collections_in(part):
        defaults = {column.name: column.default for column in collection.columns}
        specs[collection.name] = Spec(row_schema(collection), ("_key",), ROW_PAGE_BYTES, ArrowPages(), defaults)
        for lookup in lookups_of(collection):
            specs[collection.name + lookup.name] = Spec(
                lookup.schema(collection), lookup.sort, lookup.page_bytes, lookup.codec, {}
            )
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
        self.part = part_of(ids)
        self._trees: dict[str, Tree] = {}
        held = HeldPages()
        for name, spec in tree_specs(self.part).items():
            layout = encoded.get((ids.get(name, -1), spec.schema.serialize().to_pybytes()))
            if layout is None:
                raise NotProvisioned(f"{name} is not as the catalogue declares it; run `hades provision`")
            self._trees[name] = Tree(
                ids[name],
                name,
                spec.sort,
                layout,
                layouts[ids[name]],
                spec.defaults,
                spec.page_bytes,
                spec.codec,
                held=held,
            )

    def rows(self, collection: Collection) -> Tree:
        """The tree of a collection's rows."""
        return self._tree(collection.name)

    def lookup(self, collection: Collection, lookup: Lookup) -> Tree:
        """The tree of one of its look-ups."""
        return self._tree(collection.name + lookup.name)

    @cached_property
    def trees(self) -> tuple[Tree, ...]:
        """All of them."""
        return tuple(self._trees.values())

    def _tree(self, name: str) -> Tree:
        if name not in self._trees:
            raise NotProvisioned(
                f"this database is made for {self.part} and has no {name.partition('#')[0]}; "
                "`hades provision --only all` makes the rest"
            )
        return self._trees[name]


def hold_part(connection: sqlite3.Connection) -> str:
    """What a file was made for, from the collections it keeps."""
    return part_of({row[0] for row in connection.execute("SELECT name FROM tree")})


def register(connection: sqlite3.Connection, part: str | None = None) -> list[str]:
    """Declare trees and layouts of a part that are not there yet; without one, of what the file was made for.

    The names of the new trees.
    """
    known = {row[0] for row in connection.execute("SELECT name FROM tree")}
    created = []
    for name, spec in tree_specs(part or part_of(known)).items():
        if name not in known:
            connection.execute("INSERT INTO tree (name) VALUES (?)", (name,))
            created.append(name)
        connection.execute(
            "INSERT OR IGNORE INTO layout (tree, schema) SELECT id, ? FROM tree WHERE name = ?",
            (spec.schema.serialize().to_pybytes(), name),
        )
    return created
