"""Look-ups, adjacency and full text beside the rows."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import BadQuery, NotProvisioned
from hades.ports.store import Term
from hades.stores.row_checks import REV
from hades.stores.sqlite import neighbours, pages
from hades.stores.sqlite.neighbours import NUMBERS, VALIDITY, VALUE, EdgePages, lookup_schema
from hades.stores.sqlite.pages import SEPARATOR
from hades.stores.sqlite.trees import ArrowPages, Codec, HeldPages, Tree
from hades.text.words import with_identifiers
from schemas.catalogue import Collection, EdgeShape, Index, collections_in, edge_collections, part_of
from schemas.record import make_scalar, make_table

# Which sorted tables a collection is kept in: its rows, its look-ups, its full text; and how they are made.
# Everything follows from the catalogue. A field added there becomes a new layout (older pages are read with the
# default), an index added there is built from the rows when `provision` runs.


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


# Look-up tables beside the rows: what goes into them, and how a predicate is answered from one.


_OFFSET = 1 << 62  # makes every time and count a positive number, so that padded text sorts like the number
_DIGITS = 19
_MANY_ROWS = 20_000
Entries = list[Callable[[], pa.Table | None]]  # one for each look-up concerned, in order


def lookups_over(collection: Collection, columns: Sequence[str]) -> list[Lookup]:
    """The look-ups that hold one of these columns."""
    return [one for one in lookups_of(collection) if not columns_of_entry(one, collection.edge).isdisjoint(columns)]


@contextmanager
def prepare(
    registry: Registry, collection: Collection, concerned: Sequence[Lookup], rows: pa.Table | None
) -> Iterator[Entries]:
    """The entries of some look-ups for rows about to be written.

    Sorting is Arrow's work and leaves other threads running; rows are prepared while the rows themselves are
    being written.
    """
    kept = [(registry.lookup(collection, lookup), lookup) for lookup in concerned]
    if rows is None:
        yield [lambda: None for _ in kept]
    elif rows.num_rows < _MANY_ROWS:
        yield [partial(make_entries, tree, collection, lookup, rows) for tree, lookup in kept]
    else:
        with ThreadPoolExecutor() as pool:
            yield [pool.submit(make_entries, tree, collection, lookup, rows).result for tree, lookup in kept]


def maintain_lookups(
    connection: sqlite3.Connection,
    registry: Registry,
    collection: Collection,
    concerned: Sequence[Lookup],
    old: pa.Table,
    new: Entries,
) -> None:
    """Make these look-ups of the collection follow a change of rows from `old` to the ones prepared."""
    for lookup, prepared_entries in zip(concerned, new, strict=True):
        tree = registry.lookup(collection, lookup)
        entries, gone = prepared_entries(), make_entries(tree, collection, lookup, old)
        if entries is not None and (entries.equals(gone) if gone.num_rows else not entries.num_rows):
            continue
        if lookup.far and entries is not None and entries.num_rows and gone.num_rows:
            entries, gone = _patch_weights(connection, tree, entries, gone)
            if not entries.num_rows and not gone.num_rows:
                continue
        drop = pages.sort_keys(tree, gone).to_pylist() if gone.num_rows else []
        _, grown = pages.write(connection, tree, entries, drop)
        connection.execute("UPDATE tree SET rows = rows + ? WHERE id = ?", (grown, tree.id))


def find_miscounts(connection: sqlite3.Connection, registry: Registry, collection: Collection) -> list[str]:
    """Sentences when an edge look-up does not hold every edge of the collection."""

    def rows(tree: Tree) -> int:
        count: int = connection.execute("SELECT rows FROM tree WHERE id = ?", (tree.id,)).fetchone()[0]
        return count

    stored = rows(registry.rows(collection))
    held = {one.name: rows(registry.lookup(collection, one)) for one in lookups_of(collection) if one.far}
    return [f"{collection.name}{name}: {n} edges, {stored} stored" for name, n in held.items() if n != stored]


def make_entries(tree: Tree, collection: Collection, lookup: Lookup, rows: pa.Table) -> pa.Table:
    """The look-up's entries for rows that are sorted by key; a row with a null field has none."""
    if not rows.num_rows:
        return make_table([], tree.schema)
    if not lookup.fields:
        return pa.table([rows.column("_key")], schema=tree.schema)
    value = _value_of(rows, lookup)
    columns = [value, rows.column("_key")]
    if lookup.far and collection.edge:
        columns += _edge_columns(lookup.far, collection.edge, rows)
    entries = pa.table(columns, schema=tree.schema)
    if value.null_count:
        entries = entries.filter(pc.is_valid(value))
    return entries.take(_order(entries.column(VALUE))) if entries.num_rows > 1 else entries


