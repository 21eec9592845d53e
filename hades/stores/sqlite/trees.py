"""What a sorted table of pages is, and the codec by which its pages become bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import pyarrow as pa

from hades.stores.sqlite.held_pages import HeldPages
from schemas.columns import repeated

MAX_PAGE_ROWS = 4_096

Page = tuple[int, int, bytes]  # layout, bits of the columns left out, bytes
Choice = tuple[pa.Schema, list[int | pa.Array]]  # some columns: where each stands in a page, or nulls in its place


class Codec(Protocol):
    """Turns runs of rows into bytes and back."""

    def encode(self, tree: Tree, rows: pa.RecordBatch, per_page: int) -> Iterator[tuple[int, int, bytes]]:
        """Pages of `per_page` rows: how many rows, bits of the columns left out, bytes. No rows give one empty page."""

    def decode(
        self, tree: Tree, layout: int, absent: int, data: bytes, names: tuple[str, ...] | None = None
    ) -> pa.RecordBatch:
        """The rows of a page, in the tree's current schema; with `names` only these columns, in their order."""

    def decode_run(self, tree: Tree, pages: Iterable[Page]) -> pa.Table:
        """The rows of neighbouring pages together, in the tree's current schema."""


@dataclass(frozen=True)
class Tree:
    """One sorted table: its number in the file, the columns it is sorted by, and how its pages are kept."""

    id: int
    name: str
    sort: tuple[str, ...]
    layout: int
    schemas: dict[int, pa.Schema]
    defaults: dict[str, object]
    page_bytes: int
    codec: Codec
    partial: dict[tuple[int, int], pa.Schema] = field(default_factory=dict, compare=False)
    gaps: dict[tuple[int, int], list[pa.Array | None]] = field(default_factory=dict, compare=False)
    choices: dict[tuple[int, tuple[str, ...]], Choice] = field(default_factory=dict, compare=False)
    held: HeldPages = field(default_factory=HeldPages, compare=False)

    @property
    def schema(self) -> pa.Schema:
        """The schema new pages are written in."""
        return self.schemas[self.layout]


class ArrowPages:
    """Pages as Arrow messages without their schema. Columns that are null in a whole page are left out of it."""

    def encode(self, tree: Tree, rows: pa.RecordBatch, per_page: int) -> Iterator[tuple[int, int, bytes]]:
        """One message a page."""
        for start in range(0, max(1, rows.num_rows), per_page):
            page = rows.slice(start, per_page)
            empty = [number for number, column in enumerate(page.columns) if column.null_count == page.num_rows]
            absent = sum(1 << number for number in empty) if page.num_rows else 0
            if absent:
                kept = [column for number, column in enumerate(page.columns) if not absent >> number & 1]
                page = pa.RecordBatch.from_arrays(kept, schema=_present(tree, tree.layout, absent))
            yield min(per_page, rows.num_rows - start), absent, page.serialize()

    def decode(
        self, tree: Tree, layout: int, absent: int, data: bytes, names: tuple[str, ...] | None = None
    ) -> pa.RecordBatch:
        """The message as rows, with what was left out or came later filled in."""
        batch = pa.ipc.read_record_batch(pa.py_buffer(data), _present(tree, layout, absent))
        if names is not None and layout == tree.layout:
            schema, chosen = _choose(tree, absent, names)
            rows = batch.num_rows
            arrays = [batch.column(one) if isinstance(one, int) else one.slice(0, rows) for one in chosen]
            return pa.RecordBatch.from_arrays(arrays, schema=schema)
        if absent:
            columns, rows = iter(batch.columns), batch.num_rows
            filled = [next(columns) if nulls is None else nulls.slice(0, rows) for nulls in _gaps(tree, layout, absent)]
            batch = pa.RecordBatch.from_arrays(filled, schema=tree.schemas[layout])
        whole = batch if layout == tree.layout else _upgrade(tree, batch)
        return whole if names is None else whole.select(list(names))

    def decode_run(self, tree: Tree, pages: Iterable[Page]) -> pa.Table:
        """One table, one chunk a page."""
        return pa.Table.from_batches((self.decode(tree, *page) for page in pages), schema=tree.schema)


def _choose(tree: Tree, absent: int, names: tuple[str, ...]) -> Choice:
    """Some columns of a page in the current layout; kept, because a scan asks the same of every page."""
    choice = tree.choices.get((absent, names))
    if choice is None:
        numbers = [tree.schema.get_field_index(name) for name in names]
        present = [number for number in range(len(tree.schema)) if not absent >> number & 1]
        chosen = [
            present.index(number) if number in present else _many_nulls(tree.schema.field(number).type)
            for number in numbers
        ]
        choice = tree.choices[absent, names] = pa.schema([tree.schema.field(number) for number in numbers]), chosen
    return choice


def _gaps(tree: Tree, layout: int, absent: int) -> list[pa.Array | None]:
    """For each column, nulls for a whole page where it was left out, else None; kept like the schema beside it."""
    gaps = tree.gaps.get((layout, absent))
    if gaps is None:
        gaps = tree.gaps[layout, absent] = [
            _many_nulls(column.type) if absent >> number & 1 else None
            for number, column in enumerate(tree.schemas[layout])
        ]
    return gaps


@cache
def _many_nulls(kind: pa.DataType) -> pa.Array:
    return pa.nulls(MAX_PAGE_ROWS, kind)


def _present(tree: Tree, layout: int, absent: int) -> pa.Schema:
    """The schema of a page without its absent columns; kept, because neighbouring pages mostly share it."""
    schema = tree.partial.get((layout, absent))
    if schema is None:
        fields = [column for number, column in enumerate(tree.schemas[layout]) if not absent >> number & 1]
        schema = tree.partial[layout, absent] = pa.schema(fields)
    return schema


def _upgrade(tree: Tree, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A page of an older layout in the current one: columns it did not have take their default."""
    arrays = [
        batch.column(column.name).cast(column.type)
        if column.name in batch.schema.names
        else repeated(tree.defaults.get(column.name), column.type, batch.num_rows)
        for column in tree.schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=tree.schema)
