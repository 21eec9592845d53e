"""A store's file as the first version of HADES wrote it, made without any of today's code.

Tables of the first migration, rows of five collections in the columns they had then, a look-up and a full text, which
nobody reads any more. Written out by hand on purpose: it must not change with the code that it is there to test.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pyarrow as pa

FIRST_MIGRATION = """
CREATE TABLE tree (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, rows INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE layout (
  id INTEGER PRIMARY KEY, tree INTEGER NOT NULL, schema BLOB NOT NULL, UNIQUE (tree, schema)
) STRICT;
CREATE TABLE page (
  id INTEGER PRIMARY KEY, tree INTEGER NOT NULL, first TEXT NOT NULL, rows INTEGER NOT NULL,
  layout INTEGER NOT NULL, absent INTEGER NOT NULL, crc INTEGER NOT NULL, data BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX page_by_fence ON page (tree, first);
CREATE TABLE adjacency (
  tree INTEGER NOT NULL, node TEXT NOT NULL, first TEXT NOT NULL,
  edges TEXT NOT NULL, ends TEXT NOT NULL, types TEXT NOT NULL, weights BLOB NOT NULL, costs BLOB, bounds BLOB,
  PRIMARY KEY (tree, node, first)
) STRICT, WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO counter VALUES ('revision', 5);
PRAGMA user_version = 1;
"""

FULL_TEXT = """
CREATE VIRTUAL TABLE fts_entities USING fts5(name, content='', tokenize='porter unicode61 remove_diacritics 2');
CREATE TABLE fts_entities_key (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE) STRICT;
INSERT INTO fts_entities_key VALUES (1, 'e1');
INSERT INTO fts_entities (rowid, name) VALUES (1, 'Ada Lovelace');
"""

TEXT, WHOLE, REAL, TIME = pa.string(), pa.int64(), pa.float64(), pa.timestamp("us", tz="UTC")
TEXTS, VECTOR, NUMBERS = pa.list_(pa.string()), pa.list_(pa.float32()), pa.list_(pa.int64())
PARTS = pa.struct([(name, REAL) for name in ("sim", "type_prior", "evidence", "freshness")])
BOUNDS = dict.fromkeys(("valid_from", "valid_until", "recorded_at", "retracted_at"), TIME)
EDGE = {"_key": TEXT, "_from": TEXT, "_to": TEXT, **BOUNDS}

COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "documents": {
        "_key": TEXT, "origin": TEXT, "source": TEXT, "uri": TEXT, "title": TEXT, "mime": TEXT, "text": TEXT,
        "sha256": TEXT, "created": TIME, "facts": TEXT, "metadata": TEXT, "_rev": WHOLE,
    },
    "entities": {
        "_key": TEXT, "name": TEXT, "name_lower": TEXT, "type": TEXT, "layer": WHOLE, "cluster_id": TEXT,
        "prev_cluster_id": TEXT, "embedding": VECTOR, "embedding_model": TEXT, "summary": TEXT, "deg_out": WHOLE,
        "domain": TEXT, "canonical_name": TEXT, "aliases": TEXTS, "frequency": WHOLE, "entity_type": TEXT,
        "confidence": REAL, "metadata": TEXT, "_rev": WHOLE,
    },
    "doc_chunks": {
        "_key": TEXT, "document": TEXT, "text": TEXT, "span": NUMBERS, "chunk_index": WHOLE, "kind": TEXT,
        "headings": TEXTS, "title": TEXT, "token_count": WHOLE, "file_path": TEXT, "timestamp": TIME, "sha256": TEXT,
        "embedding": VECTOR, "embedding_model": TEXT, "metadata": TEXT, "_rev": WHOLE,
    },
    "relations": {
        **EDGE, "type": TEXT, "weight": REAL, "weight_components": PARTS, "cost": REAL, "layer_bridge": pa.bool_(),
        "sim": REAL, "created": TIME, "provenance": pa.struct([("doc", TEXT), ("span", NUMBERS)]), "label": TEXT,
        "evidence_count": WHOLE, "strength": REAL, "co_occurrence_count": WHOLE, "metadata": TEXT, "_rev": WHOLE,
    },
    "mentions": {**EDGE, "type": TEXT, "weight": REAL, "count": WHOLE, "positions": NUMBERS, "_rev": WHOLE},
}  # fmt: skip

PAGE = "Ada wrote to Charles."
SHA256 = hashlib.sha256(PAGE.encode()).hexdigest()
ROWS: dict[str, list[dict[str, object]]] = {
    "documents": [
        {
            "_key": "d1", "origin": "page.md", "source": "documents", "uri": "", "title": "", "mime": "text/plain",
            "text": PAGE, "sha256": SHA256, "facts": "{}", "metadata": "{}", "_rev": 1,
        },
    ],
    "entities": [
        {
            "_key": key, "name": name, "name_lower": name.lower(), "type": kind, "layer": 0, "embedding": vector,
            "embedding_model": "m@1/2", "summary": summary, "deg_out": 0, "canonical_name": "", "aliases": [],
            "frequency": 0, "metadata": "{}", "_rev": 2,
        }
        for key, name, kind, vector, summary in (
            ("e1", "Ada Lovelace", "person", [1.0, 0.0], "first programmer"),
            ("e2", "Charles Babbage", "person", [0.0, 1.0], "inventor"),
            ("e3", "Difference Engine", "concept", [0.6, 0.8], ""),
        )
    ],
    "doc_chunks": [
        {
            "_key": "c1", "document": "documents/d1", "text": PAGE, "span": [0, 21],
            "chunk_index": 0, "kind": "prose", "headings": [], "title": "", "token_count": 6, "file_path": "",
            "sha256": SHA256, "metadata": "{}", "_rev": 3,
        },
    ],
    "relations": [
        {
            "_key": key, "_from": tail, "_to": head, "type": kind, "weight": weight, "cost": cost,
            "layer_bridge": False, "label": "", "evidence_count": 1, "metadata": "{}", "_rev": 4,
        }
        for key, tail, head, kind, weight, cost in (
            ("r1", "entities/e1", "entities/e2", "related_to", 0.9, 0.1),
            ("r2", "entities/e2", "entities/e3", "refers_to", 0.4, 0.9),
        )
    ],
    "mentions": [
        {
            "_key": "m1", "_from": "doc_chunks/c1", "_to": "entities/e1", "type": "mentions", "count": 1,
            "positions": [], "_rev": 5,
        },
    ],
}  # fmt: skip


def write_first_form(path: Path) -> None:
    """Write the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA page_size=16384")
        file.execute("PRAGMA journal_mode=WAL")
        file.executescript(FIRST_MIGRATION)
        for collection, columns in COLUMNS.items():
            _tree(file, collection, pa.Table.from_pylist(ROWS[collection], schema=pa.schema(list(columns.items()))))
        _tree(file, "entities#keys", pa.table({"_key": [row["_key"] for row in ROWS["entities"]]}))
        file.executescript(FULL_TEXT)


def _tree(file: sqlite3.Connection, name: str, rows: pa.Table) -> None:
    """A sorted table: its schema as Arrow writes it, its rows as one message without the columns that are all null."""
    number = file.execute("INSERT INTO tree (name, rows) VALUES (?, ?)", (name, rows.num_rows)).lastrowid
    layout = file.execute(
        "INSERT INTO layout (tree, schema) VALUES (?, ?)", (number, rows.schema.serialize().to_pybytes())
    ).lastrowid
    if rows.num_rows:
        empty = [at for at, column in enumerate(rows.columns) if column.null_count == rows.num_rows]
        batch = rows.select([at for at in range(rows.num_columns) if at not in empty]).combine_chunks().to_batches()[0]
        data = batch.serialize().to_pybytes()
        absent = sum(1 << at for at in empty)
        file.execute(
            "INSERT INTO page (tree, first, rows, layout, absent, crc, data) VALUES (?, '', ?, ?, ?, ?, ?)",
            (number, rows.num_rows, layout, absent, zlib.crc32(data), data),
        )