def answerable(collection: Collection, where: Sequence[Term]) -> tuple[Lookup, Term] | None:
    """A look-up that narrows the predicate, with the term it answers."""
    for term in where:
        for lookup in lookups_of(collection):
            if lookup.fields[:1] != (term.column,):
                continue
            if term.op in ("==", "in"):
                return lookup, term
            if term.op == "starts_with" and len(lookup.fields) == 1:
                return lookup, term
    return None


def keys_for(connection: sqlite3.Connection, tree: Tree, lookup: Lookup, term: Term) -> list[str]:
    """Keys of the rows that may satisfy the term, sorted; the caller checks the predicate on the rows."""
    values = term.value if isinstance(term.value, list) else [term.value]
    texts = [_encode(value) for value in values]
    if not texts:
        return []
    end = "" if term.op == "starts_with" else SEPARATOR
    keys: set[str] = set()
    wanted = pa.array(texts, pa.string())
    for batch in pages.pages_of_prefixes(connection, tree, [text + end for text in texts]):
        held = batch.column(VALUE)
        if len(lookup.fields) == 1 and term.op != "starts_with":
            hit = pc.is_in(held, value_set=wanted)
        else:
            hit = pa.array(np.zeros(batch.num_rows, bool))
            for text in texts:
                hit = pc.or_(hit, pc.starts_with(held, text + (end if len(lookup.fields) > 1 else "")))
        keys.update(batch.column("_key").filter(hit).to_pylist())
    return sorted(keys)


def last_lookup(collection: Collection, column: str, by: str) -> Lookup | None:
    """The look-up in which rows of one value of `column` stand in the order of `by`."""
    return next((one for one in lookups_of(collection) if one.fields == (column, by)), None)


def last_keys(connection: sqlite3.Connection, tree: Tree, same: object, at_most: object, limit: int) -> list[str]:
    """Keys of the last rows of one value at or below a bound, last first."""
    low = _encode(same) + SEPARATOR
    high = low + _encode(at_most)
    keys: list[str] = []
    for batch in pages.backwards(connection, tree, high + SEPARATOR + pages.LAST):
        held = batch.column(VALUE)
        hit = pc.and_(pc.starts_with(held, low), pc.less_equal(held, high))
        keys += reversed(batch.column("_key").filter(hit).to_pylist())
        if len(keys) >= limit or held[0].as_py() < low:
            break
    return keys[:limit]


