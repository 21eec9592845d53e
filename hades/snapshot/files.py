"""Arrays, heaps, hash look-ups as files."""

from __future__ import annotations

import hashlib
import math
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray

from hades.ports.graph import KINDS, Codes, Flags, Kind, Numbers

# The hash of a snapshot's files: BLAKE3, which is as safe as SHA-256 and takes a twentieth of its time. The library
# is loaded where a file is written or verified; asking a question does neither.


class Hasher(Protocol):
    """A hash that grows with what it is given."""

    def update(self, data: memoryview, /) -> object:
        """Take more bytes."""
        ...

    def hexdigest(self) -> str:
        """The hash of all bytes so far."""
        ...


def begin_hash() -> Hasher:
    """The hash of nothing yet."""
    from blake3 import blake3

    return cast(Hasher, blake3())


def hash_file(path: Path) -> str:
    """The hash of a file's bytes."""
    from blake3 import blake3

    return str(blake3().update_mmap(path).hexdigest())


# Arrays as plain little-endian files: written in a stream with their hash, read by mapping them into memory.


_SYNCED_TOGETHER = 16  # files


@dataclass(frozen=True)
class ArrayFile:
    """What the manifest says of one array: its type, its shape, and the hash of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    hash: str

    @property
    def size(self) -> int:
        """Bytes the file must have."""
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


class Column:
    """An array that grows at its end; rows are hashed as they are written."""

    def __init__(self, path: Path, dtype: DTypeLike, width: tuple[int, ...] = ()) -> None:
        self.path = path
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.rows = 0
        self._width = width
        self._hash = begin_hash()
        self._file = path.open("xb")

    def append(self, values: NDArray[Any]) -> None:
        """Write more rows."""
        block = np.ascontiguousarray(values, dtype=self.dtype)
        if block.shape[1:] != self._width:
            raise ValueError(f"{self.path.name} takes rows of shape {self._width}, not {block.shape[1:]}")
        self._hash.update(block.reshape(-1).view(np.uint8).data)
        block.tofile(self._file)
        self.rows += len(block)

    def so_far(self) -> NDArray[Any]:
        """The rows written up to now, mapped."""
        self._file.flush()
        return view_of(mapped(self.path), ArrayFile(self.dtype.str, (self.rows, *self._width), ""))

    def close(self) -> ArrayFile:
        """End the file and say what it holds; `sync_files` puts it on the disk."""
        self._file.close()
        return ArrayFile(self.dtype.str, (self.rows, *self._width), self._hash.hexdigest())

    def abandon(self) -> None:
        """Let go of the file; the folder is thrown away."""
        self._file.close()


class Folder:
    """The arrays of one snapshot while it is being written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, ArrayFile] = {}
        self._open: dict[str, Column] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for column in self._open.values():
            column.abandon()

    def column(self, name: str, dtype: DTypeLike, width: tuple[int, ...] = ()) -> Column:
        """Begin an array; `finish` ends it."""
        column = Column(self.path / name, dtype, width)
        self._open[name] = column
        return column

    def finish(self, *names: str) -> None:
        """End these arrays, or all that are open."""
        for name in names or tuple(self._open):
            self.files[name] = self._open.pop(name).close()

    def whole(self, name: str, values: NDArray[Any]) -> None:
        """Write an array that is there already."""
        self.column(name, values.dtype, values.shape[1:]).append(values)
        self.finish(name)

    @contextmanager
    def scratch_array(self, name: str, dtype: DTypeLike, rows: int) -> Iterator[NDArray[Any]]:
        """An array to be filled in any order; it lies on the disk, not in memory."""
        path = self.path / name
        plain = np.dtype(dtype).newbyteorder("<")
        with path.open("x+b") as file:
            file.truncate(rows * plain.itemsize)
            yield np.memmap(file, plain, "r+", shape=(rows,)) if rows else np.empty(0, plain)
        self.files[name] = ArrayFile(plain.str, (rows,), hash_file(path))

    def __getitem__(self, name: str) -> NDArray[Any]:
        """What has been written of an array, mapped."""
        if name in self._open:
            return self._open[name].so_far()
        return view_of(mapped(self.path / name), self.files[name])


def sync_files(paths: Sequence[Path]) -> None:
    """Put files on the disk, several at a time: a file system writes its journal once for those that wait together."""
    with ThreadPoolExecutor(_SYNCED_TOGETHER) as pool:
        for _ in pool.map(sync, paths):
            pass


def sync(path: Path) -> None:
    """Put a file, or a folder's list of names, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def mapped(path: Path) -> mmap.mmap | bytes:
    """The bytes of a file without reading them; they stay readable when the file is removed."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def view_of(data: mmap.mmap | bytes, spec: ArrayFile) -> NDArray[Any]:
    """Those bytes as an array, read-only."""
    return np.frombuffer(data, dtype=spec.dtype).reshape(spec.shape)


