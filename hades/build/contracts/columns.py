"""Columns and texts that rules read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ports.store import RowStore
from schemas.catalogue import collection_named

# Columns of the store, and the questions rules ask of them: does it exist, is it inside, how many point at it.
# Everything here works on whole columns, because a contract may be checked on a million rows.


Flags = NDArray[np.bool_]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Frames:
    """What a contract is checked on. `notes` say what there was nothing to check of; `absent` that the stage never ran.

    `left_out` counts by frame the rows that need no check: neither they nor what they refer to has changed since one.
    """

    tables: dict[str, pa.Table]
    notes: tuple[str, ...] = ()
    absent: str = ""
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows are checked."""
        return sum(table.num_rows for table in self.tables.values())

    @property
    def carried(self) -> int:
        """How many rows need no check."""
        return sum(self.left_out.values())


def keep(table: pa.Table, chosen: Flags) -> pa.Table:
    """The rows that are chosen, one chunk a column."""
    return (table if chosen.all() else table.filter(pa.array(chosen))).combine_chunks()


def column(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    values = table.column(name)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def ids(collection: str, keys: pa.Array) -> pa.Array:
    """The `_id` of each key."""
    return pc.binary_join_element_wise(collection, keys, "/")


def place(values: pa.Array, among: pa.Array) -> Longs:
    """Where each value stands among others, -1 where it does not."""
    found: Longs = pc.fill_null(pc.index_in(values, value_set=among), -1).to_numpy(zero_copy_only=False)
    return found.astype(np.int64)


def place_ends(table: pa.Table, among: pa.Array) -> tuple[Longs, Longs]:
    """Where the tail and the head of each edge stand among others; both are sought at once, as hashing these costs."""
    tails, heads = np.split(place(pa.concat_arrays([column(table, end) for end in ("_from", "_to")]), among), 2)
    return tails, heads


def at(values: NDArray[Any], places: Longs, otherwise: Any) -> NDArray[Any]:
    """The value at each place; `otherwise` at place -1."""
    return np.append(values, np.array([otherwise], dtype=values.dtype))[places]


def texts_at(values: pa.Array, places: Longs) -> pa.Array:
    """The text at each place; absent at place -1."""
    return values.take(pa.array(places, mask=places < 0))


def count(values: pa.Array, among: pa.Array) -> Longs:
    """How often each of `among` stands in the values."""
    places = place(values, among)
    counts: Longs = np.bincount(places[places >= 0], minlength=len(among)).astype(np.int64)
    return counts


def numbers(values: pa.Array) -> Floats:
    """A column of numbers, NaN where there is none."""
    found: Floats = pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False)
    return found


def wholes(values: pa.Array, missing: int = 0) -> Longs:
    """A column of whole numbers."""
    found: Longs = pc.fill_null(pc.cast(values, pa.int64()), missing).to_numpy(zero_copy_only=False)
    return found


def flags(values: pa.Array, missing: bool = False) -> Flags:
    """A column of booleans."""
    found: Flags = pc.fill_null(values, missing).to_numpy(zero_copy_only=False)
    return found


def spans_inside(spans: pa.Array, lengths: Longs) -> Flags:
    """Which spans are [start, end) with 0 <= start <= end <= length; a length of -1 contains nothing."""
    is_pair = flags(pc.equal(pc.list_value_length(spans), 2))
    start, end = span_bounds(spans, is_pair)
    return is_pair & (start >= 0) & (start <= end) & (end <= lengths)


def span_bounds(spans: pa.Array, is_pair: Flags) -> tuple[Longs, Longs]:
    """Starts and ends of the spans that have two numbers; 0 for the others."""
    flat = wholes(pc.list_flatten(spans.filter(pa.array(is_pair)))).reshape(-1, 2)
    start, end = np.zeros(len(spans), np.int64), np.zeros(len(spans), np.int64)
    start[is_pair], end[is_pair] = flat[:, 0], flat[:, 1]
    return start, end


