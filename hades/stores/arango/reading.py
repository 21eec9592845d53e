"""Rows by key, by predicate, and how many: what crosses the wire is only the columns asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from aql import load
from hades.ports.store import Predicate, Term
from hades.stores import questions, rows
from hades.stores.arango import encode
from hades.stores.arango.client import PATIENCE_S, Binds
from hades.stores.arango.cursors import Ask
from hades.stores.arango.scope import Scope, chunks
from hades.stores.arango.terms import Condition, Kind, bound_value, condition
from schemas.catalogue import NAMES, Collection

KEYS_PER_QUERY = 5_000


def get(
    scope: Scope, collection: Collection, keys: Sequence[str], columns: Sequence[str] | None, with_rev: bool
) -> pa.Table:
    """See `RowStore.get`."""
    names = [*questions.check_columns(collection, columns), *([rows.REV] if with_rev else [])]
    tables = [encode.schema_of(collection, names).empty_table()]
    for some in chunks(sorted(set(keys)), KEYS_PER_QUERY):
        documents = scope.query(
            load("rows/get_rows"),
            {"@collection": collection.name, "keys": list(some), "columns": names},
            f"reading {collection.name} by key",
        )
        tables.append(encode.to_table(collection, documents, names))
    table = pa.concat_tables(tables).combine_chunks()
    return table.take(pc.sort_indices(table.column("_key")))


def scan(
    scope: Scope, collection: Collection, where: Predicate, columns: Sequence[str] | None, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """See `RowStore.scan`; a bad question is refused here, before the first batch is asked for."""
    narrowed = condition(collection, where)
    names = questions.check_columns(collection, columns)
    questions.check_limit("batch_rows", batch_rows)
    binds = {"@collection": collection.name, "columns": names, **narrowed.binds}

    def ask(after: str | None) -> tuple[str, Binds]:
        if narrowed.kind != "all":
            return _scan_text(narrowed.kind), {**binds, "after": after}
        if after is None:
            return _scan_text("all"), binds
        return _scan_text("where"), {**binds, "terms": [], "after": after}

    return _scan(scope, collection, ask, names, batch_rows)


def last(
    scope: Scope,
    collection: Collection,
    same: Term,
    by: str,
    at_most: object,
    limit: int,
    columns: Sequence[str] | None,
) -> pa.Table:
    """See `RowStore.last`."""
    equality, bound = questions.check_last(collection, same, by, at_most)
    questions.check_limit("limit", limit)
    names = questions.check_columns(collection, columns)
    binds = {
        "@collection": collection.name,
        "column": equality.column,
        "value": bound_value(collection, equality),
        "by": by,
        "high": bound_value(collection, bound),
        "limit": limit,
        "columns": names,
    }
    documents = scope.query(load("rows/list_last"), binds, f"reading the last rows of {collection.name}")
    return encode.to_table(collection, documents, names)


def count(scope: Scope, collection: Collection, where: Predicate) -> int:
    """See `RowStore.count`."""
    narrowed = condition(collection, where)
    binds = {"@collection": collection.name, **narrowed.binds}
    return int(scope.query(_count_text(narrowed.kind), binds, f"counting {collection.name}")[0])


def count_collections(scope: Scope) -> dict[str, int]:
    """How many rows each collection of the catalogue has, in one query; see `GraphStore.counts`."""
    counts = scope.query(load("rows/count_collections"), {}, "counting rows")[0]
    return {name: int(counts[name]) for name in NAMES}


def keys_where(scope: Scope, collection: Collection, narrowed: Condition) -> list[str]:
    """Keys of the rows that satisfy a predicate, in key order."""
    binds = {"@collection": collection.name, "columns": ["_key"], **narrowed.binds}
    if narrowed.kind != "all":
        binds["after"] = None
    patient = replace(scope, runtime_s=PATIENCE_S)
    found = patient.query(_scan_text(narrowed.kind), binds, f"looking for rows of {collection.name}")
    return [row["_key"] for row in found]


def missing_keys(scope: Scope, collection: str, keys: Sequence[str]) -> set[str]:
    """Which of these keys name no row of the collection."""
    missing: set[str] = set()
    for some in chunks(keys, KEYS_PER_QUERY):
        binds = {"@collection": collection, "keys": list(some)}
        missing.update(scope.query(load("rows/list_missing"), binds, f"looking for rows of {collection}"))
    return missing


def revisions(scope: Scope, collection: Collection, keys: Sequence[str]) -> dict[str, str]:
    """The revision of each row that exists among these keys."""
    found: dict[str, str] = {}
    for some in chunks(keys, KEYS_PER_QUERY):
        binds = {"@collection": collection.name, "keys": list(some)}
        found.update(scope.query(load("rows/list_revisions"), binds, f"reading revisions of {collection.name}"))
    return found


def _scan(
    scope: Scope, collection: Collection, ask: Ask, names: list[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Batches of exactly `batch_rows`, made of smaller answers: as JSON a row is many times its size as Arrow."""
    held: list[pa.Table] = []
    rows_held = 0
    wide = any(column.is_vector or column.name == "text" for column in collection.columns if column.name in names)
    answer_rows = min(batch_rows, scope.session.batch_rows if wide else scope.session.narrow_rows)
    for documents in scope.stream(ask, f"scanning {collection.name}", answer_rows):
        held.append(encode.to_table(collection, documents, names))
        rows_held += len(documents)
        if rows_held >= batch_rows:
            whole = pa.concat_tables(held).combine_chunks()
            yield from whole.slice(0, batch_rows).to_batches()
            rest = whole.slice(batch_rows)
            held, rows_held = ([rest], rest.num_rows) if rest.num_rows else ([], 0)
    if held:
        yield from pa.concat_tables(held).combine_chunks().to_batches()


def _scan_text(kind: Kind) -> str:
    if kind == "all":
        return load("rows/scan_all")
    if kind == "among":
        return load("rows/scan_among")
    return load("rows/scan_within") if kind == "within" else load("rows/scan_where")


def _count_text(kind: Kind) -> str:
    if kind == "all":
        return load("rows/count_all")
    if kind == "among":
        return load("rows/count_among")
    return load("rows/count_within") if kind == "within" else load("rows/count_where")
