"""A collection as a SQL table: its columns and indexes, rows from and to Arrow, predicates as
SQL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import Term
from schemas.catalogue import Collection
from schemas.ids import microseconds

# Times are microseconds since 1970, vectors are float32 in a BLOB, lists and structures are JSON;
# everything else is a value of SQLite. Vectors and long texts stand last in a row, so that reading
# other columns passes over them.
REV = "_rev"  # the number of the write that a row is of


def create_table(connection: sqlite3.Connection, collection: Collection) -> bool:
    """Make the table, or add the columns that the catalogue gained; whether the table is new."""
    existing = table_columns(connection, collection.name)
    ordered = sorted(
        collection.columns,
        key=lambda column: (column.is_vector, column.name == "text"),
    )

    if not existing:
        columns = ", ".join(
            f"{quote(column.name)} {_sql_type(column.type)}"
            for column in ordered
            if column.name != "_key"
        )
        connection.execute(
            f"CREATE TABLE {quote(collection.name)} (row_id INTEGER PRIMARY KEY, "
            f"_key TEXT NOT NULL UNIQUE, {REV} INTEGER NOT NULL, {columns}) STRICT"
        )

    for column in ordered:
        if existing and column.name not in existing:
            name = quote(column.name)
            connection.execute(
                f"ALTER TABLE {quote(collection.name)} ADD COLUMN {name} {_sql_type(column.type)}"
            )
            if column.default is not None:
                value = to_sql(pa.array([column.default], column.type))
                connection.execute(f"UPDATE {quote(collection.name)} SET {name} = ?", value)

    for fields in _indexes(collection):
        name = "_".join([collection.name, "by", *fields])
        columns = ", ".join(map(quote, fields))
        connection.execute(
            f"CREATE INDEX IF NOT EXISTS {quote(name)} ON {quote(collection.name)} ({columns})"
        )

    return not existing


def table_columns(connection: sqlite3.Connection, name: str) -> tuple[str, ...]:
    """The columns of a table; none where there is no such table."""
    return tuple(row[1] for row in connection.execute(f"PRAGMA table_info({quote(name)})"))


def _indexes(collection: Collection) -> list[tuple[str, ...]]:
    """Broad indexes are left out: reading the table is faster than finding a large share of it row
    by row.
    """
    indexes = [index.fields for index in collection.indexes if not index.broad]
    if collection.edge:
        return [*indexes, ("_from",), ("_to",)]

    return indexes


def predicate(terms: Sequence[Term]) -> tuple[str, list[Any]]:
    """Checked terms as a condition and its values."""
    parts = ["1"]
    values = list[Any]()

    for term in terms:
        column = quote(term.column)
        if term.op in ("is_null", "not_null"):
            parts.append(f"{column} IS {'NOT ' if term.op == 'not_null' else ''}NULL")
        elif term.op == "in":
            assert isinstance(term.value, list)
            parts.append(f"{column} IN (SELECT value FROM json_each(?))")
            values.append(json_text([_sql_value(value) for value in term.value]))
        elif term.op == "starts_with":
            prefix = str(term.value)
            parts.append(f"{column} >= ? AND substr(CAST({column} AS BLOB), 1, ?) = ?")
            values += [prefix, len(prefix.encode()), prefix.encode()]
        else:
            parts.append(f"{column} {term.op} ?")
            values.append(_sql_value(term.value))

    return " AND ".join(parts), values


def to_sql(values: pa.Array) -> list[Any]:
    """A column as values of SQLite."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        return list(values.cast(pa.int64()).to_pylist())

    if pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        flat = values.flatten().to_numpy(zero_copy_only=False).astype("<f4")
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths).tolist()
        spans = zip(
            [0, *ends],
            ends,
            values.is_valid().to_pylist(),
            strict=False,
        )
        return [flat[start:end].tobytes() if is_valid else None for start, end, is_valid in spans]

    if pa.types.is_nested(kind):
        return [
            None if value is None else orjson.dumps(value).decode() for value in values.to_pylist()
        ]

    return list(values.to_pylist())


def to_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values of SQLite as a column."""
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array([None if value is None else bool(value) for value in values], kind)

    if pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        flat = np.frombuffer(b"".join(blob for blob in values if blob is not None), "<f4")
        lengths = []
        for blob in values:
            lengths.append(0 if blob is None else len(blob) // 4)

        offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))
        absent = pa.array([blob is None for blob in values], pa.bool_())
        return pa.ListArray.from_arrays(
            offsets,
            pa.array(flat, kind.value_type),
            type=kind,
            mask=absent,
        )

    if pa.types.is_nested(kind):
        texts = ("null" if text is None else text for text in values)
        return pa.array(orjson.loads(f"[{','.join(texts)}]"), kind)

    return pa.array(values, kind)


def to_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of SQLite as a batch; the columns stand in the order of the schema."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [to_arrow(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def quote(name: str) -> str:
    """A name of the catalogue in SQL."""
    return f'"{name}"'


def json_text(values: Sequence[Any]) -> str:
    """A list to be read by `json_each`."""
    return orjson.dumps(values).decode()


def _sql_value(value: object) -> object:
    if isinstance(value, datetime):
        return microseconds(value)
    return value


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        return "BLOB"
    if pa.types.is_floating(kind):
        return "REAL"
    if pa.types.is_string(kind) or pa.types.is_nested(kind):
        return "TEXT"

    return "INTEGER"
