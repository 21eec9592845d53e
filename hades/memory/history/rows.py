"""Records of memory to Arrow rows and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import orjson
import pyarrow as pa

from hades.ports.store import RowStore
from schemas.catalogue import collection_named
from schemas.columns import to_table
from schemas.record import Keyed

Row = TypeVar("Row", bound=Keyed)


def read(table: pa.Table | pa.RecordBatch, record: type[Row]) -> list[Row]:
    """The rows as records, in their order."""
    return [record(**_values(row)) for row in table.to_pylist()]


def fetch(rows: RowStore, collection: str, keys: Sequence[str], record: type[Row]) -> dict[str, Row]:
    """The records that exist among these keys, by key."""
    return {one.key: one for one in read(rows.get(collection, keys), record)} if keys else {}


def put(rows: RowStore, collection: str, records: Iterable[Keyed]) -> None:
    """Write records, one batch."""
    kept = list(records)
    if kept:
        declared = collection_named(collection)
        assert declared is not None
        rows.upsert(collection, to_table(declared.record, kept))


def _values(row: dict[str, Any]) -> dict[str, Any]:
    for name in ("metadata", "detail"):
        if isinstance(row.get(name), str):
            row[name] = orjson.loads(row[name])
    return row
