"""Files of versions 1 to 3, which kept rows as Arrow record batches in pages, brought to plain tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pyarrow as pa

from hades.stores.row_checks import REV, require
from hades.stores.sqlite import tables
from schemas.catalogue import NAMES
from schemas.record import repeated


def collections_in_pages(connection: sqlite3.Connection) -> dict[str, int]:
    """The number under which each collection of the file keeps its pages."""
    return {name: number for name, number in connection.execute("SELECT name, id FROM tree") if name in NAMES}


def move_rows(connection: sqlite3.Connection) -> None:
    """Write the rows of the pages to the tables, which are there, and drop the pages."""
    for name, number in collections_in_pages(connection).items():
        collection = require(name)
        names = [*collection.schema.names, REV]
        places = ", ".join("?" * len(names))
        statement = f"INSERT INTO {tables.quote(name)} ({', '.join(map(tables.quote, names))}) VALUES ({places})"
        for batch in _read_pages(connection, number):
            held = set(batch.schema.names)
            arrays = [
                batch.column(column.name).cast(column.type)
                if column.name in held
                else repeated(column.default, column.type, batch.num_rows)
                for column in collection.columns
            ]
            columns = [*map(tables.to_sql, arrays), batch.column(REV).to_pylist()]
            connection.executemany(statement, zip(*columns, strict=True))
    for table in ("tree", "layout", "page", "change", "adjacency"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")


def _read_pages(connection: sqlite3.Connection, number: int) -> Iterator[pa.RecordBatch]:
    """The batches of a collection; columns that were null in a whole page are left out of it."""
    layouts = {
        layout: pa.ipc.read_schema(pa.py_buffer(schema))
        for layout, schema in connection.execute("SELECT id, schema FROM layout WHERE tree = ?", (number,))
    }
    pages = connection.execute("SELECT layout, absent, data FROM page WHERE tree = ? ORDER BY first", (number,))
    for layout, absent, data in pages:
        fields = list(layouts[layout])
        present = pa.schema([field for place, field in enumerate(fields) if not absent >> place & 1])
        batch = pa.ipc.read_record_batch(pa.py_buffer(data), present)
        columns = {field.name: pa.nulls(batch.num_rows, field.type) for field in fields}
        columns |= dict(zip(present.names, batch.columns, strict=True))
        yield pa.RecordBatch.from_pydict(columns)