# Many texts in two arrays: where each ends, and all their bytes one after the other.


class ArrayReader(Protocol):
    """Whoever hands out arrays by name."""

    def __getitem__(self, name: str, /) -> NDArray[Any]:
        """The array of that name."""
        ...


class HeapWriter:
    """Appends texts. The arrays are `<name>.ends` (int64, first one 0) and `<name>.text`."""

    def __init__(self, folder: Folder, name: str) -> None:
        self._ends = folder.column(f"{name}.ends", np.int64)
        self._text = folder.column(f"{name}.text", np.uint8)
        self._ends.append(np.zeros(1, np.int64))
        self.count = 0

    def append(self, texts: Iterable[str]) -> None:
        """Write more texts."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self.append_bytes(np.fromiter(map(len, encoded), np.int64, len(encoded)), b"".join(encoded))

    def append_bytes(self, lengths: NDArray[np.int64], joined: Any) -> None:
        """Write texts that are joined already; `lengths` are in bytes."""
        if len(lengths):
            self._ends.append(self._text.rows + np.cumsum(lengths, dtype=np.int64))
            self._text.append(np.frombuffer(joined, np.uint8))
            self.count += len(lengths)


class Heap:
    """Reads texts by their place."""

    def __init__(self, arrays: ArrayReader | Mapping[str, NDArray[Any]], name: str) -> None:
        self._ends: NDArray[np.int64] = arrays[f"{name}.ends"]
        self._text = arrays[f"{name}.text"].data  # a piece of it is cut faster than one of an array

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        return str(self._text[self._ends[place] : self._ends[place + 1]], "utf-8", "surrogatepass")

    def raw(self, place: int) -> bytes:
        """The bytes of one text."""
        return bytes(self._text[self._ends[place] : self._ends[place + 1]])

    def size(self, place: int) -> int:
        """How many bytes one text has."""
        return int(self._ends[place + 1] - self._ends[place])

    def slice(self, place: int, start: int, end: int) -> str:
        """Bytes [start, end) of one text, where each byte is a character."""
        first = int(self._ends[place])
        return str(self._text[first + start : first + end], "ascii")

    def many(self, places: NDArray[np.integer[Any]]) -> list[str]:
        """The texts at these places."""
        starts, ends = self._ends[places].tolist(), self._ends[places + 1].tolist()
        pieces = zip(starts, ends, strict=True)
        return [str(self._text[start:end], "utf-8", "surrogatepass") for start, end in pieces]


# Which nodes belong to a domain: entities by the documents that mention them, texts by their document.


LABEL_SEPARATOR = "\x1f"
_CODED = ("entity.domain", "entity.domains", "document.domain")


class DomainIndex:
    """Answers from codes of label sets. A snapshot from before domains were kept has none of them."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._labels: dict[str, list[frozenset[str]]] = {}

    def names(self) -> tuple[str, ...]:
        """Every domain of the snapshot, sorted."""
        return tuple(sorted({name for column in _CODED for name in self._written(column)}))

    def contains(self, domain: str, numbers: Numbers, kinds: Codes) -> Flags:
        """Whether each node belongs to a domain, ignoring case; topics and texts without one belong to all."""
        entity, cluster = KINDS.index(Kind.ENTITY), KINDS.index(Kind.CLUSTER)
        inside: Flags = kinds == cluster
        entities = numbers[kinds == entity]  # the first kind, so a number is a row
        inside[kinds == entity] = self._is_in("entity.domain", domain, entities) | self._is_in(
            "entity.domains", domain, entities
        )
        texts = (kinds != entity) & (kinds != cluster)
        documents = np.asarray(self._arrays["node.document"])[numbers[texts]].astype(np.int64)
        inside[texts] = self._is_in("document.domain", domain, documents) | self._has_none(documents)
        return inside

    def _has_none(self, documents: Numbers) -> Flags:
        """Which documents were stored before domains were kept: nothing excludes them."""
        if "document.domain" not in self._arrays:
            return np.ones(len(documents), np.bool_)
        none: Flags = (documents < 0) | (np.asarray(self._arrays["document.domain"])[np.maximum(documents, 0)] < 0)
        return none

    def _is_in(self, column: str, domain: str, rows: Numbers) -> Flags:
        wanted = domain.casefold()
        if column not in self._labels:
            self._labels[column] = [
                frozenset(name.casefold() for name in text.split(LABEL_SEPARATOR)) for text in self._texts(column)
            ]
        known = np.array([wanted in names for names in self._labels[column]] + [False], np.bool_)  # -1 is the last
        if column not in self._arrays or not len(rows):
            return np.zeros(len(rows), np.bool_)
        codes = np.where(rows >= 0, np.asarray(self._arrays[column])[np.maximum(rows, 0)], -1)
        found: Flags = known[codes]
        return found

    def _written(self, column: str) -> set[str]:
        return {name for text in self._texts(column) for name in text.split(LABEL_SEPARATOR)}

    def _texts(self, column: str) -> list[str]:
        if f"{column}_name.ends" not in self._arrays:
            return []
        heap = Heap(self._arrays, f"{column}_name")
        return [heap[place] for place in range(len(self._arrays[f"{column}_name.ends"]) - 1)]


