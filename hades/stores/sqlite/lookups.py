"""Look-up tables beside the rows: what goes into them, and how a predicate is answered from one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ports.store import Term
from hades.stores.sqlite import adjacency, pages
from hades.stores.sqlite.adjacency import NUMBERS, VALIDITY, VALUE
from hades.stores.sqlite.pages import SEPARATOR
from hades.stores.sqlite.registry import Lookup, Registry, lookups_of
from hades.stores.sqlite.trees import Tree
from schemas.arrays import make_scalar, make_table
from schemas.catalogue import Collection, EdgeShape

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


def maintain(
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
    is_patched = adjacency.patch_weights(connection, tree, new.take(pa.array(reweighed)))
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
