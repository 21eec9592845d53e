"""HTTP routes of documents: one, many, and bulk import."""

from collections.abc import Callable
from typing import Any

from tests.arango_double import writes
from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.indexes import Document
from tests.arango_double.routing import ROUTER, Request, Response
from tests.arango_double.transactions import Transaction
from tests.arango_double.writes import Merge, Written

_SHOW = ("returnNew", "returnOld", "silent", "waitForSync", "refillIndexCaches", "refillCaches")
_MERGE = ("keepNull", "mergeObjects", "versionAttribute")
# Sent by python-arango with PUT and PATCH of several documents; the server ignores `overwrite` there.
_REVISIONS = ("ignoreRevs", "overwrite", "ifMatch")


@ROUTER.route("POST", "/_api/document/{collection}")
def insert_documents(request: Request, collection: str) -> Response:
    request.allow(*_SHOW, *_MERGE, "overwrite", "overwriteMode")
    mode = request.params.get("overwriteMode") or ("replace" if request.flag("overwrite") else "conflict")
    if mode not in writes.MODES:
        raise ServerError(10, f"invalid overwriteMode '{mode}'")
    return _write(
        request, collection, lambda trx, body: writes.insert(trx, collection, body, mode, _merge(request)), 202
    )


@ROUTER.route("PATCH", "/_api/document/{collection}")
def update_documents(request: Request, collection: str) -> Response:
    request.allow(*_SHOW, *_MERGE, *_REVISIONS)

    def update(transaction: Transaction, body: Any) -> Written:
        key, rev = writes.key_of(collection, body)
        return writes.update(transaction, collection, key, body, _merge(request), _checked(request, rev))

    return _write(request, collection, update, 202)


@ROUTER.route("PUT", "/_api/document/{collection}")
def replace_documents(request: Request, collection: str) -> Response:
    if request.flag("onlyget"):
        return _get_many(request, collection)
    request.allow(*_SHOW, *_MERGE, *_REVISIONS)

    def replace(transaction: Transaction, body: Any) -> Written:
        key, rev = writes.key_of(collection, body)
        return writes.replace(transaction, collection, key, body, _checked(request, rev))

    return _write(request, collection, replace, 202)


@ROUTER.route("DELETE", "/_api/document/{collection}")
def remove_documents(request: Request, collection: str) -> Response:
    request.allow(*_SHOW, *_REVISIONS)

    def remove(transaction: Transaction, body: Any) -> Written:
        key, rev = writes.key_of(collection, body)
        return writes.remove(transaction, collection, key, _checked(request, rev))

    return _write(request, collection, remove, 202)


def _get_many(request: Request, collection: str) -> Response:
    request.allow("onlyget", "ignoreRevs")
    request.database.collection(collection)
    found: list[Any] = []
    with request.transaction() as transaction:
        transaction.allow_read(collection)
        for selector in request.json():
            try:
                key, _ = writes.key_of(collection, selector)
                document = transaction.get(collection, key)
                if document is None:
                    raise ServerError(1202)
                found.append(document)
            except ServerError as error:
                found.append(_item_error(error))
    return Response(200, found)


@ROUTER.route("GET HEAD", "/_api/document/{collection}/{key}")
def get_document(request: Request, collection: str, key: str) -> Response:
    request.allow()
    request.database.collection(collection)
    with request.transaction() as transaction:
        transaction.allow_read(collection)
        document = transaction.get(collection, key)
    if document is None:
        raise ServerError(1202)
    wanted, unwanted = _etag(request, "if-match"), _etag(request, "if-none-match")
    if wanted is not None and wanted != document["_rev"]:
        raise ServerError(1200, "conflict", 412)
    if unwanted is not None and unwanted == document["_rev"]:
        return Response(304, None, {"ETag": f'"{document["_rev"]}"'})
    return Response(200, document, {"ETag": f'"{document["_rev"]}"'})


@ROUTER.route("PATCH PUT DELETE", "/_api/document/{collection}/{key}")
def write_document(request: Request, collection: str, key: str) -> Response:
    request.allow(*_SHOW, *_MERGE, *_REVISIONS)
    rev = _etag(request, "if-match")

    def write(transaction: Transaction, body: Any) -> Written:
        wanted = rev
        if wanted is None and isinstance(body, dict) and not request.flag("ignoreRevs", True):
            wanted = body.get("_rev")
        if request.method == "PATCH":
            return writes.update(transaction, collection, key, body, _merge(request), wanted)
        if request.method == "PUT":
            return writes.replace(transaction, collection, key, body, wanted)
        return writes.remove(transaction, collection, key, wanted)

    body = None if request.method == "DELETE" else request.object()
    try:
        written = _one(request, collection, write, body)
    except ServerError as error:
        if error.number == 1200 and error.message.startswith("conflict, _rev"):
            raise ServerError(1200, error.message, 412) from error
        raise
    return Response(200 if request.method == "DELETE" else 202, _shown(request, written))