# Arrow columns as the arrays that are written; nulls become the value that means absence.


NOWHERE = -1


def integers(column: pa.Array, absent: int) -> NDArray[np.int64]:
    """Numbers or moments (microseconds since 1970) as int64."""
    values = column.cast(pa.int64()) if column.type != pa.int64() else column
    filled: NDArray[np.int64] = pc.fill_null(values, absent).to_numpy(zero_copy_only=False)
    return filled


def floats(column: pa.Array) -> NDArray[np.float64]:
    """Numbers as float64, NaN where there is none."""
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def texts(column: pa.Array) -> list[str]:
    """Texts, empty where there is none."""
    values: list[str] = pc.fill_null(column, "").to_pylist()
    return values


def spans(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and ends of [start, end) lists; -1 for both where there is no such pair."""
    lengths = integers(pc.list_value_length(column), 0)
    whole = lengths == 2
    flat = column.flatten().to_numpy(zero_copy_only=False)
    place = (np.cumsum(lengths) - lengths)[whole]
    starts, ends = (np.full(len(column), NOWHERE, np.int64) for _ in range(2))
    if len(place):
        starts[whole], ends[whole] = flat[place], flat[place + 1]
    return starts, ends


def join_labels(column: pa.Array) -> pa.Array:
    """Lists of labels as one text each; null where there is none."""
    joined = pc.binary_join(column, LABEL_SEPARATOR)
    return pc.if_else(pc.equal(joined, ""), pa.scalar(None, joined.type), joined)


def append_texts(heap: HeapWriter, column: pa.Array) -> None:
    """Copy a column of texts into a heap without making Python strings of it."""
    whole = pc.fill_null(column, "").cast(pa.large_string())
    _, ends, text = whole.buffers()
    if not len(whole):
        return
    bounds = np.frombuffer(ends, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    joined: Any = b"" if text is None else memoryview(text)[bounds[0] : bounds[-1]]
    heap.append_bytes(np.diff(bounds), joined)


class Coder:
    """Gives each distinct text a number in the order of first appearance."""

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self.codes: dict[str, int] = {text: number for number, text in enumerate(known)}

    def encode(self, column: pa.Array) -> NDArray[np.int64]:
        """The number of each text, -1 where there is none."""
        coded = pc.dictionary_encode(column)
        seen = coded.dictionary.to_pylist()
        numbers = np.array([self.codes.setdefault(text, len(self.codes)) for text in seen] + [NOWHERE], np.int64)
        places = integers(coded.indices, NOWHERE)
        result: NDArray[np.int64] = numbers[places]
        return result


# Texts found by hash: two sorted arrays answer many look-ups at once and take the place of a dictionary.


Hashes = NDArray[np.uint64]


def hash_texts(texts: Iterable[str]) -> Hashes:
    """64 bits of BLAKE2b of each text; the same on every machine."""
    blake = hashlib.blake2b
    joined = b"".join(blake(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(joined, "<u8").astype(np.uint64)


@dataclass(frozen=True)
class Places:
    """Runs of equal hashes: the answers to question `asked[i]` stand at `first[i]:last[i]`."""

    asked: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def spread(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Question and place of every answer, in the order of the questions."""
        counts = self.last - self.first
        skipped = np.cumsum(counts) - counts
        return np.repeat(self.asked, counts), np.repeat(self.first - skipped, counts) + np.arange(int(counts.sum()))


def find(hashes: NDArray[Any], wanted: Hashes) -> Places:
    """Where these hashes stand in a sorted array; only those that do."""
    first = np.searchsorted(hashes, wanted, side="left")
    held = np.flatnonzero(first < len(hashes))
    asked = held[hashes[first[held]] == wanted[held]]
    last = np.searchsorted(hashes, wanted[asked], side="right")  # most are not there and need no second look
    return Places(asked, first[asked], last)


# The best few of many, with ties settled the same way every time.


def best(scores: NDArray[np.floating[Any]], ties: NDArray[np.integer[Any]], limit: int) -> NDArray[np.int64]:
    """Places of the `limit` highest scores, highest first; equal scores by `ties`, lowest first.

    Only what may be among them is sorted.
    """
    if limit <= 0:
        return np.empty(0, np.int64)
    if limit < len(scores):
        bar = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        candidates = np.flatnonzero(scores >= bar)
    else:
        candidates = np.arange(len(scores), dtype=np.int64)
    order = np.lexsort((ties[candidates], -scores[candidates]))
    return candidates[order[:limit]]
