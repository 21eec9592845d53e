"""Tiny rows that a reader can check by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hades.ports.store import RowStore
from schemas.catalogue import collection_named
from schemas.ids import edge_key

MODEL = "toy@1/3"


def day(number: int) -> datetime:
    """A day in January 2026."""
    return datetime(2026, 1, number, tzinfo=UTC)


def entity(key: str, **fields: Any) -> dict[str, Any]:
    """A row of `entities`."""
    name = fields.pop("name", key)
    return {"_key": key, "name": name, "name_lower": name.lower(), "type": "concept", **fields}


def relation(source: str, target: str, kind: str = "refers_to", **fields: Any) -> dict[str, Any]:
    """A row of `relations` between two entity keys."""
    tail, head = f"entities/{source}", f"entities/{target}"
    return {"_key": edge_key(tail, kind, head), "_from": tail, "_to": head, "type": kind, **fields}


def table(collection: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as an Arrow table with just the columns that some row names; a row that does not takes
    the default.
    """
    declared = collection_named(collection)
    assert declared is not None
    defaults = {column.name: column.default for column in declared.columns}
    names = dict.fromkeys(name for row in rows for name in row)
    fields = [declared.schema.field(name) for name in names]
    nullable = pa.schema([pa.field(field.name, field.type) for field in fields])
    return pa.Table.from_pylist(
        [{name: row.get(name, defaults.get(name)) for name in names} for row in rows],
        schema=nullable,
    )


def put(store: RowStore, collection: str, *rows: dict[str, Any]) -> None:
    """Upsert a few rows."""
    store.upsert(collection, table(collection, list(rows)))


def everything(store: RowStore, collection: str) -> list[dict[str, Any]]:
    """All rows, in key order."""
    return [row for batch in store.scan(collection) for row in batch.to_pylist()]


def keys(found: pa.Table | pa.RecordBatch) -> list[str]:
    """The keys of an answer, in its order."""
    listed: list[str] = found.column("_key").to_pylist()
    return listed
