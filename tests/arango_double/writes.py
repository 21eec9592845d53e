"""Writing single documents inside a transaction: key rules, revisions, merging."""

import re
from dataclasses import dataclass
from typing import Any

from tests.arango_double.documents import EDGE_COLLECTION, Collection
from tests.arango_double.errors import ServerError
from tests.arango_double.functions import KEY_PATTERN
from tests.arango_double.indexes import Document
from tests.arango_double.transactions import Transaction

_HANDLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*/" + KEY_PATTERN.pattern)
_SYSTEM = ("_key", "_id", "_rev")
MODES = ("conflict", "ignore", "replace", "update")


@dataclass(frozen=True, slots=True)
class Written:
    """What one write did: the document before, the document after, or that it was left alone."""

    old: Document | None
    new: Document | None
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """How an update treats nulls and sub-objects."""

    keep_null: bool = True
    merge_objects: bool = True


def insert(
    transaction: Transaction, name: str, body: Any, mode: str = "conflict", merge: Merge | None = None
) -> Written:
    """Insert one document; an existing `_key` is a conflict, or handled after `mode`."""
    collection = transaction.database.collection(name)
    if not isinstance(body, dict):
        raise ServerError(1227)
    key = _insert_key(transaction, collection, body)
    if "_key" in body:
        transaction.reserve(name, key)
        old = transaction.get(name, key)
        if old is not None:
            return _insert_over(transaction, collection, old, body, mode, merge or Merge())
    _check_edge(collection, body)
    document = _stamped(transaction, collection, key, body, "insert")
    transaction.put(name, key, document)
    return Written(None, document)


def _insert_over(
    transaction: Transaction, collection: Collection, old: Document, body: Document, mode: str, merge: Merge
) -> Written:
    if mode == "replace":
        return replace(transaction, collection.name, old["_key"], body)
    raise ServerError(
        1210,
        f"unique constraint violated - in index primary of type primary over '_key'; conflicting key: {old['_key']}",
    )


def update(
    transaction: Transaction, name: str, key: str, patch: Any, merge: Merge | None = None, rev: str | None = None
) -> Written:
    """Merge `patch` into a document."""
    collection, old = _existing(transaction, name, key, rev)
    if not isinstance(patch, dict):
        raise ServerError(1227)
    merged = _merged(old, patch, merge or Merge())
    _check_edge(collection, merged)
    document = _stamped(transaction, collection, key, merged, "update")
    transaction.put(name, key, document)
    return Written(old, document)


def replace(transaction: Transaction, name: str, key: str, body: Any, rev: str | None = None) -> Written:
    """Put `body` in place of a document."""
    collection, old = _existing(transaction, name, key, rev)
    if not isinstance(body, dict):
        raise ServerError(1227)
    if collection.type == EDGE_COLLECTION:
        body = {"_from": old["_from"], "_to": old["_to"], **body}
    _check_edge(collection, body)
    document = _stamped(transaction, collection, key, body, "replace")
    transaction.put(name, key, document)
    return Written(old, document)


def remove(transaction: Transaction, name: str, key: str, rev: str | None = None) -> Written:
    """Remove a document."""
    _, old = _existing(transaction, name, key, rev)
    transaction.put(name, key, None)
    return Written(old, None)


def key_of(name: str, value: Any) -> tuple[str, str | None]:
    """Key and revision of a selector: a key, an `_id`, or a document with either."""
    rev = None
    if isinstance(value, dict):
        rev = value.get("_rev") if isinstance(value.get("_rev"), str) else None
        value = value.get("_key", value.get("_id"))
        if value is None:
            raise ServerError(1226 if rev is None else 1205)
    if not isinstance(value, str):
        raise ServerError(1205)
    collection, slash, key = value.partition("/")
    if slash and collection != name:
        raise ServerError(1213, "cross collection request not allowed")
    key = key if slash else value
    if not KEY_PATTERN.fullmatch(key):
        raise ServerError(1221)
    return key, rev


def _existing(transaction: Transaction, name: str, key: str, rev: str | None) -> tuple[Collection, Document]:
    collection = transaction.database.collection(name)
    if transaction.refreshes:
        transaction.reserve(name, key)
    old = transaction.get(name, key)
    if old is None:
        raise ServerError(1202)
    if rev is not None and rev != old["_rev"]:
        raise ServerError(1200, f"conflict, _rev values do not match; key: {key}")
    return collection, old


def _insert_key(transaction: Transaction, collection: Collection, body: Document) -> str:
    key = body["_key"]
    options = collection.properties.get("keyOptions", {})
    if not options.get("allowUserKeys", True):
        raise ServerError(1222)
    if not isinstance(key, str) or not KEY_PATTERN.fullmatch(key):
        raise ServerError(1221)
    return key


def _check_edge(collection: Collection, body: Document) -> None:
    if collection.type != EDGE_COLLECTION:
        return
    for end in ("_from", "_to"):
        value = body.get(end)
        if not isinstance(value, str) or not _HANDLE.fullmatch(value):
            raise ServerError(1233)


def _stamped(transaction: Transaction, collection: Collection, key: str, body: Document, operation: str) -> Document:
    document: Document = {
        "_key": key,
        "_id": f"{collection.name}/{key}",
        "_rev": transaction.database.new_revision(),
    }
    if collection.type == EDGE_COLLECTION:
        document["_from"], document["_to"] = body["_from"], body["_to"]
    for name, value in body.items():
        if name not in _SYSTEM:
            document[name] = value
    return document


def _merged(old: Document, patch: Document, merge: Merge) -> Document:
    result = dict(old)
    for name, value in patch.items():
        if merge.merge_objects and isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = _merged(result[name], value, merge)
        else:
            result[name] = value
    return result
