"""Files of a snapshot: Arrow tables, written with their hash and read memory-mapped; texts found by
hash.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3
from numpy.typing import NDArray

from models.arrays import Longs

NOWHERE = -1
LABEL_SEPARATOR = "\x1f"
Hashes = NDArray[np.uint64]
Arrays = Mapping[str, NDArray[Any]]  # the arrays of a snapshot, or of a file, by name


@dataclass(frozen=True)
class SnapshotFile:
    """What the manifest says of one file."""

    bytes: int
    blake3: str


@dataclass(frozen=True)
class Columns:
    """Every column by `<file>.<column>`: numbers as read-only arrays, all else as Arrow arrays."""

    arrays: Arrays
    texts: Mapping[str, pa.Array]


class Folder:
    """The files of one snapshot while it is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, SnapshotFile] = {}

    def write_rows(self, name: str, table: pa.Table) -> None:
        """Write rows as `<name>.arrow`, in one batch, so that a column is one array."""
        path = self.path / f"{name}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.combine_chunks())

        sync(path)
        self.files[path.name] = SnapshotFile(path.stat().st_size, hash_file(path))

    def write_arrays(self, name: str, arrays: Arrays) -> None:
        """Write arrays of any lengths as `<name>.arrow`: one row of lists."""
        self.write_rows(
            name,
            pa.table({key: _as_list(values) for key, values in arrays.items()}),
        )


class MemoryFolder(Folder):
    """What would be the files of a snapshot, for a graph that is made for one turn."""

    def __init__(self) -> None:
        super().__init__(Path())
        self._tables: dict[str, pa.Table] = {}

    def write_rows(self, name: str, table: pa.Table) -> None:
        self._tables[name] = table.combine_chunks()

    def columns(self) -> Columns:
        """What was written."""
        return _columns(self._tables.items())


def _as_list(values: NDArray[Any]) -> pa.Array:
    elements = pa.array(values.ravel())
    if values.ndim == 2:
        elements = pa.FixedSizeListArray.from_arrays(elements, values.shape[1])
    return pa.LargeListArray.from_arrays(
        pa.array([0, len(elements)], pa.int64()),
        elements,
    )


def read_files(folder: Path, names: Iterable[str]) -> Columns:
    """The columns of these files, mapped: nothing is read before it is touched, and they outlive
    the files.
    """
    return _columns(
        (
            name.removesuffix(".arrow"),
            pa.ipc.open_file(pa.memory_map(str(folder / name))).read_all(),
        )
        for name in names
    )


def _columns(tables: Iterable[tuple[str, pa.Table]]) -> Columns:
    arrays: dict[str, NDArray[Any]] = {}
    texts: dict[str, pa.Array] = {}
    for name, table in tables:
        for field, column in zip(table.schema, table.columns, strict=True):
            key = f"{name}.{field.name}"
            if column.num_chunks == 1:
                whole = column.chunk(0)
            else:
                whole = column.combine_chunks()

            if pa.types.is_large_list(field.type):
                arrays[key] = _from_list(whole.values)
            elif pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
                arrays[key] = whole.to_numpy()
            else:
                texts[key] = whole

    return Columns(arrays, texts)


def _from_list(elements: pa.Array) -> NDArray[Any]:
    is_matrix = pa.types.is_fixed_size_list(elements.type)
    return np.asarray(
        elements.values.to_numpy().reshape(-1, elements.type.list_size)
        if is_matrix
        else elements.to_numpy()
    )


def hash_file(path: Path) -> str:
    """The BLAKE3 hash of a file's bytes."""
    return str(blake3().update_mmap(path).hexdigest())


def sync(path: Path) -> None:
    """Put a file, or a folder's list of names, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def integers(column: pa.Array | pa.ChunkedArray, absent: int) -> Longs:
    """Numbers or moments (microseconds since 1970) as int64."""
    filled: Longs = np.asarray(pc.fill_null(column.cast(pa.int64()), absent), np.int64)
    return filled


def whole_texts(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Texts as one array, empty where there is none."""
    filled = pc.fill_null(column, "").cast(pa.large_string())
    if isinstance(filled, pa.ChunkedArray):
        return filled.combine_chunks()

    return filled


def spans(column: pa.ChunkedArray) -> tuple[Longs, Longs]:
    """Starts and ends of [start, end) lists; -1 for both where there is no such pair."""
    lengths = integers(pc.list_value_length(column), 0)
    whole = lengths == 2
    flat = np.asarray(pc.list_flatten(column))
    place = (np.cumsum(lengths) - lengths)[whole]
    starts, ends = (np.full(len(column), NOWHERE, np.int64) for _ in range(2))

    if len(place):
        starts[whole], ends[whole] = flat[place], flat[place + 1]

    return starts, ends


def encode(column: pa.ChunkedArray) -> pa.Array:
    """Texts that recur, as a dictionary array."""
    return column.combine_chunks().dictionary_encode()


def join_labels(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Lists of labels as one text each; null where there is none."""
    joined = pc.binary_join(column, LABEL_SEPARATOR)
    return pc.if_else(
        pc.equal(joined, ""),
        pa.scalar(None, joined.type),
        joined,
    )


def places_of(sought: pa.Array | pa.ChunkedArray, among: pa.Array) -> Longs:
    """Where each text stands among others, -1 where it does not."""
    return integers(pc.index_in(sought.cast(among.type), value_set=among), NOWHERE).copy()


def hash_texts(texts: Iterable[str]) -> Hashes:
    """64 bits of BLAKE2b of each text; the same on every machine."""
    blake = hashlib.blake2b
    joined = b"".join(
        blake(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts
    )
    return np.frombuffer(joined, "<u8").astype(np.uint64)


def find(hashes: NDArray[Any], sought: Hashes) -> tuple[Longs, Longs]:
    """Question and place of every hash that stands in a sorted array, in the order of the
    questions.
    """
    first, last = (np.searchsorted(hashes, sought, side=side) for side in ("left", "right"))
    return np.repeat(np.arange(len(sought)), last - first), ranges(first, last - first)


def ranges(starts: Longs, widths: Longs) -> Longs:
    """starts[0], starts[0] + 1, ... for each width, one range after the other."""
    skipped = np.cumsum(widths) - widths
    entries: Longs = np.repeat(starts - skipped, widths) + np.arange(int(widths.sum()))
    return entries


def best(
    scores: NDArray[np.floating[Any]],
    ties: NDArray[np.integer[Any]],
    limit: int,
) -> Longs:
    """Places of the `limit` highest scores, highest first; equal scores by `ties`, lowest first.

    Only what may be among them is sorted.
    """
    if limit <= 0:
        return np.empty(0, np.int64)

    candidates = np.arange(len(scores), dtype=np.int64)
    if limit < len(scores):
        bar = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        candidates = np.flatnonzero(scores >= bar)

    order = np.lexsort((ties[candidates], -scores[candidates]))
    return candidates[order[:limit]]
