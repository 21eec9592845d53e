"""Columns of the store, and the questions rules ask of them: does it exist, is it inside, how many
point at it.

Everything here works on whole columns, because a contract may be checked on a million rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.night.context import read_columns
from hades.ports.store import RowStore
from hades.snapshot.files import integers, places_of
from hades.snapshot.files import spans as read_spans
from models.arrays import Flags, Floats, Longs
from schemas.ids import sha256_text


@dataclass(frozen=True)
class Frames:
    """What a contract is checked on. `notes` say what was not checked, such as a stage that never
    ran.
    """

    tables: dict[str, pa.Table]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows are checked."""
        return sum(table.num_rows for table in self.tables.values())


def read(store: RowStore, collection: str, *columns: str) -> pa.Table:
    """These columns of every row with its `_key`, in key order, one chunk a column."""
    return read_columns(store, collection, ("_key", *columns))


def lengths_of(
    store: RowStore,
    collection: str,
    identifiers: pa.Array,
) -> Longs:
    """How many characters each of these documents or chunks has, -1 for one that is not stored."""
    keys = [pa.array([], pa.string())]
    counts = [np.zeros(0, np.int64)]

    # The texts need not fit beside each other.
    for batch in store.scan(collection, columns=["_key", "text"]):
        keys.append(batch.column("_key"))
        counts.append(count_characters(batch.column("text")))

    return at(
        np.concatenate(counts),
        places_of(identifiers, ids(collection, pa.concat_arrays(keys))),
        -1,
    )


def column(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    return table.column(name).combine_chunks()


def ids(collection: str, keys: pa.Array) -> pa.Array:
    """The `_id` of each key."""
    return pc.binary_join_element_wise(collection, keys, "/")


def place_ends(table: pa.Table, among: pa.Array) -> tuple[Longs, Longs]:
    """Where the tail and the head of each edge stand among others."""
    return places_of(column(table, "_from"), among), places_of(column(table, "_to"), among)


def at(
    values: NDArray[Any],
    places: Longs,
    otherwise: Any,
) -> NDArray[Any]:
    """The value at each place; `otherwise` at place -1."""
    return np.append(values, np.array([otherwise], dtype=values.dtype))[places]


def texts_at(values: pa.Array, places: Longs) -> pa.Array:
    """The text at each place; absent at place -1."""
    return values.take(pa.array(places, mask=places < 0))


def count(values: pa.Array, among: pa.Array) -> Longs:
    """How often each of `among` stands in the values."""
    places = places_of(values, among)
    counts: Longs = np.bincount(places[places >= 0], minlength=len(among)).astype(np.int64)
    return counts


def numbers(values: pa.Array) -> Floats:
    """A column of numbers, NaN where there is none."""
    floats: Floats = pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False)
    return floats


def flags(values: pa.Array, missing: bool = False) -> Flags:
    """A column of booleans."""
    booleans: Flags = pc.fill_null(values, missing).to_numpy(zero_copy_only=False)
    return booleans


def spans_inside(spans: pa.Array, lengths: Longs) -> Flags:
    """Which spans are [start, end) with 0 <= start <= end <= length; a length of -1 contains
    nothing.
    """
    start, end = read_spans(spans)
    return (start >= 0) & (start <= end) & (end <= lengths)


def per_row(
    lists: pa.Array,
    values: NDArray[Any],
    how: Any,
    empty: Any,
) -> NDArray[Any]:
    """One value a list from one value an element, by a ufunc such as `np.minimum`; `empty` for
    lists of none.
    """
    lengths = integers(pc.list_value_length(lists), 0)
    result = np.full(len(lists), empty, dtype=values.dtype)
    filled = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[filled]

    if len(starts):
        result[filled] = how.reduceat(values, starts)

    return result


def close(first: Floats, right: Floats, tolerance: float) -> Flags:
    """Which numbers agree, relative to their size where they are large; what is absent on a side is
    not compared.
    """
    with np.errstate(invalid="ignore"):
        near: Flags = np.abs(first - right) <= tolerance * np.maximum(1.0, np.abs(right))

    return near | np.isnan(first) | np.isnan(right)


def with_columns(table: pa.Table, **columns: pa.Array | NDArray[Any] | Sequence[Any]) -> pa.Table:
    """The table with more columns."""
    for name, values in columns.items():
        table = table.append_column(
            name,
            values if isinstance(values, pa.Array) else pa.array(values),
        )

    return table


def count_characters(texts: pa.Array) -> Longs:
    """How many characters each text has."""
    counts: Longs = pc.utf8_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    return counts


def sha256_matches(texts: Sequence[str], digests: Sequence[str]) -> Flags:
    """Which digests are those of their texts."""
    return np.array(
        [sha256_text(text) == digest for text, digest in zip(texts, digests, strict=True)],
        np.bool_,
    )


def kind_numbers(counts: Mapping[str, int], kind: str) -> Longs:
    """The numbers of a kind's rows in a snapshot: kinds follow each other in the order of the
    counts.
    """
    names = list(counts)
    if kind in counts:
        first = sum(counts[name] for name in names[: names.index(kind)])
    else:
        first = 0

    return np.arange(
        first,
        first + counts.get(kind, 0),
        dtype=np.int64,
    )
