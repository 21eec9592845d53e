"""Batches of rows: find one, sort them, show them as callers see them, cut them to size."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from hades.stores import rows
from schemas.catalogue import Collection


def row_of(batch: pa.RecordBatch, key: str) -> pa.RecordBatch:
    """The row of a key in a page that is sorted by it; no row when it is not there."""
    held = batch.column("_key")
    place = bisect_left(range(len(held)), key, key=lambda number: held[number].as_py())
    return batch.slice(place, int(place < len(held) and held[place].as_py() == key))


def keys_within(batch: pa.RecordBatch, keys: Sequence[str]) -> Sequence[str]:
    """Those of the sorted keys that lie between the first and the last key of a page that is sorted by it."""
    held = batch.column("_key")
    if len(keys) == 1 or not len(held):
        return keys if len(held) else ()
    return keys[bisect_left(keys, held[0].as_py()) : bisect_right(keys, held[-1].as_py())]


def places_of(keys: Sequence[str]) -> pa.Array:
    """Where each of these keys stands when they are sorted."""
    place = {key: number for number, key in enumerate(sorted(keys))}
    return pa.array([place[key] for key in keys], pa.int64())


def distinct_heads(identifiers: pa.Array) -> list[str]:
    """The collections named by `_id`s, each once."""
    heads: list[str] = pc.unique(pc.extract_regex(identifiers, r"^(?P<head>[^/]*)/").field("head")).to_pylist()
    return [head for head in heads if head]


def sort_by_key(table: pa.Table) -> pa.Table:
    """The rows by key; a table that is sorted already is returned as it is."""
    keys = table.column("_key").combine_chunks()
    if len(keys) < 2 or pc.all(pc.less_equal(keys.slice(0, len(keys) - 1), keys.slice(1))).as_py():
        return table
    return table.take(pc.sort_indices(keys))


def declare_columns(collection: Collection, names: Sequence[str]) -> pa.Schema:
    """The catalogue's fields of these columns; revisions are text, because to callers they are opaque."""
    return _declare_once(collection.name, tuple(names))


@cache
def _declare_once(collection: str, names: tuple[str, ...]) -> pa.Schema:
    revision, schema = pa.field(rows.REV, pa.string()), rows.require(collection).schema
    return pa.schema([revision if name == rows.REV else schema.field(name) for name in names])


def make_outward(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch as callers see it."""
    return pa.RecordBatch.from_arrays(outward_columns(batch, schema), schema=schema)


def outward_columns(batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
    """The columns of a batch; revisions as text."""
    columns: list[pa.Array] = batch.columns
    if rows.REV in schema.names:
        place = schema.get_field_index(rows.REV)
        columns[place] = columns[place].cast(pa.string())
    return columns


def rebatch(batches: Iterator[pa.RecordBatch], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `batch_rows`, the last one shorter."""
    held: list[pa.RecordBatch] = []
    rows_held = 0
    for batch in batches:
        held.append(batch)
        rows_held += batch.num_rows
        if rows_held >= batch_rows:
            merged = pa.Table.from_batches(held).combine_chunks().to_batches(max_chunksize=batch_rows)
            rest = merged.pop() if merged[-1].num_rows < batch_rows else None
            yield from merged
            held, rows_held = ([rest], rest.num_rows) if rest is not None else ([], 0)
    if held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()
