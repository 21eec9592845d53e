"""What differs between two states of the file, kept in a file of its own and replayed in one
transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hades.errors import PlanOutdated
from hades.ports.store import RowChange, StateFile
from hades.stores.sqlite.store import BUSY_TIMEOUT_SECONDS, copy_database, translate
from hades.stores.sqlite.tables import REV, quote
from schemas.catalogue import COLLECTIONS, Collection

# Every write of the file has a number, which its rows carry. Of a copy that went on, only rows
# with a later number than that of the copy can differ, so that nothing else is compared.
_REVISION = "SELECT value FROM counter WHERE name = 'revision'"
_LIST = "CREATE TABLE row_changes (collection TEXT, key TEXT, change TEXT, columns TEXT) STRICT"


@dataclass(frozen=True)
class SqliteState(StateFile):
    """The file of an embedded store, as a state that can be copied, compared and changed."""

    path: Path

    def copy(self, target: Path) -> int:
        """See `StateFile.copy`."""
        copy_database(self.path, target)
        with _opened(target) as file:
            revision: int = file.execute(_REVISION).fetchone()[0]

        return revision

    def write_changes(
        self,
        after: Path,
        since: int,
        target: Path,
    ) -> None:
        """See `StateFile.write_changes`."""
        with _opened(target) as file:
            _attach(file, "old", self.path)
            _attach(file, "new", after)
            file.execute("BEGIN")
            file.execute(_LIST)

            for collection in COLLECTIONS:
                _list_changes(file, collection, since)
                _keep_rows(file, collection)

            file.execute("COMMIT")

    def read_changes(self, changes: Path) -> list[RowChange]:
        """See `StateFile.read_changes`."""
        with _opened(changes) as file:
            rows = file.execute("SELECT * FROM row_changes ORDER BY collection, key").fetchall()

        return [
            RowChange(
                collection,
                key,
                change,
                tuple(columns.split()),
            )
            for collection, key, change, columns in rows
        ]

    def replay(self, changes: Path, marks: Mapping[str, str]) -> None:
        """See `StateFile.replay`."""
        with _opened(self.path) as file:
            file.execute("PRAGMA synchronous=FULL")
            _attach(file, "planned", changes)
            file.execute("BEGIN IMMEDIATE")
            moved = _moved(file, marks)

            if moved and not _is_replayed(file):
                file.execute("ROLLBACK")
                names = ", ".join(moved)
                raise PlanOutdated(f"the store moved on since: rows of {names} were written")

            file.execute("UPDATE counter SET value = value + 1 WHERE name = 'revision'")
            for collection in COLLECTIONS:
                _replay_rows(file, collection)

            file.execute("COMMIT")


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection whose transactions are the caller's own; what is not committed is lost."""
    with (
        translate(path),
        closing(
            sqlite3.connect(
                path,
                timeout=BUSY_TIMEOUT_SECONDS,
                isolation_level=None,
            )
        ) as connection,
    ):
        yield connection


def _attach(
    file: sqlite3.Connection,
    name: str,
    path: Path,
) -> None:
    file.execute(f"ATTACH ? AS {name}", [str(path)])


def _columns(collection: Collection) -> list[str]:
    """The columns of a row but its key, as SQL names them."""
    columns = []
    for name in collection.schema.names:
        if name != "_key":
            columns.append(quote(name))

    return columns


def _list_changes(
    file: sqlite3.Connection,
    collection: Collection,
    since: int,
) -> None:
    """Name the rows of a collection that differ; of a changed one, the columns too."""
    table = quote(collection.name)
    columns = _columns(collection)
    differs = " OR ".join(f"new.{name} IS NOT old.{name}" for name in columns)
    column_names = " || ".join(
        f"CASE WHEN new.{name} IS NOT old.{name} THEN '{name.strip(chr(34))} ' ELSE '' END"
        for name in columns
    )
    file.execute(
        "INSERT INTO row_changes SELECT ?, new._key, "
        "CASE WHEN old._key IS NULL THEN 'added' ELSE 'changed' END, "
        f"CASE WHEN old._key IS NULL THEN '' ELSE {column_names} END "
        f"FROM new.{table} AS new LEFT JOIN old.{table} AS old ON old._key = new._key "
        f"WHERE new.{REV} > ? AND (old._key IS NULL OR {differs})",
        [collection.name, since],
    )
    file.execute(
        f"INSERT INTO row_changes SELECT ?, _key, 'removed', '' FROM old.{table} AS old "
        f"WHERE {REV} <= ? AND NOT EXISTS "
        f"(SELECT 1 FROM new.{table} AS new WHERE new._key = old._key)",
        [collection.name, since],
    )


def _keep_rows(file: sqlite3.Connection, collection: Collection) -> None:
    """Keep the rows of a collection that are new or changed, as they will be."""
    names = ", ".join(["_key", *_columns(collection)])
    file.execute(
        f"CREATE TABLE {quote(collection.name)} AS SELECT {names} "
        f"FROM new.{quote(collection.name)} WHERE _key IN (SELECT key FROM row_changes "
        "WHERE collection = ? AND change <> 'removed')",
        [collection.name],
    )


def _moved(file: sqlite3.Connection, marks: Mapping[str, str]) -> list[str]:
    """The collections that were written since they had these marks."""
    revisions = dict(file.execute("SELECT name, value FROM main.counter").fetchall())
    return [name for name, mark in marks.items() if str(revisions.get(name, 0)) != mark]


def _is_replayed(file: sqlite3.Connection) -> bool:
    """Whether the store holds every row as planned: who replayed them was killed afterwards."""
    if not file.execute("SELECT 1 FROM planned.row_changes LIMIT 1").fetchone():
        return False

    for collection in COLLECTIONS:
        names = ", ".join(["_key", *_columns(collection)])
        table = quote(collection.name)
        rows_of_plan = f"SELECT {names} FROM planned.{table}"
        lacking = f"{rows_of_plan} EXCEPT SELECT {names} FROM main.{table}"

        if file.execute(f"SELECT 1 FROM ({lacking}) LIMIT 1").fetchone():
            return False

        removed = (
            "SELECT 1 FROM planned.row_changes WHERE collection = ? AND change = 'removed' "
            f"AND key IN (SELECT _key FROM main.{table}) LIMIT 1"
        )
        if file.execute(removed, [collection.name]).fetchone():
            return False

    return True


def _replay_rows(file: sqlite3.Connection, collection: Collection) -> None:
    """Remove and write the rows of a collection; one that does not change keeps its mark."""
    counted = "SELECT count(*) FROM planned.row_changes WHERE collection = ?"
    if not file.execute(counted, [collection.name]).fetchone()[0]:
        return

    table = quote(collection.name)
    columns = _columns(collection)
    names = ", ".join(["_key", *columns])
    changes = ", ".join(f"{name} = excluded.{name}" for name in [*columns, REV])
    file.execute(
        f"DELETE FROM main.{table} WHERE _key IN (SELECT key FROM planned.row_changes "
        "WHERE collection = ? AND change = 'removed')",
        [collection.name],
    )
    file.execute(
        f"INSERT INTO main.{table} ({names}, {REV}) SELECT {names}, ({_REVISION}) "
        f"FROM planned.{table} WHERE 1 ON CONFLICT (_key) DO UPDATE SET {changes}"
    )
    file.execute(
        f"INSERT OR REPLACE INTO main.counter SELECT ?, ({_REVISION})",
        [collection.name],
    )