def per_row(lists: pa.Array, values: NDArray[Any], how: Any, empty: Any) -> NDArray[Any]:
    """One value a list from one value an element, by a ufunc such as `np.minimum`; `empty` for lists of none."""
    lengths = wholes(pc.list_value_length(lists))
    result = np.full(len(lists), empty, dtype=values.dtype)
    filled = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[filled]
    if len(starts):
        result[filled] = how.reduceat(values, starts)
    return result


def close(left: Floats, right: Floats, tolerance: float) -> Flags:
    """Which numbers agree, relative to their size where they are large; what is absent on a side is not compared."""
    with np.errstate(invalid="ignore"):
        near: Flags = np.abs(left - right) <= tolerance * np.maximum(1.0, np.abs(right))
    return near | np.isnan(left) | np.isnan(right)


def with_columns(table: pa.Table, **columns: pa.Array | NDArray[Any] | Sequence[Any]) -> pa.Table:
    """The table with more columns."""
    for name, values in columns.items():
        array = values if isinstance(values, pa.Array) else pa.array(values)
        table = table.append_column(name, array)
    return table


# The rows a contract reads, and which of them lie in parts of the store that it has not seen hold before. A row
# needs no second check while its own part and the parts of all rows it refers to are those of the last check that
# held. So the frames of a contract have the rows of new parts, rows that refer to such rows, and rows that break a
# rule over the whole collection (an end is missing, a value occurs twice, a sum differs), which is found by key
# columns alone.


Marks = Mapping[str, frozenset[str]]  # of the parts of each collection that held


@dataclass(frozen=True)
class KeyedRows:
    """Some columns of every row of a collection, with the mark and the size of each part of it."""

    store: RowStore
    collection: str
    table: pa.Table
    marks: Sequence[str]
    sizes: Longs
    is_new: Flags

    def take(self, chosen: Flags, *columns: str) -> pa.Table:
        """These columns of the rows that are chosen; parts without such a row are not read."""
        names, schema = _choose(self.collection, columns)
        if set(names) <= set(self.table.column_names):  # every row was read with them
            return keep(self.table.select(names), chosen)
        ends = np.cumsum(self.sizes)
        parts = np.split(chosen, ends[:-1]) if len(ends) else []
        idle = {mark for mark, part in zip(self.marks, parts, strict=True) if not part.any()}
        batches, flags = [], [np.zeros(0, np.bool_)]
        scanned = self.store.scan_marked(self.collection, columns=names, known=idle)
        for part, rows in zip(parts, scanned, strict=True):
            if rows.batch is not None:
                batches.append(rows.batch)
                flags.append(part)
        return keep(pa.Table.from_batches(batches, schema=schema), np.concatenate(flags))


@dataclass(frozen=True)
class Source:
    """A store, and the parts of its collections that held when the contract was last checked; none: read everything.

    With known parts the store must be one moment of it (`GraphStore.reading`), because a collection is read twice.
    """

    store: RowStore
    known: Marks = field(default_factory=dict)

    def read(self, collection: str, *columns: str) -> pa.Table:
        """These columns of every row with its `_key`, in key order, one chunk a column."""
        names, schema = _choose(collection, columns)
        return pa.Table.from_batches(self.store.scan(collection, columns=names), schema=schema).combine_chunks()

    def read_keys(self, collection: str, keys: Sequence[str], others: Sequence[str] = ()) -> KeyedRows:
        """The columns `keys` of every row; where no part is known, the others too, for all rows are checked then."""
        known = self.known.get(collection, frozenset())
        names, schema = _choose(collection, keys if known else (*keys, *others))
        batches, marks, sizes, new = [], [], [], [np.zeros(0, np.bool_)]
        for part in self.store.scan_marked(collection, columns=names):
            if part.batch is not None:
                batches.append(part.batch)
            marks.append(part.mark)
            sizes.append(part.rows)
            new.append(np.full(part.rows, not (part.mark and part.mark in known)))
        table = pa.Table.from_batches(batches, schema=schema).combine_chunks()
        return KeyedRows(self.store, collection, table, marks, np.array(sizes, np.int64), np.concatenate(new))

    def read_new(self, collection: str, *columns: str) -> tuple[pa.Table, int]:
        """These columns of the rows in new parts, and how many rows lie in the others."""
        names, schema = _choose(collection, columns)
        known = self.known.get(collection, frozenset())
        batches, left = [], 0
        for part in self.store.scan_marked(collection, columns=names, known=known):
            if part.batch is not None:
                batches.append(part.batch)
            else:
                left += part.rows
        return pa.Table.from_batches(batches, schema=schema).combine_chunks(), left


