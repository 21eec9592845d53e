"""Ordered changes to the file's own tables, each applied once, each in a transaction."""

from __future__ import annotations

import sqlite3

from hades.errors import StoreError

# Collections are data here, not tables: a new field or index needs no migration (see registry.py). Append only.
MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        "pages",
        """
        CREATE TABLE tree (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, rows INTEGER NOT NULL DEFAULT 0) STRICT;
        CREATE TABLE layout (
          id INTEGER PRIMARY KEY, tree INTEGER NOT NULL, schema BLOB NOT NULL, UNIQUE (tree, schema)
        ) STRICT;
        CREATE TABLE page (
          id INTEGER PRIMARY KEY, tree INTEGER NOT NULL, first TEXT NOT NULL, rows INTEGER NOT NULL,
          layout INTEGER NOT NULL, absent INTEGER NOT NULL, crc INTEGER NOT NULL, data BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX page_by_fence ON page (tree, first);
        CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        INSERT INTO counter VALUES ('revision', 0);
        """,
    ),
    # The first files kept edges by node in a table of its own; they are look-ups of pages since, built from the rows.
    ("edges by node are pages", "DROP TABLE IF EXISTS adjacency;"),
    (
        "changes of followed collections",
        """
        CREATE TABLE change (revision INTEGER NOT NULL, tree INTEGER NOT NULL, key TEXT) STRICT;
        CREATE INDEX change_by_tree ON change (tree, revision);
        INSERT INTO counter SELECT 'changes_after', value FROM counter WHERE name = 'revision';
        """,
    ),
)


def migrate(connection: sqlite3.Connection) -> list[str]:
    """Bring the file to the newest version; the names of what was applied. The caller holds the transaction."""
    current = known_version(connection)
    applied = []
    for number, (name, script) in enumerate(MIGRATIONS[current:], start=current + 1):
        for statement in script.split(";"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {number:d}")
        applied.append(f"migration {number} ({name})")
    return applied


def known_version(connection: sqlite3.Connection) -> int:
    """The file's version; one that a later HADES wrote is refused, because nobody here knows what it means."""
    current = version(connection)
    if current > len(MIGRATIONS):
        raise StoreError(
            f"the file is at version {current}, this HADES knows {len(MIGRATIONS)}; upgrade HADES or use the older file"
        )
    return current


def version(connection: sqlite3.Connection) -> int:
    """The number of migrations the file has seen."""
    number: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return number
