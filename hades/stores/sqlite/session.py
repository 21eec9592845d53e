"""All row operations, inside a transaction of the caller or each in one of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import pyarrow as pa

from hades.ports.store import BATCH_ROWS, Predicate, Rows, RowStore, Term
from hades.stores import row_checks
from hades.stores.sqlite import tables
from hades.stores.sqlite.tables import REV, json_text, predicate, quote
from schemas.catalogue import Collection, columns_schema

_KEYS_PER_QUERY = 20_000
_NEXT_REVISION = "UPDATE counter SET value = value + 1 WHERE name = 'revision' RETURNING value"
_AMONG = "_key IN (SELECT value FROM json_each(?))"
Lend = Callable[[], AbstractContextManager[sqlite3.Connection]]


class SqliteRows(RowStore):
    """A `RowStore` whose operations run on connections that are lent to it, to read one state of
    the file or to write.

    The transaction of a connection belongs to the lender.
    """

    def __init__(self, reading: Lend, writing: Lend) -> None:
        self._reading, self._writing = reading, writing

    def upsert(self, collection: str, rows: Rows) -> int:
        target = row_checks.require(collection)
        written = 0
        for batch in row_checks.as_tables(rows):
            table = row_checks.prepare(target, batch)
            with self._writing() as connection:
                if target.edge:
                    row_checks.check_stored_ends(
                        target,
                        table,
                        partial(_missing_keys, connection),
                    )
                _upsert_rows(connection, target, table)

            written += table.num_rows

        return written

    def patch(self, collection: str, rows: Rows) -> int:
        target = row_checks.require(collection)
        written = 0
        for batch in row_checks.as_tables(rows):
            table = row_checks.prepare(target, batch, partial=True)
            names = []
            for name in table.column_names:
                if name != "_key":
                    names.append(name)

            changes = ", ".join(f"{quote(name)} = ?" for name in [*names, REV])
            statement = f"UPDATE {quote(collection)} SET {changes} WHERE _key = ?"
            with self._writing() as connection:
                missing = set(
                    _missing_keys(
                        connection,
                        collection,
                        table.column("_key").to_pylist(),
                    )
                )
                row_checks.refuse_unknown(target, table, missing)
                _write_rows(
                    connection,
                    target,
                    statement,
                    table.select([*names, "_key"]),
                    rev_at=len(names),
                )

            written += table.num_rows

        return written

    def delete(
        self,
        collection: str,
        *,
        keys: Iterable[str] = (),
        where: Predicate = (),
    ) -> int:
        target = row_checks.require(collection)
        sorted_keys = sorted(set(keys))
        row_checks.refuse_both(
            collection,
            sorted_keys,
            where,
        )

        if where:
            condition, values = predicate(row_checks.check_terms(target, where))
        elif sorted_keys:
            condition = _AMONG
            values = [json_text(sorted_keys)]
        else:
            return 0

        with self._writing() as connection:
            _next_revision(connection, target)
            return connection.execute(
                f"DELETE FROM {quote(collection)} WHERE {condition}",
                values,
            ).rowcount

    def get(
        self,
        collection: str,
        keys: Sequence[str],
        *,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        target = row_checks.require(collection)
        names = tuple(row_checks.check_columns(target, columns))
        with self._reading() as connection:
            batches = list(
                _rows_of(
                    connection,
                    target,
                    sorted(set(keys)),
                    names,
                    _KEYS_PER_QUERY,
                )
            )

        return pa.Table.from_batches(batches, columns_schema(collection, names)).combine_chunks()

    def scan(
        self,
        collection: str,
        *,
        where: Predicate = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        target = row_checks.require(collection)
        terms = row_checks.check_terms(target, where)
        names = tuple(row_checks.check_columns(target, columns))
        row_checks.check_limit("batch_rows", batch_rows)
        return self._scan(target, terms, names, batch_rows)

    def _scan(
        self,
        collection: Collection,
        terms: Sequence[Term],
        names: tuple[str, ...],
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """Rows that satisfy the terms, in key order; rows that are written meanwhile do not disturb
        the order.
        """
        with self._reading() as connection:
            if terms:
                condition, values = predicate(terms)
                statement = (
                    f"SELECT _key FROM {quote(collection.name)} WHERE {condition} ORDER BY _key"
                )
                keys = [key for (key,) in connection.execute(statement, values)]
                yield from _rows_of(
                    connection,
                    collection,
                    keys,
                    names,
                    batch_rows,
                )
                return

            last_key = ""
            clause = "WHERE _key > ? ORDER BY _key LIMIT ?"
            while True:
                batch = _select(
                    connection,
                    collection,
                    names,
                    clause,
                    [last_key, batch_rows],
                )
                if not batch.num_rows:
                    return

                yield batch
                last_key = batch.column("_key")[-1].as_py()

    def marks(self, collections: Sequence[str]) -> dict[str, str]:
        """See `RowStore.marks`: the revision of the last write."""
        with self._reading() as connection:
            revisions = dict(connection.execute("SELECT name, value FROM counter").fetchall())

        return {row_checks.require(name).name: str(revisions.get(name, 0)) for name in collections}

    def last(
        self,
        collection: str,
        *,
        same: Term,
        by: str,
        at_most: object,
        limit: int,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        target = row_checks.require(collection)
        condition, values = predicate(row_checks.check_last(target, same, by, at_most))
        row_checks.check_limit("limit", limit)
        names = tuple(row_checks.check_columns(target, columns))
        order = f"ORDER BY {quote(by)} DESC, _key DESC LIMIT ?"

        with self._reading() as connection:
            batch = _select(
                connection,
                target,
                names,
                f"WHERE {condition} {order}",
                [*values, limit],
            )

        return pa.Table.from_batches([batch])

    def count(self, collection: str, *, where: Predicate = ()) -> int:
        condition, values = predicate(row_checks.check_terms(row_checks.require(collection), where))
        statement = f"SELECT count(*) FROM {quote(collection)}"
        if where:
            statement += f" WHERE {condition}"

        with self._reading() as connection:
            total: int = connection.execute(statement, values).fetchone()[0]

        return total


def rows_through(connection: sqlite3.Connection) -> SqliteRows:
    """The rows through a connection that is already inside a transaction."""
    return SqliteRows(lambda: nullcontext(connection), lambda: nullcontext(connection))


def _upsert_rows(
    connection: sqlite3.Connection,
    collection: Collection,
    table: pa.Table,
) -> None:
    """Insert rows or replace those of the same keys; they were checked."""
    names = [*collection.schema.names, REV]
    columns = ", ".join(map(quote, names))
    places = ", ".join("?" * len(names))
    changes = ", ".join(
        f"{quote(name)} = excluded.{quote(name)}" for name in names if name != "_key"
    )
    statement = f"INSERT INTO {quote(collection.name)} ({columns}) VALUES ({places})"
    statement += f" ON CONFLICT (_key) DO UPDATE SET {changes}"
    _write_rows(
        connection,
        collection,
        statement,
        table.select(collection.schema.names),
    )


def _write_rows(
    connection: sqlite3.Connection,
    collection: Collection,
    statement: str,
    table: pa.Table,
    rev_at: int | None = None,
) -> None:
    """Run a statement for every row, with the store's next revision as the last value, or at that
    place.
    """
    revision = _next_revision(connection, collection)
    columns = [tables.to_sql(column.combine_chunks()) for column in table.columns]
    columns.insert(
        len(columns) if rev_at is None else rev_at,
        [revision] * table.num_rows,
    )
    connection.executemany(statement, zip(*columns, strict=True))


def _next_revision(connection: sqlite3.Connection, collection: Collection) -> int:
    """The revision of the write that begins, which is noted as the last of the collection."""
    revision: int = connection.execute(_NEXT_REVISION).fetchone()[0]
    connection.execute(
        "INSERT OR REPLACE INTO counter VALUES (?, ?)",
        (collection.name, revision),
    )
    return revision


def _rows_of(
    connection: sqlite3.Connection,
    collection: Collection,
    keys: Sequence[str],
    names: tuple[str, ...],
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(keys), batch_rows):
        part = json_text(keys[start : start + batch_rows])
        yield _select(
            connection,
            collection,
            names,
            f"WHERE {_AMONG} ORDER BY _key",
            [part],
        )


def _select(
    connection: sqlite3.Connection,
    collection: Collection,
    names: tuple[str, ...],
    clause: str,
    values: Sequence[object],
) -> pa.RecordBatch:
    columns = ", ".join(map(quote, names))
    rows = connection.execute(
        f"SELECT {columns} FROM {quote(collection.name)} {clause}",
        values,
    ).fetchall()
    return tables.to_batch(rows, columns_schema(collection.name, names))


def _missing_keys(
    connection: sqlite3.Connection,
    collection: str,
    keys: Sequence[str],
) -> list[str]:
    missing = connection.execute(
        "SELECT value FROM json_each(?) AS asked "
        f"WHERE NOT EXISTS (SELECT 1 FROM {quote(collection)} WHERE _key = asked.value)",
        (json_text(keys),),
    )
    return [key for (key,) in missing]
