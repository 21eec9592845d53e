"""Full text by FTS5: an index without a copy of the text, kept in step with the rows."""

from __future__ import annotations

import re
import sqlite3

import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import BadQuery
from hades.text.identifiers import with_identifiers
from schemas.catalogue import Collection

_WORD = re.compile(r"\w+")


def create(connection: sqlite3.Connection, collection: Collection) -> bool:
    """Create the index of a collection with text, or rebuild it when its fields changed; whether it is empty."""
    held = tuple(name for _, name, *_ in connection.execute(f"PRAGMA table_info({_table(collection)})"))
    if held == collection.text_fields:
        return False
    if held:
        connection.execute(f"DROP TABLE {_table(collection)}")
        connection.execute(f"DROP TABLE {_table(collection)}_key")
    if not collection.text_fields:
        return False
    fields = ", ".join(collection.text_fields)
    connection.execute(
        f"CREATE VIRTUAL TABLE {_table(collection)} USING fts5"
        f"({fields}, content='', tokenize='porter unicode61 remove_diacritics 2')"
    )
    connection.execute(
        f"CREATE TABLE {_table(collection)}_key (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE) STRICT"
    )
    return True


def maintain(connection: sqlite3.Connection, collection: Collection, old: pa.Table, new: pa.Table | None) -> None:
    """Make the index follow a change of rows from `old` to `new`; rows whose text stayed are left alone."""
    if not collection.text_fields:
        return
    columns = ["_key", *collection.text_fields]
    old, new = old.select(columns), new.select(columns) if new is not None else None
    if new is not None and old.num_rows:
        same = _find_unchanged(old, new)
        if same:
            kept = pa.array(sorted(same))
            old = old.filter(pc.invert(pc.is_in(old.column("_key"), value_set=kept)))
            new = new.filter(pc.invert(pc.is_in(new.column("_key"), value_set=kept)))
    if old.num_rows:
        _remove(connection, collection, old)
    if new is not None and new.num_rows:
        _add(connection, collection, new)


def search(connection: sqlite3.Connection, collection: Collection, text: str) -> list[tuple[str, float]]:
    """Every matching key with its BM25 (higher is better), best first, then by key."""
    if not collection.text_fields:
        raise BadQuery(f"{collection.name} has no text fields to search; declare them in schemas/catalogue.py")
    if not text.strip():
        raise BadQuery("the text to search for is empty")
    words = dict.fromkeys(_WORD.findall(with_identifiers(text)))
    if not words:
        return []
    table = _table(collection)
    return connection.execute(
        f"SELECT k.key, -bm25({table}) AS score FROM {table} JOIN {table}_key AS k ON k.id = {table}.rowid "
        f"WHERE {table} MATCH ? ORDER BY score DESC, k.key",
        (" OR ".join(f'"{word}"' for word in words),),
    ).fetchall()


def optimize(connection: sqlite3.Connection, collection: Collection) -> None:
    """Merge the index into one segment, which drops the words of rows that were removed."""
    if collection.text_fields:
        connection.execute(f"INSERT INTO {_table(collection)} ({_table(collection)}) VALUES ('optimize')")


def _find_unchanged(old: pa.Table, new: pa.Table) -> set[str]:
    before = dict(zip(old.column("_key").to_pylist(), zip(*_texts(old), strict=True), strict=True))
    after = zip(new.column("_key").to_pylist(), zip(*_texts(new), strict=True), strict=True)
    return {key for key, texts in after if before.get(key) == texts}


def _texts(rows: pa.Table) -> list[list[str]]:
    return [pc.fill_null(column, "").to_pylist() for column in rows.columns[1:]]


def _add(connection: sqlite3.Connection, collection: Collection, rows: pa.Table) -> None:
    table = _table(collection)
    top = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}_key").fetchone()[0]
    ids = range(top + 1, top + 1 + rows.num_rows)
    connection.executemany(
        f"INSERT INTO {table}_key (id, key) VALUES (?, ?)", zip(ids, rows.column("_key").to_pylist(), strict=True)
    )
    names, marks = ", ".join(collection.text_fields), ", ".join("?" * len(collection.text_fields))
    connection.executemany(
        f"INSERT INTO {table} (rowid, {names}) VALUES (?, {marks})", zip(ids, *_texts(rows), strict=True)
    )


def _remove(connection: sqlite3.Connection, collection: Collection, rows: pa.Table) -> None:
    table = _table(collection)
    ids = [
        connection.execute(f"DELETE FROM {table}_key WHERE key = ? RETURNING id", (key,)).fetchone()[0]
        for key in rows.column("_key").to_pylist()
    ]
    names, marks = ", ".join(collection.text_fields), ", ".join("?" * len(collection.text_fields))
    # An index without content must be told the very text that it forgets.
    connection.executemany(
        f"INSERT INTO {table} ({table}, rowid, {names}) VALUES ('delete', ?, {marks})",
        zip(ids, *_texts(rows), strict=True),
    )


def _table(collection: Collection) -> str:
    return f"fts_{collection.name}"
