"""All row operations on one connection; the transaction around them belongs to the caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import BadQuery
from hades.ports.store import (
    BATCH_ROWS,
    HIT_SCHEMA,
    NEIGHBOUR_SCHEMA,
    Direction,
    Mode,
    Predicate,
    Rows,
    Term,
    WriteReport,
)
from hades.stores import row_checks
from hades.stores.row_checks import REV
from hades.stores.sqlite import tables
from hades.stores.sqlite.tables import json_text, micros, predicate, quote
from schemas.catalogue import Collection
from schemas.ids import Mask

_KEYS_PER_QUERY = 20_000
_NEXT_REVISION = "UPDATE counter SET value = value + 1 WHERE name = 'revision' RETURNING value"
_AMONG = "_key IN (SELECT value FROM json_each(?))"
_VISIBLE = {
    "as_of": "(valid_from IS NULL OR valid_from <= ?) AND (valid_until IS NULL OR ? < valid_until)",
    "known_at": "(recorded_at IS NULL OR recorded_at <= ?) AND (retracted_at IS NULL OR ? < retracted_at)",
}
_WAYS = {Direction.OUT: (True,), Direction.IN: (False,), Direction.ANY: (True, False)}


class Session:
    """A `RowStore` over a connection that is already inside a transaction."""

    def __init__(self, connection: sqlite3.Connection, mode: Mode) -> None:
        self._connection = connection
        self._mode = mode

    @property
    def mode(self) -> Mode:
        """What this handle may do."""
        return self._mode

    def upsert(self, collection: str, rows: Rows, *, check_rev: bool = False) -> WriteReport:
        """See `RowStore.upsert`."""
        target = row_checks.require(collection)
        written = batches = 0
        for given in row_checks.as_tables(rows):
            table = row_checks.prepare(target, given, with_rev=check_rev)
            if check_rev:
                now = self.get(collection, table.column("_key").to_pylist(), columns=["_key"], with_rev=True)
                held = dict(zip(now.column("_key").to_pylist(), now.column(REV).to_pylist(), strict=True))
                row_checks.refuse_changed(target, table, held)
            if target.edge:
                self._check_ends(target, table)
            self._put(target, table)
            written, batches = written + table.num_rows, batches + 1
        return WriteReport(written, batches)

    def patch(self, collection: str, rows: Rows) -> WriteReport:
        """See `RowStore.patch`."""
        target = row_checks.require(collection)
        written = batches = 0
        for given in row_checks.as_tables(rows):
            table = row_checks.prepare(target, given, partial=True)
            missing = set(self._missing(collection, table.column("_key").to_pylist()))
            row_checks.refuse_unknown(target, table, missing)
            names = [name for name in table.column_names if name != "_key"]
            changes = ", ".join(f"{quote(name)} = ?" for name in [*names, REV])
            ordered = table.select([*names, "_key"])
            statement = f"UPDATE {quote(collection)} SET {changes} WHERE _key = ?"
            self._write(target, statement, ordered, rev_at=len(names))
            written, batches = written + table.num_rows, batches + 1
        return WriteReport(written, batches)

    def delete(self, collection: str, *, keys: Iterable[str] = (), where: Predicate = ()) -> int:
        """See `RowStore.delete`."""
        target = row_checks.require(collection)
        wanted = sorted(set(keys))
        row_checks.refuse_both(collection, wanted, where)
        if where:
            condition, values = predicate(row_checks.check_terms(target, where))
        elif wanted:
            condition, values = _AMONG, [json_text(wanted)]
        else:
            return 0
        self._next_revision(target)
        return self._connection.execute(f"DELETE FROM {quote(collection)} WHERE {condition}", values).rowcount

    def get(
        self, collection: str, keys: Sequence[str], *, columns: Sequence[str] | None = None, with_rev: bool = False
    ) -> pa.Table:
        """See `RowStore.get`."""
        target = row_checks.require(collection)
        names = (*row_checks.check_columns(target, columns), *([REV] if with_rev else []))
        batches = list(self._rows_of(target, sorted(set(keys)), names, _KEYS_PER_QUERY))
        return pa.Table.from_batches(batches, schema=tables.schema_of(collection, names)).combine_chunks()

    def scan(
        self,
        collection: str,
        *,
        where: Predicate = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """See `RowStore.scan`."""
        target = row_checks.require(collection)
        terms = row_checks.check_terms(target, where)
        names = tuple(row_checks.check_columns(target, columns))
        row_checks.check_limit("batch_rows", batch_rows)
        return self._matching(target, terms, names, batch_rows)

    def marks(self, collections: Sequence[str]) -> dict[str, str]:
        """See `RowStore.marks`: the revision of the last write."""
        held = dict(self._connection.execute("SELECT name, value FROM counter").fetchall())
        return {row_checks.require(name).name: str(held.get(name, 0)) for name in collections}

    def last(
        self, collection: str, *, same: Term, by: str, at_most: object, limit: int, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """See `RowStore.last`."""
        target = row_checks.require(collection)
        condition, values = predicate(row_checks.check_last(target, same, by, at_most))
        row_checks.check_limit("limit", limit)
        names = tuple(row_checks.check_columns(target, columns))
        order = f"ORDER BY {quote(by)} DESC, _key DESC LIMIT ?"
        return pa.Table.from_batches([self._select(target, names, f"WHERE {condition} {order}", [*values, limit])])

    def count(self, collection: str, *, where: Predicate = ()) -> int:
        """See `RowStore.count`."""
        condition, values = predicate(row_checks.check_terms(row_checks.require(collection), where))
        statement = f"SELECT count(*) FROM {quote(collection)}" + (f" WHERE {condition}" if where else "")
        total: int = self._connection.execute(statement, values).fetchone()[0]
        return total

    def search(self, collection: str, text: str, *, limit: int, where: Predicate = ()) -> pa.Table:
        """See `RowStore.search`."""
        target = row_checks.require(collection)
        row_checks.check_limit("limit", limit)
        terms = row_checks.check_terms(target, where)
        hits = tables.search(self._connection, target, text, terms, limit)
        return pa.Table.from_batches([tables.to_batch(hits, HIT_SCHEMA)])

    def nearest(
        self, collection: str, vector: Sequence[float], *, model: str, limit: int, where: Predicate = ()
    ) -> pa.Table:
        """See `RowStore.nearest`."""
        target = row_checks.require(collection)
        asked = row_checks.check_vector(target, vector)
        row_checks.check_limit("limit", limit)
        if row_checks.declare_dimension(model) not in (None, asked.size):
            raise BadQuery(
                f"the vector has dimension {asked.size}, {model} makes {row_checks.declare_dimension(model)}"
            )
        field = str(target.vector_field)
        terms = row_checks.check_terms(target, where)
        terms = (*terms, Term("embedding_model", "==", model), Term(field, "not_null"))
        keys: list[str] = []
        scores = [np.empty(0, np.float32)]
        for batch in self._matching(target, terms, ("_key", field), BATCH_ROWS):
            held = batch.column(field)
            for size in pc.unique(pc.list_value_length(held)).to_pylist():
                if size != asked.size:
                    raise BadQuery(f"vectors of {model} in {collection} have dimension {size}, not {asked.size}")
            scores.append(row_checks.cosines(held.flatten().to_numpy().reshape(-1, asked.size), asked))
            keys.extend(batch.column("_key").to_pylist())
        best = np.concatenate(scores)
        order = np.argsort(-best, kind="stable")[:limit]
        return pa.table([[keys[row] for row in order], best[order].astype(np.float64)], schema=HIT_SCHEMA)

    def neighbours(
        self,
        nodes: Sequence[str],
        *,
        edges: str = "relations",
        direction: Direction = Direction.OUT,
        types: Sequence[str] | None = None,
        fanout: int,
        mask: Mask = Mask(),
    ) -> pa.Table:
        """See `RowStore.neighbours`."""
        shape = row_checks.require(edges).edge
        if shape is None:
            raise BadQuery(f"{edges} holds no edges; name an edge collection")
        row_checks.check_limit("fanout", fanout)
        conditions, values = ["1"], list[object]()
        if types is not None:
            conditions.append(f"{quote(shape.type_field)} IN (SELECT value FROM json_each(?))")
            values.append(json_text(list(types)))
        for axis, condition in _VISIBLE.items():
            if (moment := getattr(mask, axis)) is not None:
                conditions.append(condition)
                values += [micros(moment)] * 2
        kind, weight = quote(shape.type_field), quote(shape.weight_field)
        ways = [
            f"SELECT {far}, _key, {kind}, {weight} AS weight, {outbound} FROM {quote(edges)} "
            f"WHERE {near} = ? AND {' AND '.join(conditions)}"
            + (" AND _from != _to" if direction is Direction.ANY and not outbound else "")
            for outbound in _WAYS[direction]
            for near, far in [("_from", "_to") if outbound else ("_to", "_from")]
        ]
        statement = f"SELECT * FROM ({' UNION ALL '.join(ways)}) ORDER BY weight IS NULL, weight DESC, _key LIMIT ?"
        found = [
            (node, *edge)
            for node in dict.fromkeys(nodes)
            for edge in self._connection.execute(statement, [*[node, *values] * len(ways), fanout])
        ]
        return pa.Table.from_batches([tables.to_batch(found, NEIGHBOUR_SCHEMA)])

    def _put(self, collection: Collection, table: pa.Table) -> None:
        """Insert rows or replace those of the same keys; they were checked."""
        names = [*collection.schema.names, REV]
        columns, places = ", ".join(map(quote, names)), ", ".join("?" * len(names))
        changes = ", ".join(f"{quote(name)} = excluded.{quote(name)}" for name in names if name != "_key")
        statement = f"INSERT INTO {quote(collection.name)} ({columns}) VALUES ({places})"
        statement += f" ON CONFLICT (_key) DO UPDATE SET {changes}"
        self._write(collection, statement, table.select(collection.schema.names))

    def _write(self, collection: Collection, statement: str, table: pa.Table, rev_at: int | None = None) -> None:
        """Run a statement for every row, with the store's next revision as the last value, or at that place."""
        revision = self._next_revision(collection)
        columns = [tables.to_sql(column.combine_chunks()) for column in table.columns]
        columns.insert(len(columns) if rev_at is None else rev_at, [revision] * table.num_rows)
        self._connection.executemany(statement, zip(*columns, strict=True))

    def _next_revision(self, collection: Collection) -> int:
        """The revision of the write that begins, which is noted as the last of the collection."""
        revision: int = self._connection.execute(_NEXT_REVISION).fetchone()[0]
        self._connection.execute("INSERT OR REPLACE INTO counter VALUES (?, ?)", (collection.name, revision))
        return revision

    def _matching(
        self, collection: Collection, terms: Sequence[Term], names: tuple[str, ...], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Rows that satisfy the terms, in key order; rows that are written meanwhile do not disturb the order."""
        if terms:
            condition, values = predicate(terms)
            keys = self._connection.execute(
                f"SELECT _key FROM {quote(collection.name)} WHERE {condition} ORDER BY _key", values
            ).fetchall()
            yield from self._rows_of(collection, [key for (key,) in keys], names, batch_rows)
            return
        after = ""
        while True:
            batch = self._select(collection, names, "WHERE _key > ? ORDER BY _key LIMIT ?", [after, batch_rows])
            if batch.num_rows:
                yield batch
            if batch.num_rows < batch_rows:
                return
            after = batch.column("_key")[-1].as_py()

    def _rows_of(
        self, collection: Collection, keys: Sequence[str], names: tuple[str, ...], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(keys), batch_rows):
            part = json_text(keys[start : start + batch_rows])
            yield self._select(collection, names, f"WHERE {_AMONG} ORDER BY _key", [part])

    def _select(
        self, collection: Collection, names: tuple[str, ...], rest: str, values: Sequence[object]
    ) -> pa.RecordBatch:
        columns = ", ".join(f"CAST({REV} AS TEXT)" if name == REV else quote(name) for name in names)
        rows = self._connection.execute(f"SELECT {columns} FROM {quote(collection.name)} {rest}", values).fetchall()
        return tables.to_batch(rows, tables.schema_of(collection.name, names))

    def _check_ends(self, collection: Collection, table: pa.Table) -> None:
        for end in ("_from", "_to"):
            column = table.column(end)
            missing = self._missing_nodes(pc.unique(column).to_pylist())
            row_checks.refuse_end(collection, table, end, missing)

    def _missing_nodes(self, identifiers: Sequence[str]) -> list[str]:
        by_collection: dict[str, list[str]] = {}
        for one in identifiers:
            name, _, key = one.partition("/")
            by_collection.setdefault(name, []).append(key)
        return [f"{name}/{key}" for name, keys in by_collection.items() for key in self._missing(name, keys)]

    def _missing(self, collection: str, keys: Sequence[str]) -> list[str]:
        found = self._connection.execute(
            "SELECT value FROM json_each(?) AS asked "
            f"WHERE NOT EXISTS (SELECT 1 FROM {quote(collection)} WHERE _key = asked.value)",
            (json_text(keys),),
        )
        return [key for (key,) in found]
