"""What a sorted table is, its codec, page cache, change log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from hades.stores import row_checks
from schemas.catalogue import Collection
from schemas.record import repeated

# Decoded pages that are kept between scans, as far as a budget goes: a build scans the same rows a dozen times. A
# page is known by its number in the file and its checksum, and these are read at every scan. So a page that was
# written since, by whichever process, is read again.


HELD_BYTES = 64 << 20


class PageVersion(NamedTuple):
    """What a page is recognised by: its number, rows, checksum, layout and the columns left out."""

    id: int
    rows: int
    crc: int
    layout: int
    absent: int


@dataclass(frozen=True)
class _HeldPage:
    version: PageVersion
    batch: pa.RecordBatch
    size: int


class HeldPages:
    """The pages of one store; once the budget is spent no more are taken until others were dropped."""

    def __init__(self, budget_bytes: int = HELD_BYTES) -> None:
        self._left = budget_bytes
        self._trees: dict[int, dict[str, _HeldPage]] = {}
        self._lock = Lock()

    def find(self, tree: int, fence: str, version: PageVersion) -> pa.RecordBatch | None:
        """The rows of a page, where they are held and it has not been written since."""
        held = self._trees.get(tree, {}).get(fence)
        return held.batch if held is not None and held.version == version else None

    def has_room(self, size: int) -> bool:
        """Whether a page of that size would be held."""
        return size <= self._left

    def keep(self, tree: int, fence: str, version: PageVersion, batch: pa.RecordBatch, size: int) -> None:
        """Hold the rows of a page, in place of what was held of it."""
        with self._lock:
            pages = self._trees.setdefault(tree, {})
            self._remove(pages, fence)
            if size <= self._left:
                pages[fence] = _HeldPage(version, batch, size)
                self._left -= size

    def drop(self, tree: int, first: str, last: str) -> None:
        """Let go of the pages between two fences, which are about to be written."""
        with self._lock:
            pages = self._trees.get(tree, {})
            for fence in [one for one in pages if first <= one <= last]:
                self._remove(pages, fence)

    def _remove(self, pages: dict[str, _HeldPage], fence: str) -> None:
        held = pages.pop(fence, None)
        if held is not None:
            self._left += held.size


# What a sorted table of pages is, and the codec by which its pages become bytes.


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


# Batches of rows: find one, sort them, show them as callers see them, cut them to size.


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
    revision, schema = pa.field(row_checks.REV, pa.string()), row_checks.require(collection).schema
    return pa.schema([revision if name == row_checks.REV else schema.field(name) for name in names])


def make_outward(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch as callers see it."""
    return pa.RecordBatch.from_arrays(outward_columns(batch, schema), schema=schema)


def outward_columns(batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
    """The columns of a batch; revisions as text."""
    columns: list[pa.Array] = batch.columns
    if row_checks.REV in schema.names:
        place = schema.get_field_index(row_checks.REV)
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
