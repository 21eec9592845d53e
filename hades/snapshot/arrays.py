"""Arrays as plain little-endian files: written in a stream with their hash, read by mapping them into memory."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hades.snapshot.file_hash import begin_hash, hash_file

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
