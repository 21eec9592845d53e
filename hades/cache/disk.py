"""A tier on disk: one file an entry in `data/`, and an index in SQLite that several processes share.

Whoever writes or removes a file holds SQLite's write lock, so the index and the files change together, and a file that
the index does not name is left over from a process that died: it is swept away under the same lock. Entries that a
process evicts leave before the new one comes, so the files never exceed the budget. A file whose checksum is wrong, or
that is gone, reads as a miss and its entry is removed. A disk that fails costs a miss, never an answer.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection, DatabaseError
from typing import Any, TypeVar

import orjson

from hades.cache.disk_index import DiskIndex
from hades.cache.tier import GIB, MIB, Counts, Metadata, from_json, to_json

logger = logging.getLogger(__name__)

_PARTIAL = ".partial"
Result = TypeVar("Result")


@dataclass(frozen=True)
class Entry:
    """A value with how often it was stored and used, and what was noted with it."""

    value: Any
    access_count: int
    metadata: dict[str, Any]


class DiskCache:
    """Values by key, kept as JSON. `durable` waits for the disk, so that an entry outlives a loss of power too."""

    def __init__(
        self,
        base_path: Path | str,
        max_size_gb: float = 100,
        *,
        durable: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        if max_size_gb <= 0:
            raise ValueError(f"max_size_gb is {max_size_gb}; a cache needs room for something")
        self.base_path = Path(base_path)
        self.data_path = self.base_path / "data"
        self.max_size_gb = max_size_gb
        self.max_bytes = int(max_size_gb * GIB)
        self.counts = Counts()
        self._durable, self._now = durable, now
        self._index = DiskIndex(self.base_path, durable=durable)
        self._swept = False

    def get(self, key: str, default: Any = None) -> Any:
        """The value, counted as used; `default` on a miss (pass `MISS` to tell one from a stored None)."""
        entry = self.read(key)
        return default if entry is None else entry.value

    def read(self, key: str) -> Entry | None:
        """The entry, counted as used; None on a miss. A damaged one is removed."""
        self.counts.asked += 1
        return self._attempt("read", lambda: self._read(key), None)

    def put(self, key: str, value: Any, metadata: Metadata | None = None) -> bool:
        """Keep a value; False, and the key holds nothing, when JSON or the budget cannot hold it or the disk fails.

        Least recently used entries leave first; of those used at the same time, the least used.
        """
        payload = to_json(value)
        if payload is None or len(payload) > self.max_bytes:
            self.remove(key)
            return False
        return self._attempt("written", lambda: self._put(key, payload, dict(metadata or {})), False)

    def remove(self, key: str) -> bool:
        """Delete an entry and its file; whether it was there."""
        return self._attempt("changed", lambda: self._remove(key), False)

    def clear(self) -> int:
        """Delete everything, also what dead processes left; how many entries went.

        A disk that fails reaches the caller here: who clears wants it gone.
        """
        with self._index.writing() as connection:
            count = self._index.delete_all(connection)
            if self.data_path.is_dir():
                for path in self.data_path.iterdir():
                    path.unlink(missing_ok=True)
        return count

    @property
    def index(self) -> dict[str, Any]:
        """What is held: `items` by key with filename, size_mb, created, last_accessed, access_count and metadata."""
        items = {
            key: {"size_mb": fields.pop("size") / MIB, **fields, "metadata": orjson.loads(fields["metadata"])}
            for key, fields in self._index.items()
        }
        return {"items": items, "total_size_mb": self.current_size_mb}

    @property
    def current_bytes(self) -> int:
        """The sum of the sizes held."""
        return self._attempt("read", self._index.total, 0)

    @property
    def current_size_mb(self) -> float:
        """The same in MiB."""
        return self.current_bytes / MIB

    def __contains__(self, key: str) -> bool:
        """Whether there is an entry; says nothing about use, nor whether its file is sound."""
        return self._attempt("read", lambda: self._index.holds(key), False)

    def __len__(self) -> int:
        return self._attempt("read", self._index.count, 0)

    def close(self) -> None:
        """Give back the connection; the entries stay."""
        self._index.close()

    def _read(self, key: str) -> Entry | None:
        row = self._index.touch(key, self._now())
        if row is None:
            return None
        payload = self._sound(row.filename, row.checksum)
        if payload is None:
            self.counts.damaged += 1
            self._drop(key, row.filename)
            return None
        self.counts.hits += 1
        return Entry(from_json(payload), row.access_count, orjson.loads(row.metadata))

    def _put(self, key: str, payload: bytes, metadata: dict[str, Any]) -> bool:
        """The old value and whoever must make room leave before the new one comes, all under one lock."""
        checksum = _hash(payload)
        filename = f"{_hash(key.encode())}-{checksum}.json"
        with self._writing() as connection:
            before = self._index.delete(connection, key)
            if before is not None and before != filename:
                self._unlink(before)
            self._make_room(connection, len(payload))
            self._write(filename, payload)
            about = orjson.dumps(metadata).decode()
            self._index.insert(connection, key, filename, len(payload), checksum, self._now(), about)
        self.counts.stored += 1
        return True

    def _remove(self, key: str) -> bool:
        if not self._index.holds(key):
            return False
        with self._writing() as connection:
            filename = self._index.delete(connection, key)
            if filename is not None:
                self._unlink(filename)
        return filename is not None

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """SQLite's write lock, with the folder there and without leftovers of processes that died."""
        with self._index.writing() as connection:
            self.data_path.mkdir(parents=True, exist_ok=True)
            if not self._swept:
                self._sweep(connection)
                self._swept = True
            yield connection

    def _sweep(self, connection: Connection) -> None:
        named = self._index.filenames(connection)
        for path in self.data_path.iterdir():
            if path.name not in named:
                path.unlink(missing_ok=True)

    def _make_room(self, connection: Connection, needed: int) -> None:
        excess = self._index.total_inside(connection) + needed - self.max_bytes
        for key, filename in self._index.least_used(connection, excess):
            self._index.delete(connection, key)
            self._unlink(filename)
            self.counts.evicted += 1

    def _write(self, filename: str, payload: bytes) -> None:
        partial = self.data_path / f"{filename}{_PARTIAL}"
        with partial.open("wb") as file:
            file.write(payload)
            if self._durable:
                file.flush()
                os.fsync(file.fileno())
        partial.replace(self.data_path / filename)

    def _sound(self, filename: str, checksum: str) -> bytes | None:
        """The bytes of a file; None when they are gone or not those that were written."""
        try:
            payload = (self.data_path / filename).read_bytes()
        except OSError:
            return None
        return payload if _hash(payload) == checksum else None

    def _drop(self, key: str, filename: str) -> None:
        """Remove a damaged entry, unless somebody has replaced it meanwhile."""
        with self._writing() as connection:
            if self._index.filename(connection, key) == filename:
                self._index.delete(connection, key)
                self._unlink(filename)

    def _unlink(self, filename: str) -> None:
        (self.data_path / filename).unlink(missing_ok=True)

    def _attempt(self, done: str, work: Callable[[], Result], otherwise: Result) -> Result:
        """A disk or an index that fails is counted and logged, and costs the caller no more than a miss."""
        try:
            return work()
        except (OSError, DatabaseError) as error:
            self.counts.failed += 1
            logger.warning("the cache in %s cannot be %s: %s", self.base_path, done, error)
            return otherwise


def _hash(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
