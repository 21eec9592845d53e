"""HTTP routes of documents: one, many, and bulk import."""

from collections.abc import Callable
from typing import Any

from tests.arango_double import writes
from tests.arango_double.errors import NotInDouble, ServerError
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


@ROUTER.route("GET HEAD", "/_api/document/{collection}/{key}")
def get_document(request: Request, collection: str, key: str) -> Response:
    request.allow()
    request.database.collection(collection)
    with request.transaction() as transaction:
        transaction.allow_read(collection)
        document = transaction.get(collection, key)
    if document is None:
        raise ServerError(1202)
    wanted = _etag(request, "if-match")
    if wanted is not None and wanted != document["_rev"]:
        raise ServerError(1200, "conflict", 412)
    return Response(200, document, {"ETag": f'"{document["_rev"]}"'})


@ROUTER.route("PATCH PUT DELETE", "/_api/document/{collection}/{key}")
def write_document(request: Request, collection: str, key: str) -> Response:
    request.allow(*_SHOW, *_MERGE, *_REVISIONS)
    rev = _etag(request, "if-match")

    def write(transaction: Transaction, body: Any) -> Written:
        wanted = rev
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
    return shown


def _item_error(error: ServerError) -> dict[str, Any]:
    return {"error": True, "errorNum": error.number, "errorMessage": error.message}
