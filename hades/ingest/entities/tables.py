"""Derived rows as Arrow tables in the catalogue's columns; a column that is not given takes its
declared default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hades.ports.graph import ALWAYS, FOREVER
from hades.ports.store import Row
from models.arrays import Ints, Longs
from schemas.catalogue import declared
from schemas.ids import edge_key
from schemas.record import TIME, repeated


def values_of(table: pa.Table, *columns: str) -> Iterator[tuple[Any, ...]]:
    """The values of some columns, row by row."""
    return zip(*(table[name].to_pylist() for name in columns), strict=True)


def edge_row(source: str, kind: str, target: str) -> Row:
    """Key, ends and type of one edge, as a row."""
    key = edge_key(source, kind, target)
    return {
        "_key": key,
        "_from": source,
        "_to": target,
        "type": str(kind),
    }


def edge_columns(
    kind: str,
    source: pa.Array,
    target: pa.Array,
    labels: Sequence[str] | None = None,
) -> dict[str, pa.Array]:
    """Key, ends and type of edges of one type; labels tell parallel edges apart."""
    ends = zip(
        source.to_pylist(),
        target.to_pylist(),
        labels or [""] * len(source),
        strict=True,
    )

    keys = []
    for tail, head, label in ends:
        keys.append(edge_key(tail, kind, head, *filter(None, [label])))

    return {
        "_key": pa.array(keys, pa.string()),
        "_from": source,
        "_to": target,
        "type": pa.repeat(str(kind), len(keys)),
    }


def fill(
    collection: str,
    n_rows: int,
    columns: Mapping[str, pa.Array | pa.ChunkedArray],
) -> pa.Table:
    """A table in the collection's schema; columns not given hold their default, or null."""
    arrays = []
    for column in declared(collection).columns:
        if column.name in columns:
            arrays.append(columns[column.name].cast(column.type))
        elif column.default is None:
            arrays.append(pa.nulls(n_rows, column.type))
        else:
            arrays.append(repeated(column.default, column.type, n_rows))

    return pa.Table.from_arrays(arrays, schema=declared(collection).schema)


def lists_array(
    values: Longs | Ints,
    row: Longs,
    n_rows: int,
) -> pa.Array:
    """Values gathered by row, as a list column; rows come in order."""
    offsets = np.append(0, np.cumsum(np.bincount(row, minlength=n_rows)))
    return pa.ListArray.from_arrays(offsets.astype(np.int32), values.astype(np.int64))


def oldest_dates(row: Longs, written: Longs, n_rows: int) -> Longs:
    """The oldest of the dates that belong to each row."""
    oldest = np.full(n_rows, FOREVER, dtype=np.int64)
    np.minimum.at(oldest, row, written)
    return oldest


def moments_array(since: Longs) -> pa.Array:
    """Dates as a column of times; null where something was always so."""
    return pa.array(since, pa.int64(), mask=since == ALWAYS).cast(TIME)
