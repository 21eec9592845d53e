"""Which rows of a followed collection changed when, so that an index in another process can catch up."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hades.ports.store import Changes
from hades.stores.sqlite.trees import Tree

MANY = 10_000  # rows in one write; beyond it a reader had better read everything again
KEPT = 20_000  # revisions that the list reaches back
_TIDY_EVERY = 1_000


def record(connection: sqlite3.Connection, tree: Tree, keys: Sequence[str]) -> None:
    """Note the rows of a write inside its transaction, under a revision of their own."""
    revision = connection.execute(
        "UPDATE counter SET value = value + 1 WHERE name = 'revision' RETURNING value"
    ).fetchone()[0]
    if len(keys) > MANY:
        _forget_before(connection, revision)
        return
    connection.executemany(
        "INSERT INTO change (revision, tree, key) VALUES (?, ?, ?)", [(revision, tree.id, key) for key in keys]
    )
    if revision % _TIDY_EVERY == 0:
        _forget_before(connection, revision - KEPT)


def changes(connection: sqlite3.Connection, tree: Tree, since: int) -> Changes | None:
    """The keys of a collection that changed after a revision; None for keys when the list begins later.

    None in all where the file is of a version before the list; `hades provision` adds it.
    """
    counters = dict(connection.execute("SELECT name, value FROM counter").fetchall())
    revision = counters["revision"]
    if "changes_after" not in counters:
        return None
    if since < counters["changes_after"]:
        return Changes(revision, None)
    if since == revision:
        return Changes(revision, [])
    found = connection.execute("SELECT DISTINCT key FROM change WHERE tree = ? AND revision > ?", (tree.id, since))
    return Changes(revision, [key for (key,) in found])


def _forget_before(connection: sqlite3.Connection, revision: int) -> None:
    connection.execute("DELETE FROM change WHERE revision <= ?", (revision,))
    connection.execute("UPDATE counter SET value = max(value, ?) WHERE name = 'changes_after'", (revision,))
