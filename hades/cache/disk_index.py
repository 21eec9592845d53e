"""The index of a tier on disk: which file holds a key, how large it is, when it was last used. SQLite."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection, DatabaseError, OperationalError
from threading import RLock
from typing import Any

FILE_NAME = "index.db"
BUSY_S = 10.0
_FIELDS = ("filename", "size", "created", "last_accessed", "access_count", "metadata")
# The sum is kept by the database itself: no sequence of changes, and no process that dies, can make it drift.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entry (
  key TEXT PRIMARY KEY, filename TEXT NOT NULL, size INTEGER NOT NULL, checksum TEXT NOT NULL,
  created REAL NOT NULL, last_accessed REAL NOT NULL, access_count INTEGER NOT NULL, metadata TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entry_by_use ON entry (last_accessed, access_count, key);
CREATE TABLE IF NOT EXISTS total (
  id INTEGER PRIMARY KEY CHECK (id = 0), bytes INTEGER NOT NULL, entries INTEGER NOT NULL
) STRICT;
INSERT OR IGNORE INTO total VALUES (0, 0, 0);
CREATE TRIGGER IF NOT EXISTS grows AFTER INSERT ON entry BEGIN
  UPDATE total SET bytes = bytes + NEW.size, entries = entries + 1;
END;
CREATE TRIGGER IF NOT EXISTS shrinks AFTER DELETE ON entry BEGIN
  UPDATE total SET bytes = bytes - OLD.size, entries = entries - 1;
END;
"""


@dataclass(frozen=True)
class Row:
    """Where the bytes of an entry are, and what they must be."""

    filename: str
    checksum: str
    access_count: int
    metadata: str


class DiskIndex:
    """One connection a process, opened when it is first needed, safe to use from several threads."""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self._folder, self._durable = folder, durable
        self._connection: Connection | None = None
        self._pid = 0
        self._lock = RLock()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that nobody else writes beside, in this process or another; undone when the body raises."""
        with self._open() as connection:
            if self._durable:
                connection.execute("PRAGMA synchronous = FULL")  # for what is stored; a use need not outlive the power
            try:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
            finally:
                connection.execute("PRAGMA synchronous = NORMAL")

    def touch(self, key: str, now: float) -> Row | None:
        """Count a use and say where the bytes are; None when there is no such entry."""
        with self._open() as connection:
            found = connection.execute(
                "UPDATE entry SET last_accessed = ?, access_count = access_count + 1 WHERE key = ?"
                " RETURNING filename, checksum, access_count, metadata",
                (now, key),
            ).fetchall()
        return Row(*found[0]) if found else None

    def insert(
        self, connection: Connection, key: str, filename: str, size: int, checksum: str, now: float, metadata: str
    ) -> None:
        """Add an entry that is not there."""
        values = (key, filename, size, checksum, now, now, metadata)
        connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, 1, ?)", values)

    def delete(self, connection: Connection, key: str) -> str | None:
        """Take an entry out; the file it named."""
        found = connection.execute("DELETE FROM entry WHERE key = ? RETURNING filename", (key,)).fetchall()
        return str(found[0][0]) if found else None

    def least_used(self, connection: Connection, excess: int) -> list[tuple[str, str]]:
        """The entries that must leave to make this many bytes free: by last use, then by how often, then by key."""
        leaving = []
        if excess > 0:
            order = "SELECT key, filename, size FROM entry ORDER BY last_accessed, access_count, key"
            for key, filename, size in connection.execute(order):
                if excess <= 0:
                    break
                leaving.append((key, filename))
                excess -= size
        return leaving

    def filename(self, connection: Connection, key: str) -> str | None:
        """The file of an entry."""
        found = connection.execute("SELECT filename FROM entry WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

    def filenames(self, connection: Connection) -> set[str]:
        """Every file that an entry names."""
        return {row[0] for row in connection.execute("SELECT filename FROM entry")}

    def delete_all(self, connection: Connection) -> int:
        """Take every entry out; how many there were."""
        return connection.execute("DELETE FROM entry").rowcount

    def total_inside(self, connection: Connection) -> int:
        """Bytes held, as the transaction sees them."""
        return int(connection.execute("SELECT bytes FROM total").fetchone()[0])

    def total(self) -> int:
        """Bytes held."""
        return int(self._one("SELECT bytes FROM total", ())[0])

    def count(self) -> int:
        """Entries held."""
        return int(self._one("SELECT entries FROM total", ())[0])

    def holds(self, key: str) -> bool:
        """Whether there is such an entry."""
        return bool(self._one("SELECT EXISTS (SELECT 1 FROM entry WHERE key = ?)", (key,))[0])

    def items(self) -> list[tuple[str, dict[str, Any]]]:
        """Every entry by key."""
        with self._open() as connection:
            rows = connection.execute(f"SELECT key, {', '.join(_FIELDS)} FROM entry ORDER BY key").fetchall()
        return [(key, dict(zip(_FIELDS, fields, strict=True))) for key, *fields in rows]

    def close(self) -> None:
        """Give back the connection."""
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    def _one(self, query: str, values: tuple[str, ...]) -> Any:
        with self._open() as connection:
            return connection.execute(query, values).fetchone()

    @contextmanager
    def _open(self) -> Iterator[Connection]:
        """The connection, held by one thread at a time; a child of fork opens its own."""
        with self._lock:
            if self._connection is None or self._pid != os.getpid():
                self._connection, self._pid = self._connect(), os.getpid()
            yield self._connection

    def _connect(self) -> Connection:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self._folder / ".lock").open("a") as lock:  # two processes must not both make or mend the file
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                return self._prepared()
            except OperationalError:  # busy, or no rights: the file itself may be sound
                raise
            except DatabaseError:
                for suffix in ("", "-wal", "-shm"):
                    (self._folder / f"{FILE_NAME}{suffix}").unlink(missing_ok=True)
                return self._prepared()

    def _prepared(self) -> Connection:
        connection = sqlite3.connect(
            self._folder / FILE_NAME, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_SCHEMA)
        except DatabaseError:
            connection.close()
            raise
        return connection
