"""The file of the embedded store: connections, errors in our words, its version, copies and counts."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from hades.errors import NotProvisioned, ReadOnly, StoreBusy, StoreDamaged, StoreError
from hades.ports.store import Mode
from schemas.catalogue import NAMES

BUSY_TIMEOUT_SECONDS = 60.0
# Rows hold texts and vectors: with large pages few of them spill over.
_DATABASE_PAGE_BYTES = 16_384
_WRITER_CACHE_KIB, _READER_CACHE_KIB = 65_536, 32_768  # the system caches the file as well


class Connections:
    """Opens, lends and closes connections. Readers see the last commit; the one writer begins at once or waits."""

    def __init__(self, path: Path, mode: Mode, busy_seconds: float | None = None) -> None:
        """`busy_seconds` is how long to wait for another writer."""
        self.path = path
        self.mode = mode
        self._busy_seconds = BUSY_TIMEOUT_SECONDS if busy_seconds is None else busy_seconds
        self._idle: list[sqlite3.Connection] = []
        self._idle_lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._writer_lock = threading.Lock()
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection inside a read transaction: all reads see one state of the file."""
        connection = self._borrow()
        try:
            with self._translate():
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise
        with self._idle_lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writer inside an immediate transaction: committed at the end, rolled back on any exception."""
        if self.mode is Mode.READ_ONLY:
            raise ReadOnly("writing to the store")
        with self._writer_lock, self._translate():
            connection = self._writer = self._writer or self._open(_WRITER_CACHE_KIB)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def vacuum(self) -> bool:
        """Rewrite the file without free pages and empty its log; False when another process reads the log."""
        self._close_idle()
        with self._writer_lock, self._translate():
            connection = self._writer = self._writer or self._open(_WRITER_CACHE_KIB)
            connection.execute("VACUUM")
            is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    def close(self) -> None:
        """Close every idle connection; borrowed ones close when they come back."""
        self._close_idle(closed=True)
        with self._writer_lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _close_idle(self, *, closed: bool = False) -> None:
        with self._idle_lock:
            self._closed = self._closed or closed
            idle, self._idle = self._idle, []
        for reader in idle:
            reader.close()

    def _borrow(self) -> sqlite3.Connection:
        with self._idle_lock:
            if self._closed:
                raise StoreError(f"{self.path} was closed; open the store again")
            if self._idle:
                return self._idle.pop()
        return self._open(_READER_CACHE_KIB)

    def _open(self, cache_kib: int) -> sqlite3.Connection:
        if self.mode is not Mode.ADMIN and not self.path.exists():
            raise NotProvisioned(f"there is no store at {self.path}; run `hades provision`")
        access = "ro" if self.mode is Mode.READ_ONLY else "rwc"
        with self._translate():
            connection = sqlite3.connect(
                f"{self.path.resolve().as_uri()}?mode={access}",
                uri=True,
                timeout=self._busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            if access == "rwc":
                connection.execute(f"PRAGMA page_size={_DATABASE_PAGE_BYTES}")
                connection.execute("PRAGMA journal_mode=WAL")
                # FULL: a commit survives the machine, not only the process; bulk writes make few commits.
                connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA cache_size=-{cache_kib}")
            connection.execute("PRAGMA temp_store=MEMORY")
        return connection

    def _translate(self) -> AbstractContextManager[None]:
        return translate(self.path, self._busy_seconds)


@contextmanager
def translate(path: Path, busy_seconds: float = BUSY_TIMEOUT_SECONDS) -> Iterator[None]:
    """SQLite's errors as ours, naming the file and the next step."""
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise StoreBusy(f"{path} was held by another writer for {busy_seconds:g} s; try again") from error
        if "no such table" in text:
            raise NotProvisioned(f"{path} is not provisioned ({text}); run `hades provision`") from error
        if "readonly" in text:
            raise ReadOnly(f"writing to {path}") from error
        raise StoreError(f"{path}: {text}; run `hades doctor`") from error
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(f"{path}: {error}; restore a backup or rebuild the store from its sources") from error


VERSION = 4  # of the file's own form; before 4 rows lay in pages, see `tables.move_rows`


def known_version(connection: sqlite3.Connection) -> int:
    """The file's version; one that a later HADES wrote is refused, because nobody here knows what it means."""
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if number > VERSION:
        raise StoreError(
            f"the file is at version {number}, this HADES knows {VERSION}; upgrade HADES or use the older file"
        )
    return number


_BEGINNING = b"SQLite format 3\x00"


def copy_as_of_now(source: Path, target: Path) -> None:
    """Copy a file of any kind to the new file `target`; a database as it is at one moment."""
    with source.open("rb") as file:
        is_database = file.read(len(_BEGINNING)) == _BEGINNING
    (copy_database if is_database else shutil.copy2)(source, target)


def copy_database(source: Path, target: Path) -> None:
    """Write what `source` holds now to the new file `target`, by SQLite's own backup.

    All pages are read in one step under one read lock: writers of a write-ahead log go on, and the copy has none of
    what they commit meanwhile. The copy stands alone, without a log beside it.
    """
    with (
        translate(source),
        closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_SECONDS)) as old,
        closing(sqlite3.connect(target, isolation_level=None)) as new,
    ):
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")


def rows_of(path: Path) -> dict[str, int]:
    """Rows by collection that has any, counted in the file; also in one that an older version wrote."""
    with translate(path), closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file:
        held = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "tree" in held:
            counts = dict(file.execute("SELECT name, rows FROM tree WHERE instr(name, '#') = 0").fetchall())
        else:
            counts = {
                name: file.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in NAMES if name in held
            }
        return {name: counts[name] for name in sorted(counts) if counts[name]}
