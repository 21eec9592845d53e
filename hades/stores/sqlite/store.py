"""The embedded store: one SQLite file, many readers, one writer."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Self

from hades.errors import NotProvisioned, ReadOnly, StoreBusy, StoreDamaged, StoreError
from hades.files import explain_full_disk
from hades.ports.store import GraphStore, Mode, ProvisionReport, RowStore
from hades.stores import row_checks
from hades.stores.sqlite import tables
from hades.stores.sqlite.session import Lend, SqliteRows, rows_through
from schemas.catalogue import ALL, NAMES, collections_in, names_in, notes_on, part_of

BUSY_TIMEOUT_SECONDS = 60.0
# Rows hold texts and vectors: with large pages few of them spill over.
_DATABASE_PAGE_BYTES = 16_384
_SHARED_MEMORY_BYTES = 65_536
_WRITER_CACHE_KIB, _READER_CACHE_KIB = 65_536, 32_768  # the system caches the file as well


class Connections:
    """Opens, lends and closes connections. Readers see the last commit; the one writer begins at
    once or waits.
    """

    def __init__(
        self,
        path: Path,
        mode: Mode,
        busy_seconds: float | None = None,
    ) -> None:
        """`busy_seconds` is how long to wait for another writer."""
        self.path = path
        self.mode = mode
        self._busy_seconds = BUSY_TIMEOUT_SECONDS if busy_seconds is None else busy_seconds
        # Threads take from it and add to it without a lock.
        self._idle: deque[sqlite3.Connection] = deque()
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

        self._idle.append(connection)
        if self._closed:
            self._close_idle()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writer inside an immediate transaction: committed at the end, rolled back on any
        exception.
        """
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
        """Rewrite the file without free pages and empty its log; False when another process reads
        the log.
        """
        self._close_idle()
        with self._writer_lock, self._translate():
            connection = self._writer = self._writer or self._open(_WRITER_CACHE_KIB)
            connection.execute("VACUUM")
            is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

        return not is_busy

    def close(self) -> None:
        """Close every idle connection; borrowed ones close when they come back."""
        self._closed = True
        self._close_idle()

        with self._writer_lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _borrow(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"{self.path} was closed; open the store again")

        try:
            return self._idle.pop()
        except IndexError:
            return self._open(_READER_CACHE_KIB)

    def _open(self, cache_kib: int) -> sqlite3.Connection:
        if self.mode is not Mode.ADMIN and not self.path.exists():
            raise NotProvisioned(f"there is no store at {self.path}; run `hades provision`")

        access = "ro" if self.mode is Mode.READ_ONLY else "rwc"
        if access == "ro" and self._is_frozen():
            frozen = "&immutable=1"
        else:
            frozen = ""

        with self._translate():
            connection = sqlite3.connect(
                f"{self.path.resolve().as_uri()}?mode={access}{frozen}",
                uri=True,
                timeout=self._busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            if access == "rwc":
                connection.execute(f"PRAGMA page_size={_DATABASE_PAGE_BYTES}")
                connection.execute("PRAGMA journal_mode=WAL")
                # FULL: a commit survives the machine, not only the process; bulk writes make few
                # commits.
                connection.execute("PRAGMA synchronous=FULL")

            connection.execute(f"PRAGMA cache_size=-{cache_kib}")
            connection.execute("PRAGMA temp_store=MEMORY")

        return connection

    def _is_frozen(self) -> bool:
        """Whether nobody can write and no log is waiting: then the file is read as it stands.

        Readers of the log share memory in a file, for which a full disk has no room.
        """
        log = self.path.with_name(f"{self.path.name}-wal")
        has_log = log.exists() and log.stat().st_size > 0
        return not has_log and shutil.disk_usage(self.path.parent).free < _SHARED_MEMORY_BYTES

    def _translate(self) -> AbstractContextManager[None]:
        return translate(self.path, self._busy_seconds)


@contextmanager
def translate(
    path: Path,
    busy_seconds: float = BUSY_TIMEOUT_SECONDS,
) -> Iterator[None]:
    """SQLite's errors as ours, naming the file and the next step."""
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise StoreBusy(
                f"{path} was held by another writer for {busy_seconds:g} s; try again"
            ) from error

        if "no such table" in text:
            raise NotProvisioned(
                f"{path} is not provisioned ({text}); run `hades provision`"
            ) from error

        if "readonly" in text:
            raise ReadOnly(f"writing to {path}") from error

        if "disk" in text:
            full = explain_full_disk(path.parent)
        else:
            full = None

        raise StoreError(full or f"{path}: {text}; run `hades doctor`") from error
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(
            f"{path}: {error}; restore a backup or rebuild the store from its sources"
        ) from error


VERSION = 4  # of the file's own form; a new file has 0


def known_version(connection: sqlite3.Connection) -> int:
    """The file's version, or 0; one that another HADES wrote is refused, because nobody here knows
    what it means.
    """
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if number not in (0, VERSION):
        step = "upgrade HADES or use the older file"
        if number < VERSION:
            step = (
                "keep its memory with `hades export DIR --only memory` of the HADES that wrote "
                "it, move the file away, "
            )
            step += "build again and `hades import DIR`"

        raise StoreError(f"the file is at version {number}, this HADES knows {VERSION}; {step}")

    return number


_BEGINNING = b"SQLite format 3\x00"


def copy_as_of_now(source: Path, target: Path) -> None:
    """Copy a file of any kind to the new file `target`; a database as it is at one moment."""
    with source.open("rb") as file:
        is_database = file.read(len(_BEGINNING)) == _BEGINNING

    (copy_database if is_database else shutil.copy2)(source, target)


def copy_database(source: Path, target: Path) -> None:
    """Write what `source` holds now to the new file `target`, by SQLite's own backup.

    All pages are read in one step under one read lock: writers of a write-ahead log go on, and the
    copy has none of what they commit meanwhile. The copy stands alone, without a log beside it.
    """
    with (
        translate(source),
        closing(
            sqlite3.connect(
                f"{source.resolve().as_uri()}?mode=ro",
                uri=True,
                timeout=BUSY_TIMEOUT_SECONDS,
            )
        ) as old,
        closing(sqlite3.connect(target, isolation_level=None)) as new,
    ):
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")


def rows_of(path: Path) -> dict[str, int]:
    """Rows by collection that has any, counted in the file."""
    with (
        translate(path),
        closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as file,
    ):
        counts = {}
        for name in sorted(_names(file).intersection(NAMES)):
            counts[name] = file.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]

        return {name: count for name, count in counts.items() if count}


