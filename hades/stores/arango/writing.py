"""Writing rows inside a transaction that somebody else begins and commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from arango.exceptions import ArangoServerError

from aql import load
from hades.errors import BadRows, LostUpdate
from hades.stores import rows
from hades.stores.arango import encode
from hades.stores.arango.reading import KEYS_PER_QUERY, keys_where, missing_keys, revisions
from hades.stores.arango.scope import Scope, chunks
from hades.stores.arango.terms import Condition
from schemas.catalogue import Collection
from schemas.ids import split_id

REQUEST_BYTES = 12 * 1024 * 1024
_CONFLICT = 1200
_GONE = 1202


def put(
    scope: Scope, collection: Collection, table: pa.Table, *, check_rev: bool, repeats: bool, checked: bool = False
) -> None:
    """Insert or replace prepared rows; the ends of edges and the revisions are checked in the same transaction.

    `repeats` says that the caller runs the unit again after a conflict, which then meets the new revision. `checked`
    says that the ends of edges were looked for before.
    """
    if check_rev:
        _check_revisions(scope, collection, table)
    if collection.edge and not checked:
        _check_ends(scope, collection, table)
    for piece in encode.pieces(table, REQUEST_BYTES):
        bare = piece.drop_columns([rows.REV]) if check_rev else piece
        documents = encode.to_documents(collection, bare)
        answers = _documents(scope, collection).insert_many(documents, overwrite_mode="replace")
        failure = _first_failure(answers)
        if failure is not None:
            row, error = failure
            if check_rev and not repeats and error.error_code == _CONFLICT:
                expected = piece.column(rows.REV)[row].as_py()
                raise LostUpdate(collection.name, documents[row]["_key"], expected, "another writer's") from error
            raise error


def insert(scope: Scope, collection: Collection, table: pa.Table) -> None:
    """Insert or replace rows that were checked when they were queued."""
    put(scope, collection, table, check_rev=False, repeats=True, checked=True)


def update(scope: Scope, collection: Collection, table: pa.Table) -> None:
    """Set the given columns of rows that were checked when they were queued; one that is gone since is passed over."""
    for piece in encode.pieces(table, REQUEST_BYTES):
        documents = encode.to_documents(collection, piece, keep_nulls=True)
        answers = _documents(scope, collection).update_many(documents, check_rev=False, merge=False, keep_none=True)
        failed = [one for one in answers if isinstance(one, ArangoServerError) and one.error_code != _GONE]
        if failed:
            raise failed[0]


def change(scope: Scope, collection: Collection, table: pa.Table) -> None:
    """Set the given columns of rows that exist, whole columns at a time."""
    keys = table.column("_key").to_pylist()
    missing = missing_keys(scope, collection.name, keys)
    if missing:
        row = next(row for row, key in enumerate(keys) if key in missing)
        raise BadRows(collection.name, row, "there is no row to patch; upsert it first", keys[row])
    for piece in encode.pieces(table, REQUEST_BYTES):
        documents = encode.to_documents(collection, piece, keep_nulls=True)
        answers = _documents(scope, collection).update_many(documents, check_rev=False, merge=False, keep_none=True)
        failure = _first_failure(answers)
        if failure is not None:
            raise failure[1]


def remove_keys(scope: Scope, collection: Collection, keys: Sequence[str]) -> int:
    """Remove the rows of these keys; how many there were."""
    assert scope.unit is not None
    return sum(
        scope.session.change(
            load("rows/delete_keys"), {"@collection": collection.name, "keys": list(some)}, inside=scope.unit
        )
        for some in chunks(keys, KEYS_PER_QUERY)
    )


def remove_where(scope: Scope, collection: Collection, narrowed: Condition) -> int:
    """Remove the rows that satisfy a predicate, found first and removed by key; how many there were."""
    return remove_keys(scope, collection, keys_where(scope, collection, narrowed))


def _documents(scope: Scope, collection: Collection) -> Any:
    assert scope.unit is not None
    return scope.unit.collection(collection.name)


def _check_revisions(scope: Scope, collection: Collection, table: pa.Table) -> None:
    keys = table.column("_key").to_pylist()
    held = revisions(scope, collection, keys)
    for key, expected in zip(keys, table.column(rows.REV).to_pylist(), strict=True):
        if held.get(key) != expected:
            raise LostUpdate(collection.name, key, expected, held.get(key))


def _check_ends(scope: Scope, collection: Collection, table: pa.Table) -> None:
    for end in ("_from", "_to"):
        column = table.column(end)
        missing = _missing_ids(scope, pc.unique(column).to_pylist())
        if missing:
            row = pc.index(pc.is_in(column, value_set=pa.array(sorted(missing))), True).as_py()
            raise BadRows(
                collection.name,
                row,
                f"{end} points at {column[row].as_py()}, which is not stored; write the node first",
                table.column("_key")[row].as_py(),
            )


def _missing_ids(scope: Scope, identifiers: Sequence[str]) -> set[str]:
    by_collection: dict[str, list[str]] = {}
    for identifier in identifiers:
        name, key = split_id(identifier)
        by_collection.setdefault(name, []).append(key)
    return {f"{name}/{key}" for name, keys in by_collection.items() for key in missing_keys(scope, name, keys)}


def _first_failure(answers: list[Any]) -> tuple[int, ArangoServerError] | None:
    """The first error among the answers to single documents, with its place; the driver returns them as values."""
    return next(((row, one) for row, one in enumerate(answers) if isinstance(one, ArangoServerError)), None)