def _write(request: Request, collection: str, write: Callable[[Transaction, Any], Written], status: int) -> Response:
    body = request.json()
    if not isinstance(body, list):
        return Response(status, _shown(request, _one(request, collection, write, body)))
    answers: list[Any] = []
    errors: dict[int, int] = {}
    request.database.collection(collection)
    with request.transaction(refreshes=True) as transaction:
        transaction.allow_write(collection)
        for item in body:
            try:
                answers.append(_shown(request, write(transaction, item)))
            except ServerError as error:
                answers.append(_item_error(error))
                errors[error.number] = errors.get(error.number, 0) + 1
    headers = {}
    if errors:
        headers["X-Arango-Error-Codes"] = ", ".join(f'"{number}":{count}' for number, count in errors.items())
        headers["X-Arango-Error-Codes"] = "{" + headers["X-Arango-Error-Codes"] + "}"
    return Response(status, {} if request.flag("silent") and not errors else answers, headers)


def _one(request: Request, collection: str, write: Callable[[Transaction, Any], Written], body: Any) -> Written:
    request.database.collection(collection)
    with request.transaction(refreshes=True) as transaction:
        transaction.allow_write(collection)
        return write(transaction, body)


def _merge(request: Request) -> Merge:
    if "versionAttribute" in request.params:
        raise NotInDouble("versionAttribute")
    return Merge(request.flag("keepNull", True), request.flag("mergeObjects", True))


def _checked(request: Request, rev: str | None) -> str | None:
    return None if request.flag("ignoreRevs", True) else rev


def _etag(request: Request, name: str) -> str | None:
    value = request.headers.get(name)
    return value.strip().strip('"') if value is not None else None


def _shown(request: Request, written: Written) -> dict[str, Any]:
    if request.flag("silent"):
        return {}
    current = written.new if written.new is not None else written.old
    assert current is not None
    shown: dict[str, Any] = {name: current[name] for name in ("_id", "_key", "_rev")}
    if written.old is not None and written.new is not None:
        shown["_oldRev"] = written.old["_rev"]
    if request.flag("returnNew") and written.new is not None:
        shown["new"] = written.new
    if request.flag("returnOld") and written.old is not None and not written.ignored:
        shown["old"] = written.old
    return shown


def _item_error(error: ServerError) -> dict[str, Any]:
    return {"error": True, "errorNum": error.number, "errorMessage": error.message}


@ROUTER.route("POST", "/_api/import")
def import_documents(request: Request) -> Response:
    request.allow(
        "type", "collection", "complete", "details", "overwrite", "onDuplicate", "fromPrefix", "toPrefix", "waitForSync"
    )
    if request.params.get("type") != "array":
        raise NotInDouble(f"import type {request.params.get('type')}")
    collection = request.params.get("collection", "")
    action = request.params.get("onDuplicate", "error")
    if action not in ("error", "update", "replace", "ignore"):
        raise ServerError(10, f"invalid onDuplicate '{action}'")
    rows = request.json()
    if not isinstance(rows, list):
        raise ServerError(10, "expecting a JSON array")
    request.database.collection(collection)
    counts: dict[str, Any] = {"created": 0, "errors": 0, "empty": 0, "updated": 0, "ignored": 0}
    details: list[str] = []
    with request.transaction(refreshes=True) as transaction:
        transaction.allow_write(collection)
        if request.flag("overwrite"):
            for document in transaction.scan(collection):
                transaction.put(collection, document["_key"], None)
        for place, row in enumerate(rows):
            try:
                written = _import_one(request, transaction, collection, row, action)
                counts["ignored" if written.ignored else "updated" if written.old is not None else "created"] += 1
            except ServerError as error:
                if request.flag("complete"):
                    raise ServerError(error.number, error.message, 409 if error.number == 1210 else 500) from error
                counts["errors"] += 1
                details.append(f"at position {place}: {error.message}")
    answer = {"error": False, **counts}
    if request.flag("details"):
        answer["details"] = details
    return Response(201, answer)


def _import_one(request: Request, transaction: Transaction, collection: str, row: Any, action: str) -> Written:
    if not isinstance(row, dict):
        raise ServerError(1227, "invalid document type")
    document: Document = row
    for end, name in (("_from", "fromPrefix"), ("_to", "toPrefix")):
        prefix = request.params.get(name)
        value = document.get(end)
        if prefix is not None and isinstance(value, str) and "/" not in value:
            document = {**document, end: f"{prefix.rstrip('/')}/{value}"}
    mode = "conflict" if action == "error" else action
    return writes.insert(transaction, collection, document, mode)


@ROUTER.route("GET", "/_api/edges/{collection}")
def list_edges(request: Request, collection: str) -> Response:
    request.allow("vertex", "direction")
    vertex, direction = request.params.get("vertex"), request.params.get("direction", "any")
    if not vertex or direction not in ("any", "in", "out"):
        raise ServerError(10, "expecting vertex and a direction of any, in or out")
    found: dict[str, Document] = {}
    with request.transaction() as transaction:
        transaction.allow_read(collection)
        request.database.collection(collection)
        for document in transaction.scan(collection):
            outward, inward = document.get("_from") == vertex, document.get("_to") == vertex
            if (outward and direction != "in") or (inward and direction != "out"):
                found[document["_key"]] = document
    stats = {"scannedIndex": len(found), "filtered": 0, "httpRequests": 0}
    return Response(200, {"edges": list(found.values()), "stats": stats, "error": False, "code": 200})
