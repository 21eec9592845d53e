"""A store's file as the first version of HADES wrote it, made without any of today's code.

Tables of the first migration, rows of five collections in the columns they had then, their look-ups, edges by node in
the table that later became pages, full text as it was. Written out by hand on purpose: it must not change with the code
that it is there to test.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
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

LOOKUPS = {
    "documents": ("origin",),
    "entities": ("cluster_id", "name_lower", ""),
    "doc_chunks": ("document", "sha256", ""),
}
FULL_TEXT = {"entities": ("name", "summary"), "doc_chunks": ("title", "text")}


def write_first_form(path: Path, full_text: dict[str, tuple[str, ...]] = FULL_TEXT) -> None:
    """Write the file. Another `full_text` is that of a version in between, which searched other fields."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA page_size=16384")
        file.execute("PRAGMA journal_mode=WAL")
        file.executescript(FIRST_MIGRATION)
        for collection, columns in COLUMNS.items():
            rows = pa.Table.from_pylist(ROWS[collection], schema=pa.schema(list(columns.items())))
            number = _tree(file, collection, rows)
            for field in LOOKUPS.get(collection, ()):
                _tree(file, f"{collection}#{field or 'keys'}", _entries(rows, field))
            if "_from" in columns:
                _by_node(file, number, ROWS[collection])
        for collection, fields in full_text.items():
            _full_text(file, collection, fields)


def _tree(file: sqlite3.Connection, name: str, rows: pa.Table) -> int:
    """A sorted table: its schema as Arrow writes it, its rows as one message without the columns that are all null."""
    number = file.execute("INSERT INTO tree (name, rows) VALUES (?, ?)", (name, rows.num_rows)).lastrowid
    assert number is not None
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
    return number


def _entries(rows: pa.Table, field: str) -> pa.Table:
    """Keys alone, or (value, key) for every row that has a value."""
    keys = rows.column("_key").to_pylist()
    if not field:
        return pa.table({"_key": sorted(keys)})
    pairs = sorted((value, key) for value, key in zip(rows.column(field).to_pylist(), keys, strict=True) if value)
    return pa.table(
        {"_value": pa.array([one for one, _ in pairs], TEXT), "_key": pa.array([k for _, k in pairs], TEXT)}
    )


def _by_node(file: sqlite3.Connection, number: int, edges: list[dict[str, object]]) -> None:
    """Both directions, one row a node here, as the first version kept them."""
    for direction, (near, far) in enumerate((("_from", "_to"), ("_to", "_from"))):
        for edge in edges:
            weight, cost = edge.get("weight"), edge.get("cost")
            file.execute(
                "INSERT INTO adjacency VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                (
                    number * 2 + direction, edge[near], edge["_key"], edge["_key"], edge[far], edge["type"],
                    struct.pack("<d", float("nan") if weight is None else weight),
                    None if cost is None else struct.pack("<d", cost),
                ),
            )  # fmt: skip


def _full_text(file: sqlite3.Connection, collection: str, fields: tuple[str, ...]) -> None:
    names = ", ".join(fields)
    file.execute(
        f"CREATE VIRTUAL TABLE fts_{collection} USING fts5"
        f"({names}, content='', tokenize='porter unicode61 remove_diacritics 2')"
    )
    file.execute(f"CREATE TABLE fts_{collection}_key (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE) STRICT")
    for number, row in enumerate(ROWS[collection], start=1):
        file.execute(f"INSERT INTO fts_{collection}_key VALUES (?, ?)", (number, row["_key"]))
        marks = ", ".join("?" * len(fields))
        texts = [row[field] for field in fields]
        file.execute(f"INSERT INTO fts_{collection} (rowid, {names}) VALUES (?, {marks})", (number, *texts))
