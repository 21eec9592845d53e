"""The embedded store: one SQLite file, many readers, one writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import NotProvisioned, ReadOnly
from hades.ports.store import (
    BATCH_ROWS,
    Changes,
    Direction,
    MarkedRows,
    Mode,
    Predicate,
    ProvisionReport,
    Rows,
    RowStore,
    Term,
    WriteReport,
)
from hades.stores import row_checks
from hades.stores.sqlite import connection as migrations
from hades.stores.sqlite import lookups, pages
from hades.stores.sqlite import lookups as fulltext
from hades.stores.sqlite.connection import Connections
from hades.stores.sqlite.lookups import Registry, hold_part, lookups_of, register
from hades.stores.sqlite.session import Session
from schemas.catalogue import ALL, NAMES, collections_in, names_in, notes_on
from schemas.ids import Mask


class SqliteStore:
    """A `GraphStore` in one file. Each call is its own transaction; `transaction` joins several."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._registry: Registry | None = None

    @classmethod
    def open(cls, path: Path, mode: Mode = Mode.READ_WRITE, busy_seconds: float | None = None) -> Self:
        """A handle on the file, which waits so long for another writer; nothing is created before `provision`."""
        return cls(Connections(path, mode, busy_seconds))

    @property
    def mode(self) -> Mode:
        """What this handle may do."""
        return self._connections.mode

    def provision(self, only: str | None = None) -> ProvisionReport:
        """See `GraphStore.provision`."""
        if self.mode is not Mode.ADMIN:
            raise ReadOnly("provisioning", needed="admin")
        self._connections.path.parent.mkdir(parents=True, exist_ok=True)
        with self._connections.writing() as connection:
            created = migrations.migrate(connection)
            new_trees = register(connection, only)
            self._registry = Registry(connection)
            self._build_lookups(connection, set(new_trees))
            created += [name for name in new_trees if "#" not in name]
            for collection in collections_in(self._registry.part):
                if fulltext.create(connection, collection):
                    for batch in pages.scan(connection, self._registry.rows(collection)):
                        table = pa.Table.from_batches([batch])
                        fulltext.maintain_fulltext(connection, collection, table.slice(0, 0), table)
            notes = notes_on(self._registry.part)
        return ProvisionReport(tuple(created), notes)

    @contextmanager
    def transaction(self, collections: Sequence[str]) -> Iterator[RowStore]:
        """See `GraphStore.transaction`."""
        for name in collections:
            row_checks.require(name)
        with self._writing() as session:
            yield session

    def bulk(
        self, collections: Sequence[str], *, unfinished: Callable[[RowStore], object] | None = None
    ) -> AbstractContextManager[RowStore]:
        """See `GraphStore.bulk`: one transaction, whatever its size, so nothing is ever unfinished."""
        return self.transaction(collections)

    def reading(self) -> AbstractContextManager[RowStore]:
        """See `GraphStore.reading`: one read transaction."""
        return self._reading()

    def upsert(self, collection: str, rows_given: Rows, *, check_rev: bool = False) -> WriteReport:
        """See `RowStore.upsert`."""
        return self._each_batch(rows_given, lambda one, table: one.upsert(collection, table, check_rev=check_rev))

    def patch(self, collection: str, rows_given: Rows) -> WriteReport:
        """See `RowStore.patch`."""
        return self._each_batch(rows_given, lambda one, table: one.patch(collection, table))

    def delete(self, collection: str, *, keys: Iterable[str] = (), where: Predicate = ()) -> int:
        """See `RowStore.delete`."""
        with self._writing() as session:
            return session.delete(collection, keys=keys, where=where)

    def get(
        self, collection: str, keys: Sequence[str], *, columns: Sequence[str] | None = None, with_rev: bool = False
    ) -> pa.Table:
        """See `RowStore.get`."""
        with self._reading() as session:
            return session.get(collection, keys, columns=columns, with_rev=with_rev)

    def scan(
        self,
        collection: str,
        *,
        where: Predicate = (),
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """See `RowStore.scan`."""
        target = row_checks.require(collection)  # bad questions fail now, not at the first batch
        row_checks.check_terms(target, where)
        row_checks.check_columns(target, columns)
        row_checks.check_limit("batch_rows", batch_rows)
        return self._scan(collection, where, columns, batch_rows)

    def _scan(
        self, collection: str, where: Predicate, columns: Sequence[str] | None, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        with self._reading() as session:
            yield from session.scan(collection, where=where, columns=columns, batch_rows=batch_rows)

    def scan_marked(
        self, collection: str, *, columns: Sequence[str], known: AbstractSet[str] = frozenset()
    ) -> Iterator[MarkedRows]:
        """See `RowStore.scan_marked`."""
        with self._reading() as session:
            yield from session.scan_marked(collection, columns=columns, known=known)

    def last(
        self,
        collection: str,
        *,
        same: Term,
        by: str,
        at_most: object,
        limit: int,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """See `RowStore.last`."""
        with self._reading() as session:
            return session.last(collection, same=same, by=by, at_most=at_most, limit=limit, columns=columns)

    def changes(self, collection: str, since: int) -> Changes | None:
        """See `RowStore.changes`."""
        with self._reading() as session:
            return session.changes(collection, since)

    def count(self, collection: str, *, where: Predicate = ()) -> int:
        """See `RowStore.count`."""
        with self._reading() as session:
            return session.count(collection, where=where)

    def search(self, collection: str, text: str, *, limit: int, where: Predicate = ()) -> pa.Table:
        """See `RowStore.search`."""
        with self._reading() as session:
            return session.search(collection, text, limit=limit, where=where)

    def nearest(
        self, collection: str, vector: Sequence[float], *, model: str, limit: int, where: Predicate = ()
    ) -> pa.Table:
        """See `RowStore.nearest`."""
        with self._reading() as session:
            return session.nearest(collection, vector, model=model, limit=limit, where=where)

    def neighbours(
        self,
        nodes: Sequence[str],
        *,
        edges: str = "relations",
        direction: Direction = Direction.OUT,
        types: Sequence[str] | None = None,
        fanout: int,
        mask: Mask = Mask(),
    ) -> pa.Table:
        """See `RowStore.neighbours`."""
        with self._reading() as session:
            return session.neighbours(nodes, edges=edges, direction=direction, types=types, fanout=fanout, mask=mask)

    def counts(self) -> dict[str, int]:
        """See `GraphStore.counts`."""
        with self._connections.reading() as connection:
            registry = self._known(connection)
            held, session = names_in(registry.part), Session(connection, registry, self.mode)
            return {name: session.count(name) if name in held else 0 for name in NAMES}

    def marks(self, collections: Sequence[str]) -> dict[str, str]:
        """See `RowStore.marks`."""
        with self._reading() as session:
            return session.marks(collections)

    def dangling(self) -> dict[str, list[str]]:
        """See `GraphStore.dangling`."""
        found: dict[str, list[str]] = {}
        with self._connections.reading() as connection:
            registry = self._known(connection)
            session = Session(connection, registry, self.mode)
            for collection in collections_in(registry.part):
                if collection.edge is None:
                    continue
                for batch in session.scan(collection.name, columns=["_key", "_from", "_to"]):
                    lost = session.missing_nodes(
                        pc.unique(pa.concat_arrays([batch.column("_from"), batch.column("_to")]))
                    )
                    if len(lost):
                        bad = pc.or_(
                            pc.is_in(batch.column("_from"), value_set=lost),
                            pc.is_in(batch.column("_to"), value_set=lost),
                        )
                        found.setdefault(collection.name, []).extend(batch.column("_key").filter(bad).to_pylist())
        return found

    def check(self) -> list[str]:
        """See `GraphStore.check`."""
        with self._connections.reading() as connection:
            problems = [f"SQLite: {row[0]}" for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            registry = self._known(connection)
            for tree in registry.trees:
                problems += pages.damaged(connection, tree)
                problems += pages.find_miscounts(connection, tree)
            for collection in collections_in(registry.part):
                if collection.edge is not None:
                    problems += lookups.find_miscounts(connection, registry, collection)
        problems += [f"{name}: {len(keys)} edges without an end" for name, keys in self.dangling().items()]
        return problems

    def compact(self, collections: Sequence[str]) -> bool:
        """See `GraphStore.compact`."""
        with self._connections.writing() as connection:
            for name in collections:
                fulltext.optimize(connection, row_checks.require(name))
        return self._connections.vacuum()

    def describe(self) -> dict[str, str]:
        """See `GraphStore.describe`."""
        path = self._connections.path
        facts = {"kind": "sqlite", "path": str(path), "mode": str(self.mode), "sqlite": sqlite3.sqlite_version}
        if path.exists():
            facts["bytes"] = str(path.stat().st_size)
            with self._connections.reading() as connection:
                facts["version"] = str(migrations.version(connection))
                if facts["version"] != "0" and (part := hold_part(connection)) != ALL:
                    facts["holds"] = part
        return facts

    def close(self) -> None:
        """See `GraphStore.close`."""
        self._connections.close()

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        with self._connections.reading() as connection:
            yield Session(connection, self._known(connection), self.mode)

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        with self._connections.writing() as connection:
            yield Session(connection, self._known(connection), self.mode)

    def _each_batch(self, rows_given: Rows, write: Callable[[Session, pa.Table], WriteReport]) -> WriteReport:
        written = batches = 0
        for table in row_checks.as_tables(rows_given):
            with self._writing() as session:
                written += write(session, table).rows
            batches += 1
        return WriteReport(written, batches)

    def _known(self, connection: sqlite3.Connection) -> Registry:
        if self._registry is None:
            if migrations.known_version(connection) == 0:
                raise NotProvisioned(f"{self._connections.path} is not provisioned; run `hades provision`")
            self._registry = Registry(connection)
        return self._registry

    def _build_lookups(self, connection: sqlite3.Connection, new_trees: set[str]) -> None:
        """Fill look-ups that the catalogue gained after rows were written."""
        assert self._registry is not None
        for collection in collections_in(self._registry.part):
            if collection.name in new_trees:
                continue
            for lookup in lookups_of(collection):
                if collection.name + lookup.name not in new_trees:
                    continue
                tree = self._registry.lookup(collection, lookup)
                for batch in pages.scan(connection, self._registry.rows(collection)):
                    entries = lookups.make_entries(tree, collection, lookup, pa.Table.from_batches([batch]))
                    _, grown = pages.write(connection, tree, entries)
                    connection.execute("UPDATE tree SET rows = rows + ? WHERE id = ?", (grown, tree.id))