def _patch_weights(
    connection: sqlite3.Connection, tree: Tree, entries: pa.Table, gone: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """Write the weights of edges of which nothing else changed into the pages that hold them; what is left to do."""
    rest = [name for name in tree.schema.names if name not in NUMBERS]
    before = pc.index_in(pages.sort_keys(tree, entries), value_set=pages.sort_keys(tree, gone))
    stays = before.is_valid().to_numpy(zero_copy_only=False)
    there, held = np.flatnonzero(stays), before.drop_null()
    old, new = gone.take(held), entries.take(pa.array(there))
    same = _are_equal(old, new, rest)
    reweighed = np.flatnonzero(same & ~_are_equal(old, new, NUMBERS))
    is_patched = neighbours.patch_weights(connection, tree, new.take(pa.array(reweighed)))
    same[reweighed[~is_patched]] = False
    stays[there[~same]] = False
    settled = np.zeros(gone.num_rows, bool)
    settled[held.to_numpy(zero_copy_only=False)[same]] = True
    return entries.filter(pa.array(~stays)), gone.filter(pa.array(~settled))


def _are_equal(left: pa.Table, right: pa.Table, names: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows of two tables of one length have the same values in these columns; absent equals absent."""
    same = np.ones(left.num_rows, bool)
    for name in names:
        one, other = left.column(name), right.column(name)
        equal = pc.fill_null(pc.equal(one, other), False).to_numpy()
        same &= equal | (pc.is_null(one).to_numpy() & pc.is_null(other).to_numpy())
    return same


def columns_of_entry(lookup: Lookup, shape: EdgeShape | None) -> set[str]:
    """The columns of a row that its entry in the look-up is made of, but for the key."""
    if not lookup.far or shape is None:
        return set(lookup.fields)
    return {*lookup.fields, lookup.far, shape.type_field, shape.weight_field, shape.cost_field or "", *VALIDITY}


def _edge_columns(far: str, shape: EdgeShape, rows: pa.Table) -> list[pa.ChunkedArray]:
    """What a traversal needs of each edge, in the order of the look-up's schema."""
    nulls = pa.chunked_array([pa.nulls(rows.num_rows, pa.float64())])
    cost = rows.column(shape.cost_field) if shape.cost_field else nulls
    times = [rows.column(name).cast(pa.int64()) for name in VALIDITY]
    return [rows.column(far), rows.column(shape.type_field), rows.column(shape.weight_field), cost, *times]


def _value_of(rows: pa.Table, lookup: Lookup) -> pa.Array:
    parts = [_as_text(rows.column(name).combine_chunks()) for name in lookup.fields]
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, make_scalar(SEPARATOR, pa.string()))


def _as_text(column: pa.Array) -> pa.Array:
    """Values as text that sorts as they do."""
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_integer(column.type):
        return pc.utf8_lpad(pc.add(column, make_scalar(_OFFSET, pa.int64())).cast(pa.string()), _DIGITS, "0")
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "1", "0")
    raise TypeError(f"a look-up by {column.type} is not supported; index text, times, whole numbers or booleans")


def _encode(value: object) -> str:
    if isinstance(value, str):
        return value
    array = pa.array([value]) if not hasattr(value, "tzinfo") else pa.array([value], pa.timestamp("us", tz="UTC"))
    text: str = _as_text(array)[0].as_py()
    return text


def _order(values: pa.ChunkedArray) -> pa.Array:
    """Order by value for rows already sorted by key: a stable sort of the values' ranks, much faster than of texts."""
    encoded = values.combine_chunks().dictionary_encode()
    rank = np.empty(len(encoded.dictionary), dtype=np.int32)
    rank[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary), dtype=np.int32)
    return pa.array(np.argsort(rank[encoded.indices.to_numpy()], kind="stable"))


# Full text by FTS5: an index without a copy of the text, kept in step with the rows.


_WORD = re.compile(r"\w+")


def create(connection: sqlite3.Connection, collection: Collection) -> bool:
    """Create the index of a collection with text, or rebuild it when its fields changed; whether it is empty."""
    held = tuple(name for _, name, *_ in connection.execute(f"PRAGMA table_info({_table(collection)})"))
    if held == collection.text_fields:
        return False
    if held:
        connection.execute(f"DROP TABLE {_table(collection)}")
        connection.execute(f"DROP TABLE {_table(collection)}_key")
    if not collection.text_fields:
        return False
    fields = ", ".join(collection.text_fields)
    connection.execute(
        f"CREATE VIRTUAL TABLE {_table(collection)} USING fts5"
        f"({fields}, content='', tokenize='porter unicode61 remove_diacritics 2')"
    )
    connection.execute(
        f"CREATE TABLE {_table(collection)}_key (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE) STRICT"
    )
    return True