def _choose(collection: str, columns: Sequence[str]) -> tuple[list[str], pa.Schema]:
    declared = collection_named(collection)
    assert declared is not None
    names = list(dict.fromkeys(("_key", *columns)))
    return names, pa.schema([declared.schema.field(name) for name in names])


# Documents as rules need them: how long each is, and what of a chunk or a function lies inside.


class Documents:
    """Documents, or chunks, by row: their `_id`s, and how long those are that somebody refers to."""

    def __init__(self, source: Source, collection: str = "documents", *others: str) -> None:
        self._keyed = source.read_keys(collection, (), ("text", *others))
        self.ids = ids(collection, column(self._keyed.table, "_key"))

    @property
    def is_new(self) -> Flags:
        """Which lie in new parts of the store."""
        return self._keyed.is_new

    def rows_of(self, identifiers: pa.Array) -> Longs:
        """The row of each document, -1 for one that is not stored."""
        return place(identifiers, self.ids)

    def are_new(self, rows: Longs) -> Flags:
        """Which of these rows, -1 for none, lie in new parts."""
        return np.append(self.is_new, False)[rows]

    def take(self, rows: Longs, *columns: str) -> tuple[pa.Table, Longs]:
        """These columns of the documents at some rows, and where the row of each is in them; -1 for none."""
        chosen = np.zeros(len(self.ids), np.bool_)
        chosen[rows[rows >= 0]] = True
        places = np.append(np.cumsum(chosen) - 1, -1)[rows]
        return self._keyed.take(chosen, *columns), places

    def lengths_at(self, rows: Longs) -> Longs:
        """How many characters the documents at these rows have, -1 for one that is not stored."""
        texts, places = self.take(rows, "text")
        return np.append(count_characters(column(texts, "text")), -1)[places]


def count_characters(texts: pa.Array) -> Longs:
    """How many characters each text has."""
    counts: Longs = pc.utf8_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    return counts


def sha256_matches(texts: Sequence[str], digests: Sequence[str]) -> Flags:
    """Which digests are those of their texts."""
    pairs = zip(texts, digests, strict=True)
    return np.array([_sha256(text) == digest for text, digest in pairs], dtype=np.bool_)


def cuts_match(documents: pa.Table, places: Longs, chunks: pa.Table) -> Flags:
    """Which chunks are what their span cuts out of the document at their place; -1: they have none.

    A document becomes one Python string at a time: spans count characters, which bytes cannot be cut by.
    """
    spans = column(chunks, "span")
    is_pair = flags(pc.equal(pc.list_value_length(spans), 2))
    starts, ends = (bounds.tolist() for bounds in span_bounds(spans, is_pair))
    texts = chunks.column("text").to_pylist()
    matches = np.zeros(len(places), dtype=np.bool_)
    held, whole = -1, ""
    for row in np.argsort(places, kind="stable").tolist():
        if places[row] < 0:
            continue
        if places[row] != held:
            held = int(places[row])
            whole = documents.column("text")[held].as_py()
        matches[row] = is_pair[row] and whole[starts[row] : ends[row]] == texts[row]
    return matches


def embed_text(title: str, headings: Sequence[str], text: str) -> str:
    """What a chunk's hash and vector are of: its text under title and headings that it does not begin with.

    Written again beside the one of ingestion, so that the contract fails when ingestion changes it.
    """
    above = dict.fromkeys(line for line in (title, *headings) if line and not text.startswith(line))
    return "\n".join([*above, text])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