_OWN_TABLES = (
    "CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, "
    "WITHOUT ROWID",
    "INSERT OR IGNORE INTO counter VALUES ('revision', 0)",
)


class SqliteStore(SqliteRows, GraphStore):
    """A `GraphStore` in one file. Each call is its own transaction; `transaction` joins several."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(
            lambda: self._checked(connections.reading),
            lambda: self._checked(connections.writing),
        )
        self._connections = connections
        self._part: str | None = None

    @classmethod
    def open(
        cls,
        path: Path,
        mode: Mode = Mode.READ_WRITE,
        busy_seconds: float | None = None,
    ) -> Self:
        """A handle on the file, which waits so long for another writer; nothing is created before
        `provision`.
        """
        return cls(Connections(path, mode, busy_seconds))

    def provision(
        self,
        only: str | None = None,
        *,
        replicas: int | None = None,
    ) -> ProvisionReport:
        if self._connections.mode is not Mode.ADMIN:
            raise ReadOnly("provisioning", needed="admin")

        if replicas is not None:
            raise StoreError(
                "copies of rows are for a cluster of ArangoDB and this store is one file; set "
                "HADES_STORE=arango, or leave --replicas out"
            )

        self._connections.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connections.writing() as connection:
            known_version(connection)
            part = only or part_of(_names(connection))
            for statement in _OWN_TABLES:
                connection.execute(statement)

            created = []
            for collection in collections_in(part):
                if tables.create_table(connection, collection):
                    created.append(collection.name)

            connection.execute(f"PRAGMA user_version = {VERSION}")
            part = part_of(_names(connection))

        return ProvisionReport(tuple(created), notes_on(part))

    @contextmanager
    def transaction(self, collections: Sequence[str]) -> Iterator[RowStore]:
        for name in collections:
            row_checks.require(name)

        with self._writing() as connection:
            yield rows_through(connection)

    def bulk(
        self,
        collections: Sequence[str],
        *,
        unfinished: Callable[[RowStore], object] | None = None,
    ) -> AbstractContextManager[RowStore]:
        """See `GraphStore.bulk`: one transaction, whatever its size, so nothing is ever
        unfinished.
        """
        return self.transaction(collections)

    @contextmanager
    def reading(self) -> Iterator[RowStore]:
        """See `GraphStore.reading`: one read transaction."""
        with self._reading() as connection:
            yield rows_through(connection)

    def counts(self) -> dict[str, int]:
        with self._connections.reading() as connection:
            names = names_in(self._check_form(connection))
            session = rows_through(connection)
            return {name: session.count(name) if name in names else 0 for name in NAMES}

    def dangling(self) -> dict[str, list[str]]:
        with self._connections.reading() as connection:
            return row_checks.dangling(rows_through(connection), self._check_form(connection))

    def check(self) -> list[str]:
        with self._connections.reading() as connection:
            problems = []
            for row in connection.execute("PRAGMA integrity_check"):
                if row[0] != "ok":
                    problems.append(f"SQLite: {row[0]}")

            part = self._check_form(connection)
            return [*problems, *row_checks.find_problems(rows_through(connection), part)]

    def compact(self) -> bool:
        return self._connections.vacuum()

    def describe(self) -> dict[str, str]:
        path = self._connections.path
        mode = str(self._connections.mode)
        facts = {
            "kind": "sqlite",
            "path": str(path),
            "mode": mode,
            "sqlite": sqlite3.sqlite_version,
        }

        if path.exists():
            facts["bytes"] = str(path.stat().st_size)
            with self._connections.reading() as connection:
                facts["version"] = str(known_version(connection))
                if facts["version"] != "0" and (part := part_of(_names(connection))) != ALL:
                    facts["holds"] = part

        return facts

    def close(self) -> None:
        self._connections.close()

    @contextmanager
    def _checked(self, lend: Lend) -> Iterator[sqlite3.Connection]:
        with lend() as connection:
            self._check_form(connection)
            yield connection

    def _check_form(self, connection: sqlite3.Connection) -> str:
        """What the file was made for; looked at once, and refused where it is not as the catalogue
        declares.
        """
        if self._part is None:
            if known_version(connection) < VERSION:
                raise NotProvisioned(
                    f"{self._connections.path} is not provisioned; run `hades provision`"
                )

            part = part_of(_names(connection))
            for collection in collections_in(part):
                lacking = set(collection.schema.names).difference(
                    tables.table_columns(connection, collection.name)
                )
                if lacking:
                    raise NotProvisioned(
                        f"{collection.name} lacks {', '.join(sorted(lacking))}, which the "
                        "catalogue declares; run `hades provision`"
                    )

            self._part = part

        return self._part


def _names(connection: sqlite3.Connection) -> set[str]:
    names = set()
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        names.add(name)

    return names
