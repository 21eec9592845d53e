"""A tier in RAM, a tier on disk, keys and policy."""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, IntEnum
from pathlib import Path
from sqlite3 import Connection, DatabaseError, OperationalError
from threading import RLock
from typing import Any, Final, TypeVar

import cachetools
import orjson

from hades.files import hold_lock

MIB: Final = 1024**2
GIB: Final = 1024**3
# Python's own types only: what JSON would give back as something else is not written in the first
# place.
_EXACT = (
    orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


class MemoryTier(IntEnum):
    """Tiers in order of access speed; the last is the graph itself, which computes what the others
    do not hold.
    """

    RAM = 1
    NVME_RAID0 = 2
    RAID1 = 3
    RAID5 = 4


class Miss(Enum):
    """Nothing is stored: pass it as `default` where None, [], {} or 0 may be stored values."""

    MISS = "miss"


MISS: Final = Miss.MISS


@dataclass(frozen=True)
class TierHit:
    """A value and the tier that gave it."""

    value: Any
    tier: MemoryTier


@dataclass
class Counts:
    """The look-ups of one process in a tier. `damaged` entries read as a miss and went; `failed`
    are disk errors.
    """

    asked: int = 0
    hits: int = 0
    stored: int = 0
    evicted: int = 0
    damaged: int = 0
    failed: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of look-ups that were answered."""
        return self.hits / self.asked if self.asked else 0.0


def to_json(value: object) -> bytes | None:
    """The value as JSON; None when JSON cannot hold it. Tuples come back as lists."""
    try:
        return orjson.dumps(value, option=_EXACT)
    except TypeError:
        return None


Metadata = Mapping[str, Any]
# The tier in memory. Values are held as JSON bytes: the budget counts what the process really
# holds, and nobody who changes what a look-up returned changes what the next one returns.
UNKNOWN_BYTES = MIB // 10  # what an object counts that JSON cannot hold
OnEvict = Callable[[str, Any], object]


@dataclass(frozen=True, slots=True)
class _Entry:
    """JSON bytes, or the object itself where JSON cannot hold it; `size` is what it was counted
    with.
    """

    payload: bytes | None
    value: object
    size: int

    def read(self) -> Any:
        if self.payload is None:
            return self.value
        return orjson.loads(self.payload)


class LRUCache:
    """Safe to use from several threads. `on_evict` is called with what was evicted, after the lock
    is given back.
    """

    def __init__(
        self,
        max_size_mb: float = 8192,
        *,
        on_evict: OnEvict | None = None,
    ) -> None:
        if max_size_mb <= 0:
            raise ValueError(f"max_size_mb is {max_size_mb}; a cache needs room for something")

        self.max_bytes = int(max_size_mb * MIB)
        self.counts = Counts()
        self._order: cachetools.LRUCache[str, _Entry] = cachetools.LRUCache(
            self.max_bytes, lambda entry: entry.size
        )
        self._lock = RLock()
        self._on_evict = on_evict

    def get(self, key: str, default: Any = None) -> Any:
        """The value, now the most recently used; `default` on a miss (pass `MISS` to tell one from
        a stored None).
        """
        with self._lock:
            self.counts.asked += 1
            entry = self._order.get(key)
            if entry is None:
                return default

            self.counts.hits += 1

        return entry.read()

    def put(
        self,
        key: str,
        value: Any,
        size_mb: float | None = None,
    ) -> bool:
        """Keep a value, pushing out others as needed; False when it is larger than the cache.

        What the key held before is gone either way: a value that was replaced is never handed out
        again.
        """
        entry = _measure(value, size_mb)
        with self._lock:
            self._order.pop(key, None)
            if entry.size > self.max_bytes:
                return False

            evicted = []
            while self._order.currsize + entry.size > self.max_bytes:
                evicted.append(self._order.popitem())

            self._order[key] = entry
            self.counts.stored += 1
            self.counts.evicted += len(evicted)

        if self._on_evict is not None:
            for name, pushed_out in evicted:
                self._on_evict(name, pushed_out.read())

        return True

    def remove(self, key: str) -> bool:
        """Let go of a key; whether it was there."""
        with self._lock:
            return self._order.pop(key, None) is not None

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._order.clear()

    def items(self) -> list[tuple[str, Any]]:
        """Everything held, in the order in which it came."""
        with self._lock:
            entries = list(self._order.items())

        return [(key, entry.read()) for key, entry in entries]

    @property
    def current_bytes(self) -> int:
        """The sum of the sizes held."""
        with self._lock:
            return int(self._order.currsize)

    def __len__(self) -> int:
        with self._lock:
            return len(self._order)


def _measure(value: Any, size_mb: float | None) -> _Entry:
    """Counted by its JSON bytes, or as the caller says; the size stays with the entry: what is
    added is taken off.
    """
    if size_mb is not None and size_mb < 0:
        raise ValueError(f"size_mb is {size_mb}; a size cannot be negative")

    written = to_json(value)
    # A copy of exactly its size: the writer's own buffer keeps its spare room, two and a half times
    # the bytes counted.
    if written is None:
        payload = None
    else:
        payload = bytes(memoryview(written))

    size = UNKNOWN_BYTES if payload is None else len(payload)
    return _Entry(
        payload,
        value if payload is None else None,
        size if size_mb is None else round(size_mb * MIB),
    )


# A tier on disk: one SQLite file with the values as blobs, shared by several processes. A process
# that is killed leaves the old entry or the new one. The least recently used entries leave before a
# new one is written. A value whose checksum is wrong is a miss, a file that is no database is
# replaced, and a disk that fails costs a miss.
logger = logging.getLogger(__name__)
FILE_NAME = "cache.db"
BUSY_SECONDS = 10.0
Result = TypeVar("Result")
_FIELDS = ("size", "created", "last_accessed", "access_count", "metadata")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entry (
  key TEXT PRIMARY KEY, payload BLOB NOT NULL, size INTEGER NOT NULL, checksum TEXT NOT NULL,
  created REAL NOT NULL, last_accessed REAL NOT NULL, access_count INTEGER NOT NULL,
  metadata TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS entry_by_use ON entry (last_accessed, access_count, key, size);
"""
_TOUCH = (
    "UPDATE entry SET last_accessed = ?, access_count = access_count + 1 WHERE key = ?"
    " RETURNING payload, checksum, access_count, metadata"
)
_BYTES = "SELECT COALESCE(SUM(size), 0) FROM entry"
_NEWEST_FIRST = "last_accessed DESC, access_count DESC, key DESC"
_MAKE_ROOM = (  # what was used last stays, up to a number of bytes
    "DELETE FROM entry WHERE key IN (SELECT key FROM (SELECT key, SUM(size) OVER "
    f"(ORDER BY {_NEWEST_FIRST}) AS bytes FROM entry) WHERE bytes > ?)"
)


@dataclass(frozen=True)
class Entry:
    """A value with how often it was stored and used, and the metadata stored with it."""

    value: Any
    access_count: int
    metadata: dict[str, Any]


class DiskCache:
    """Values by key, stored as JSON. `durable` waits for the disk, so that an entry survives a
    power failure too.
    """

    def __init__(
        self,
        base_path: Path | str,
        max_size_gb: float = 100,
        *,
        durable: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        if max_size_gb <= 0:
            raise ValueError(f"max_size_gb is {max_size_gb}; give a size above 0")

        self.base_path = Path(base_path)
        self.path = self.base_path / FILE_NAME
        self.max_bytes = int(max_size_gb * GIB)
        self.counts = Counts()
        self._durable, self._now = durable, now
        self._connection: Connection | None = None
        self._pid = 0
        self._lock = RLock()

    def get(self, key: str, default: Any = None) -> Any:
        """The value, counted as used; `default` on a miss (pass `MISS` to distinguish a stored
        None).
        """
        entry = self.read(key)
        return default if entry is None else entry.value

    def read(self, key: str) -> Entry | None:
        """The entry, counted as used; None on a miss. A damaged entry is removed."""
        self.counts.asked += 1
        return self._attempt("read", lambda: self._read(key), None)

    def put(
        self,
        key: str,
        value: Any,
        metadata: Metadata | None = None,
    ) -> bool:
        """Store a value; False, and the key holds nothing, when JSON or the budget cannot hold it
        or the disk fails.

        The least recently used entries leave first; of those used at the same time, the least used.
        """
        payload = to_json(value)
        if payload is None or len(payload) > self.max_bytes:
            self.remove(key)
            return False

        return self._attempt(
            "written",
            lambda: self._put(key, payload, dict(metadata or {})),
            False,
        )

    def remove(self, key: str) -> bool:
        """Delete an entry; whether it was there."""
        return key in self and self._attempt(
            "changed",
            lambda: self._delete("WHERE key = ?", key) > 0,
            False,
        )

    def clear(self) -> int:
        """Delete everything, also from free pages and the write-ahead log; how many entries there
        were.

        A disk that fails reaches the caller here: nothing may be left without notice.
        """
        count = self._delete("")
        with self._open() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        return count

    @property
    def index(self) -> dict[str, Any]:
        """What is held: `items` by key with filename, size_mb, created, last_accessed, access_count
        and metadata.
        """
        with self._open() as connection:
            rows = connection.execute(
                f"SELECT key, {', '.join(_FIELDS)} FROM entry ORDER BY key"
            ).fetchall()

        entries = {}
        for key, size, *use, metadata in rows:
            entries[key] = {
                "filename": FILE_NAME,
                "size_mb": size / MIB,
                **dict(zip(_FIELDS[1:-1], use, strict=True)),
                "metadata": orjson.loads(metadata),
            }

        return {
            "items": entries,
            "total_size_mb": self.current_bytes / MIB,
        }

    @property
    def current_bytes(self) -> int:
        """The sum of the sizes of the values."""
        return self._number(_BYTES)

    def __contains__(self, key: str) -> bool:
        """Whether there is an entry; does not count as a use."""
        return self._number("SELECT EXISTS (SELECT 1 FROM entry WHERE key = ?)", key) > 0

    def __len__(self) -> int:
        return self._number("SELECT COUNT(*) FROM entry")

    def close(self) -> None:
        """Close the connection; the entries stay."""
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    def _read(self, key: str) -> Entry | None:
        if not self.path.exists():
            return None

        with self._open() as connection:
            rows = connection.execute(_TOUCH, (self._now(), key)).fetchall()

        if not rows:
            return None

        payload, checksum, access_count, metadata = rows[0]
        if _hash(payload) != checksum:
            self.counts.damaged += 1
            self._delete(
                "WHERE key = ? AND checksum = ?",
                key,
                checksum,
            )
            return None

        self.counts.hits += 1
        return Entry(
            orjson.loads(payload),
            access_count,
            orjson.loads(metadata),
        )

    def _put(
        self,
        key: str,
        payload: bytes,
        metadata: dict[str, Any],
    ) -> bool:
        """The old value and whatever must make room leave in the same transaction."""
        now = self._now()
        about = orjson.dumps(metadata).decode()

        with self._open() as connection:
            connection.execute("DELETE FROM entry WHERE key = ?", (key,))
            evicted = connection.execute(_MAKE_ROOM, (self.max_bytes - len(payload),)).rowcount
            connection.execute(
                "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, 1, ?)",
                (key, payload, len(payload), _hash(payload), now, now, about),
            )

        self.counts.stored += 1
        self.counts.evicted += evicted
        return True

    def _delete(self, where: str, *values: str) -> int:
        with self._open() as connection:
            return connection.execute(f"DELETE FROM entry {where}", values).rowcount

    def _number(self, query: str, *values: str) -> int:
        def ask() -> int:
            if not self.path.exists() and self._connection is None:
                return 0

            with self._open() as connection:
                return int(connection.execute(query, values).fetchone()[0])

        return self._attempt("read", ask, 0)

    @contextmanager
    def _open(self) -> Iterator[Connection]:
        """The connection, used by one thread at a time; what the body changes is one
        transaction.
        """
        with self._lock:
            # A child of fork opens its own.
            if self._connection is None or self._pid != os.getpid():
                self._connection, self._pid = self._connect(), os.getpid()

            with self._connection:
                yield self._connection

    def _connect(self) -> Connection:
        self.base_path.mkdir(
            parents=True,
            exist_ok=True,
            mode=0o700,
        )
        # Two processes must not both create or replace the file.
        with hold_lock(self.base_path / ".lock"):
            try:
                return self._prepare()
            except OperationalError:  # busy, or no rights: the file itself may be sound
                raise
            except DatabaseError:
                for suffix in ("", "-wal", "-shm"):
                    (self.base_path / f"{FILE_NAME}{suffix}").unlink(missing_ok=True)

                return self._prepare()

    def _prepare(self) -> Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level="IMMEDIATE",
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA auto_vacuum = FULL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
            # A deleted value is overwritten, not only unlinked.
            connection.execute("PRAGMA secure_delete = ON")
            connection.executescript(_SCHEMA)
        except DatabaseError:
            connection.close()
            raise

        return connection

    def _attempt(
        self,
        action: str,
        work: Callable[[], Result],
        otherwise: Result,
    ) -> Result:
        """A disk that fails is counted and logged, and costs the caller no more than a miss."""
        try:
            return work()
        except (OSError, DatabaseError) as error:
            self.counts.failed += 1
            logger.warning(
                "the cache in %s cannot be %s: %s",
                self.base_path,
                action,
                error,
            )
            return otherwise


def _hash(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()


@dataclass(frozen=True)
class Scope:
    """What holds for every entry: the snapshot that answers, the generation of the graph's caches,
    and whose it is.
    """

    snapshot: str
    generation: int = 0
    tenant: str = ""


def path_key(
    query: str,
    params: Mapping[str, Any],
    scope: Scope,
) -> str:
    """The key of an answer: `path:` and a hash of its parts, from which nothing of the question can
    be read.

    Every limit the answer was computed under belongs into `params`.
    """
    parts = ["path", scope.snapshot, scope.generation, scope.tenant, [query, dict(params)]]
    canonical = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return f"path:{hashlib.blake2b(canonical, digest_size=20).hexdigest()}"