def maintain_fulltext(
    connection: sqlite3.Connection, collection: Collection, old: pa.Table, new: pa.Table | None
) -> None:
    """Make the index follow a change of rows from `old` to `new`; rows whose text stayed are left alone."""
    if not collection.text_fields:
        return
    columns = ["_key", *collection.text_fields]
    old, new = old.select(columns), new.select(columns) if new is not None else None
    if new is not None and old.num_rows:
        same = _find_unchanged(old, new)
        if same:
            kept = pa.array(sorted(same))
            old = old.filter(pc.invert(pc.is_in(old.column("_key"), value_set=kept)))
            new = new.filter(pc.invert(pc.is_in(new.column("_key"), value_set=kept)))
    if old.num_rows:
        _remove(connection, collection, old)
    if new is not None and new.num_rows:
        _add(connection, collection, new)


def search(connection: sqlite3.Connection, collection: Collection, text: str) -> list[tuple[str, float]]:
    """Every matching key with its BM25 (higher is better), best first, then by key."""
    if not collection.text_fields:
        raise BadQuery(f"{collection.name} has no text fields to search; declare them in schemas/catalogue.py")
    if not text.strip():
        raise BadQuery("the text to search for is empty")
    words = dict.fromkeys(_WORD.findall(with_identifiers(text)))
    if not words:
        return []
    table = _table(collection)
    return connection.execute(
        f"SELECT k.key, -bm25({table}) AS score FROM {table} JOIN {table}_key AS k ON k.id = {table}.rowid "
        f"WHERE {table} MATCH ? ORDER BY score DESC, k.key",
        (" OR ".join(f'"{word}"' for word in words),),
    ).fetchall()


def optimize(connection: sqlite3.Connection, collection: Collection) -> None:
    """Merge the index into one segment, which drops the words of rows that were removed."""
    if collection.text_fields:
        connection.execute(f"INSERT INTO {_table(collection)} ({_table(collection)}) VALUES ('optimize')")


def _find_unchanged(old: pa.Table, new: pa.Table) -> set[str]:
    before = dict(zip(old.column("_key").to_pylist(), zip(*_texts(old), strict=True), strict=True))
    after = zip(new.column("_key").to_pylist(), zip(*_texts(new), strict=True), strict=True)
    return {key for key, texts in after if before.get(key) == texts}


def _texts(rows: pa.Table) -> list[list[str]]:
    return [pc.fill_null(column, "").to_pylist() for column in rows.columns[1:]]


def _add(connection: sqlite3.Connection, collection: Collection, rows: pa.Table) -> None:
    table = _table(collection)
    top = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}_key").fetchone()[0]
    ids = range(top + 1, top + 1 + rows.num_rows)
    connection.executemany(
        f"INSERT INTO {table}_key (id, key) VALUES (?, ?)", zip(ids, rows.column("_key").to_pylist(), strict=True)
    )
    names, marks = ", ".join(collection.text_fields), ", ".join("?" * len(collection.text_fields))
    connection.executemany(
        f"INSERT INTO {table} (rowid, {names}) VALUES (?, {marks})", zip(ids, *_texts(rows), strict=True)
    )


def _remove(connection: sqlite3.Connection, collection: Collection, rows: pa.Table) -> None:
    table = _table(collection)
    ids = [
        connection.execute(f"DELETE FROM {table}_key WHERE key = ? RETURNING id", (key,)).fetchone()[0]
        for key in rows.column("_key").to_pylist()
    ]
    names, marks = ", ".join(collection.text_fields), ", ".join("?" * len(collection.text_fields))
    # An index without content must be told the very text that it forgets.
    connection.executemany(
        f"INSERT INTO {table} ({table}, rowid, {names}) VALUES ('delete', ?, {marks})",
        zip(ids, *_texts(rows), strict=True),
    )


def _table(collection: Collection) -> str:
    return f"fts_{collection.name}"
