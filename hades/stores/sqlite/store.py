"""The embedded store: one SQLite file, many readers, one writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

from hades.errors import NotProvisioned, ReadOnly
from hades.ports.store import Mode, ProvisionReport, RowStore
from hades.stores import row_checks
from hades.stores.sqlite import tables
from hades.stores.sqlite.connection import VERSION, Connections, known_version
from hades.stores.sqlite.session import Lend, SqliteRows, rows_through
from schemas.catalogue import ALL, NAMES, collections_in, names_in, notes_on, part_of

_OWN_TABLES = (
    "CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    "INSERT OR IGNORE INTO counter VALUES ('revision', 0)",
)


class SqliteStore(SqliteRows):
    """A `GraphStore` in one file. Each call is its own transaction; `transaction` joins several."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(
            connections.mode, lambda: self._checked(connections.reading), lambda: self._checked(connections.writing)
        )
        self._connections = connections
        self._part: str | None = None

    @classmethod
    def open(cls, path: Path, mode: Mode = Mode.READ_WRITE, busy_seconds: float | None = None) -> Self:
        """A handle on the file, which waits so long for another writer; nothing is created before `provision`."""
        return cls(Connections(path, mode, busy_seconds))

    def provision(self, only: str | None = None) -> ProvisionReport:
        """See `GraphStore.provision`."""
        if self.mode is not Mode.ADMIN:
            raise ReadOnly("provisioning", needed="admin")
        self._connections.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connections.writing() as connection:
            is_former = 0 < known_version(connection) < VERSION
            part = only or part_of(tables.collections_in_pages(connection) if is_former else _names(connection))
            tables.drop_fulltext(connection)
            for statement in _OWN_TABLES:
                connection.execute(statement)
            created = [one.name for one in collections_in(part) if tables.create_table(connection, one)]
            if is_former:
                tables.move_rows(connection)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            part = part_of(_names(connection))
        return ProvisionReport(tuple(created), notes_on(part))

    @contextmanager
    def transaction(self, collections: Sequence[str]) -> Iterator[RowStore]:
        """See `GraphStore.transaction`."""
        for name in collections:
            row_checks.require(name)
        with self._writing() as connection:
            yield rows_through(connection, self.mode)

    def bulk(
        self, collections: Sequence[str], *, unfinished: Callable[[RowStore], object] | None = None
    ) -> AbstractContextManager[RowStore]:
        """See `GraphStore.bulk`: one transaction, whatever its size, so nothing is ever unfinished."""
        return self.transaction(collections)

    @contextmanager
    def reading(self) -> Iterator[RowStore]:
        """See `GraphStore.reading`: one read transaction."""
        with self._reading() as connection:
            yield rows_through(connection, self.mode)

    def counts(self) -> dict[str, int]:
        """See `GraphStore.counts`."""
        with self._connections.reading() as connection:
            held = names_in(self._check_form(connection))
            session = rows_through(connection, self.mode)
            return {name: session.count(name) if name in held else 0 for name in NAMES}

    def dangling(self) -> dict[str, list[str]]:
        """See `GraphStore.dangling`."""
        found = {}
        with self._connections.reading() as connection:
            for collection in collections_in(self._check_form(connection)):
                if collection.edge is None:
                    continue
                ends = (("_from", collection.edge.sources), ("_to", collection.edge.targets))
                keys = {key for end, homes in ends for key in _without_end(connection, collection.name, end, homes)}
                if keys:
                    found[collection.name] = sorted(keys)
        return found

    def check(self) -> list[str]:
        """See `GraphStore.check`."""
        with self._connections.reading() as connection:
            problems = [f"SQLite: {row[0]}" for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            part = self._check_form(connection)
            session = rows_through(connection, self.mode)
            for collection in collections_in(part):
                problems += row_checks.find_bad_rows(collection, session.scan(collection.name))
        problems += [f"{name}: {len(keys)} edges without an end" for name, keys in self.dangling().items()]
        return problems

    def compact(self) -> bool:
        """See `GraphStore.compact`."""
        with self._connections.writing() as connection:
            tables.drop_fulltext(connection)
        return self._connections.vacuum()

    def describe(self) -> dict[str, str]:
        """See `GraphStore.describe`."""
        path = self._connections.path
        facts = {"kind": "sqlite", "path": str(path), "mode": str(self.mode), "sqlite": sqlite3.sqlite_version}
        if path.exists():
            facts["bytes"] = str(path.stat().st_size)
            with self._connections.reading() as connection:
                facts["version"] = str(known_version(connection))
                if facts["version"] != "0" and (part := part_of(_names(connection))) != ALL:
                    facts["holds"] = part
        return facts

    def close(self) -> None:
        """See `GraphStore.close`."""
        self._connections.close()

    @contextmanager
    def _checked(self, lend: Lend) -> Iterator[sqlite3.Connection]:
        with lend() as connection:
            self._check_form(connection)
            yield connection

    def _check_form(self, connection: sqlite3.Connection) -> str:
        """What the file was made for; looked at once, and refused where it is not as the catalogue declares."""
        if self._part is None:
            if known_version(connection) < VERSION:
                raise NotProvisioned(f"{self._connections.path} is not provisioned; run `hades provision`")
            part = part_of(_names(connection))
            for collection in collections_in(part):
                lacking = set(collection.schema.names).difference(tables.table_columns(connection, collection.name))
                if lacking:
                    raise NotProvisioned(
                        f"{collection.name} lacks {', '.join(sorted(lacking))}, which the catalogue declares; "
                        "run `hades provision`"
                    )
            self._part = part
        return self._part


def _names(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _without_end(connection: sqlite3.Connection, edges: str, end: str, homes: Sequence[str]) -> set[str]:
    """Keys of edges of which one end is in none of the collections that may hold it."""
    there = " OR ".join(
        f"({end} LIKE '{home}/%' AND EXISTS (SELECT 1 FROM \"{home}\" AS home "
        f"WHERE home._key = substr(edges.{end}, {len(home) + 2})))"
        for home in homes
    )
    return {key for (key,) in connection.execute(f'SELECT _key FROM "{edges}" AS edges WHERE NOT ({there})')}
