"""The HTTP routes that the adapter and the driver ask: a function each, found by method and
path.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.arango_double.database import DOCUMENT_COLLECTION, EDGE_COLLECTION, Database
from tests.arango_double.errors import ServerError, check_names
from tests.arango_double.parser import parse, walk
from tests.arango_double.query import Query
from tests.arango_double.search import make_analyzer, make_view
from tests.arango_double.transactions import Transaction
from tests.arango_double.users import LEVELS, Access

if TYPE_CHECKING:
    from tests.arango_double.server import State

_MISSING: Any = object()
_QUERY = {"query", "count", "batchSize", "ttl", "bindVars", "memoryLimit", "options", "cache"}
_OPTIONS = {"failOnWarning", "maxRuntime", "stream", "allowRetry", "fullCount", "cache", "profile"}
# Sent by the driver with every write of documents.
_WRITE = {
    "returnNew",
    "returnOld",
    "silent",
    "overwrite",
    "overwriteMode",
    "keepNull",
    "mergeObjects",
    "ignoreRevs",
}


@dataclass
class Response:
    """Status and JSON body."""

    status: int
    body: Any


@dataclass
class Cursor:
    """A result that did not fit into one batch; `last` is the batch that was given last, to give it
    again.
    """

    id: str
    rest: list[Any]
    size: int
    allow_retry: bool
    batch: int = 1
    last: Any = None


@dataclass
class Request:
    """A parsed request, already authenticated and bound to a database, whose lock it holds."""

    state: "State"
    method: str
    params: dict[str, str]
    headers: dict[str, str]
    raw: bytes
    database: Database
    access: Access

    def flag(self, name: str, default: bool = False) -> bool:
        return self.params.get(name, str(int(default))) in ("1", "true")

    def json(self) -> Any:
        """The body; anything that is not JSON is error 600."""
        try:
            return json.loads(self.raw, parse_float=_number)
        except ValueError as error:
            raise ServerError(600, "VPackError error: invalid JSON object") from error

    def object(self, names: str) -> dict[str, Any]:
        """The body as an object with only the given attributes."""
        body = self.json()
        check_names("attribute", body, set(names.split()))
        return body  # type: ignore[no-any-return]

    def changes_structure(self) -> None:
        """Databases, collections, indexes: database rights, and never inside a stream
        transaction.
        """
        self.access.require_database(self.database.name, "rw")
        if "x-arango-trx-id" in self.headers:
            raise ServerError(1653, "disallowed operation inside transaction")

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """The stream transaction named in the header, or one for this request that commits at the
        end.
        """
        wanted = self.headers.get("x-arango-trx-id")
        if wanted is not None:
            with self.state.transactions.lease(self.database, wanted) as leased:
                yield leased
            return
        own = Transaction(self.database, self.access)
        try:
            yield own
        except BaseException:
            own.end("aborted")
            raise
        own.end("committed")


Handler = Callable[..., Response]
ROUTES: list[tuple[str, re.Pattern[str], set[str], Handler]] = []


def route(
    methods: str, pattern: str, params: set[str] = frozenset()
) -> Callable[[Handler], Handler]:  # type: ignore[assignment]
    """Answer these methods on paths such as `/_api/index/{name}/{index_id}`, with these query
    parameters.
    """
    compiled = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern))

    def register(handler: Handler) -> Handler:
        ROUTES.extend((method, compiled, params, handler) for method in methods.split())
        return handler

    return register


def find_route(method: str, path: str) -> tuple[Handler, dict[str, str], set[str]]:
    for wanted, pattern, params, handler in ROUTES:
        match = pattern.fullmatch(path)
        if match is not None and wanted == method:
            return handler, match.groupdict(), params
    raise ServerError(404, f"unknown path '{method} {path}' in the test double")


def _answer(body: dict[str, Any], status: int = 200) -> Response:
    return Response(status, {**body, "error": False, "code": status})


# -- the server itself -----------------------------------------------------------------------------


@route("GET", "/_api/version", {"details"})
def version(request: Request) -> Response:
    body = {"server": "arango", "license": "community", "version": request.state.language.version}
    return Response(
        200, {**body, "details": {"platform": "double"}} if request.flag("details") else body
    )


@route("GET", "/_admin/server/role")
def role(request: Request) -> Response:
    return _answer({"role": request.state.role})


@route("GET", "/_admin/options")
def options(request: Request) -> Response:
    if not request.state.tells_options:
        raise ServerError(11)
    return Response(
        200, {"transaction.streaming-max-transaction-size": request.state.transaction_size_limit}
    )


@route("GET", "/_api/database/current")
def current_database(request: Request) -> Response:
    name = request.database.name
    shown = {"id": name, "name": name, "path": "", "isSystem": name == "_system"}
    return _answer({"result": {**shown, **request.database.options}})


@route("POST", "/_api/database")
def create_database(request: Request) -> Response:
    if request.database.name != "_system":
        raise ServerError(1230)
    request.access.require_database("_system", "rw")
    body = request.object("name users options")
    check_names("database option", body.get("options") or {}, {"sharding"})
    request.state.create_database(body["name"]).options = body.get("options") or {}
    request.access.user.grants[body["name"], ""] = "rw"
    return _answer({"result": True}, 201)


@route("DELETE", "/_api/database/{name}")
def drop_database(request: Request, name: str) -> Response:
    request.access.require_database("_system", "rw")
    request.state.database(name)
    del request.state.databases[name]
    return _answer({"result": True})


@route("GET", "/_api/user")
def list_users(request: Request) -> Response:
    request.access.require_database("_system", "rw")
    return _answer({"result": [user.body() for user in request.state.users.by_name.values()]})


@route("POST", "/_api/user")
def create_user(request: Request) -> Response:
    request.access.require_database("_system", "rw")
    body = request.object("user passwd active extra")
    return _answer(request.state.users.create(body["user"], body.get("passwd") or "").body(), 201)


@route("PATCH", "/_api/user/{name}")
def change_user(request: Request, name: str) -> Response:
    request.access.require_database("_system", "rw")
    body, user = request.object("user passwd active extra"), request.state.users.find(name)
    user.password = body.get("passwd", user.password)
    return _answer(user.body())


@route("GET PUT", "/_api/user/{name}/database/{database}(/{collection})?")
def permission(
    request: Request, name: str, database: str, collection: str | None = None
) -> Response:
    user = request.state.users.find(name)
    if request.method == "GET" and request.access.user is user:
        return _answer({"result": user.level(database, collection or "")})
    request.access.require_database("_system", "rw")
    if request.method == "GET":
        return _answer({"result": user.level(database, collection or "")})
    request.state.database(database)
    level = request.object("grant")["grant"]
    if level not in LEVELS:
        raise ServerError(10, f"invalid grant '{level}'")
    user.grants[database, collection or ""] = level
    return _answer({f"{database}/{collection}" if collection else database: level})


# -- transactions ----------------------------------------------------------------------------------


@route("POST", "/_api/transaction/begin")
def begin_transaction(request: Request) -> Response:
    body = request.object("collections allowImplicit")
    check_names("kind of collections", body["collections"], {"write"})
    number = str(request.state.next_number())
    made = Transaction(request.database, request.access, set(body["collections"]["write"]))
    request.state.transactions.begin(number, made)
    return _answer({"result": {"id": number, "status": "running"}}, 201)


@route("GET", "/_api/transaction")
def list_transactions(request: Request) -> Response:
    running = request.state.transactions.running(request.database)
    return _answer({"transactions": [{"id": number, "state": "running"} for number in running]})


@route("GET PUT DELETE", "/_api/transaction/{number}")
def transaction(request: Request, number: str) -> Response:
    registry, database = request.state.transactions, request.database
    if request.method == "GET":
        status = registry.status(database, number)
    else:
        status = registry.finish(
            database, number, "committed" if request.method == "PUT" else "aborted"
        )
    return _answer({"result": {"id": number, "status": status}})


# -- queries ---------------------------------------------------------------------------------------


@route("POST", "/_api/cursor")
def create_cursor(request: Request) -> Response:
    body = request.json()
    options = {
        **(body.get("options") or {}),
        **{name: body[name] for name in body if name in _OPTIONS},
    }
    check_names("query option", {*(set(body) - _OPTIONS - _QUERY), *options}, _OPTIONS)
    if options.get("stream") and body.get("count"):
        raise ServerError(10, "cannot use 'count' with a stream query")
    parsed = parse(body["query"], request.state.language)
    with request.transaction() as inside:
        query = Query(
            request.database,
            inside,
            body.get("bindVars") or {},
            bool(options.get("failOnWarning")),
            float(options.get("maxRuntime") or 0.0),
        )
        found = query.run(parsed)
    number, size = str(request.state.next_number()), body.get("batchSize", 1000)
    cursor = Cursor(number, found, size, bool(options.get("allowRetry")), 0)
    request.state.cursors[number] = cursor
    stats = {
        "writesExecuted": query.written,
        "writesIgnored": 0,
        "scannedFull": 0,
        "scannedIndex": 0,
        "filtered": 0,
    }
    first = _next(request, cursor)
    return _answer(
        {**first, "extra": {"warnings": query.warnings, "stats": {**stats, "executionTime": 0.0}}},
        201,
    )


@route("POST", "/_api/cursor/{number}(/{batch})?")
def next_batch(request: Request, number: str, batch: str | None = None) -> Response:
    cursor = request.state.cursors.get(number)
    if cursor is None or (batch is not None and int(batch) not in (cursor.batch, cursor.batch + 1)):
        raise ServerError(1600)
    if batch is not None and int(batch) == cursor.batch:
        return _answer(cursor.last)
    return _answer(_next(request, cursor))


@route("DELETE", "/_api/cursor/{number}")
def delete_cursor(request: Request, number: str) -> Response:
    if request.state.cursors.pop(number, None) is None:
        raise ServerError(1600)
    return _answer({"id": number}, 202)


def _next(request: Request, cursor: Cursor) -> dict[str, Any]:
    """The next rows; a cursor goes with its last batch unless that may be asked for again."""
    rows, cursor.rest = cursor.rest[: cursor.size], cursor.rest[cursor.size :]
    cursor.batch += 1
    cursor.last = {"result": rows, "hasMore": bool(cursor.rest), "cached": False, "extra": {}}
    if cursor.rest:
        cursor.last["id"] = cursor.id
        if cursor.allow_retry:
            cursor.last["nextBatchId"] = str(cursor.batch + 1)
    elif not cursor.allow_retry or cursor.batch == 1:
        del request.state.cursors[cursor.id]
    return cursor.last  # type: ignore[no-any-return]


@route("POST", "/_api/query")
def parse_query(request: Request) -> Response:
    parsed = parse(request.object("query")["query"], request.state.language)
    named = [one[1] for one in walk(parsed.statements) if one[0] == "source" and not one[2]]
    return _answer(
        {"parsed": True, "collections": named, "bindVars": sorted(parsed.binds), "ast": []}
    )


@route("POST", "/_api/explain")
def explain_query(request: Request) -> Response:
    """A plan without nodes: how the double reaches rows says nothing of a server."""
    parse(request.object("query options bindVars")["query"], request.state.language)
    return _answer(
        {"plan": {"nodes": [], "rules": [], "collections": [], "variables": []}, "warnings": []}
    )


# -- documents -------------------------------------------------------------------------------------


@route("POST", "/_api/document/{collection}", _WRITE)
def insert_documents(request: Request, collection: str) -> Response:
    mode = request.params.get("overwriteMode", "conflict")
    return _write(request, collection, lambda inside, body: inside.insert(collection, body, mode))


@route("PATCH", "/_api/document/{collection}(/{key})?", _WRITE)
def update_documents(request: Request, collection: str, key: str | None = None) -> Response:
    merges = request.flag("mergeObjects", True)
    return _write(request, collection, lambda inside, body: inside.update(collection, body, merges))


@route("GET", "/_api/document/{collection}/{key}")
def get_document(request: Request, collection: str, key: str) -> Response:
    with request.transaction() as inside:
        inside.allow_read(collection)
        document = inside.get(collection, key)
    if document is None:
        raise ServerError(1202)
    return Response(200, document)


@route("DELETE", "/_api/document/{collection}/{key}", _WRITE)
def remove_document(request: Request, collection: str, key: str) -> Response:
    with request.transaction() as inside:
        inside.allow_write(collection)
        old = inside.remove(collection, key)
    return Response(200, _shown(request, old, None))


def _write(
    request: Request, collection: str, write: Callable[[Transaction, Any], tuple[Any, Any]]
) -> Response:
    """Write one document, or several of which each succeeds or fails alone."""
    body = request.json()
    answers: list[Any] = []
    with request.transaction() as inside:
        request.database.collection(collection)
        inside.allow_write(collection)
        if not isinstance(body, list):
            return Response(202, _shown(request, *write(inside, body)))
        for item in body:
            try:
                answers.append(_shown(request, *write(inside, item)))
            except ServerError as error:
                answers.append(error.body())
    return Response(202, answers)


def _shown(request: Request, old: Any, new: Any) -> dict[str, Any]:
    if request.flag("silent"):
        return {}
    shown = {name: (new or old)[name] for name in ("_id", "_key", "_rev")}
    return {**shown, "_oldRev": old["_rev"]} if old and new else shown


# -- collections, indexes, views, analyzers, graphs ------------------------------------------------


@route("GET", "/_api/collection", {"excludeSystem"})
def list_collections(request: Request) -> Response:
    user, database = request.access.user, request.database
    held = sorted(database.collections.values(), key=lambda one: one.name)
    return _answer(
        {"result": [one.summary() for one in held if user.level(database.name, one.name) != "none"]}
    )


@route("POST", "/_api/collection", {"waitForSyncReplication", "enforceReplicationFactor"})
def create_collection(request: Request) -> Response:
    request.changes_structure()
    body = request.object("name type waitForSync isSystem keyOptions")
    kind = body.get("type", DOCUMENT_COLLECTION)
    if kind not in (DOCUMENT_COLLECTION, EDGE_COLLECTION):
        raise ServerError(1218, "collection type invalid")
    made = request.database.create_collection(body.get("name"), kind)
    return _answer(
        {**made.summary(), "waitForSync": False, "keyOptions": body.get("keyOptions") or {}}
    )


@route("GET", "/_api/collection/{name}/count")
def count_documents(request: Request, name: str) -> Response:
    request.access.require_read(request.database.name, name)
    with request.transaction() as inside:
        return _answer(
            {**request.database.collection(name).summary(), "count": len(inside.scan(name))}
        )


@route("GET", "/_api/collection/{name}/revision")
def tell_revision(request: Request, name: str) -> Response:
    request.access.require_read(request.database.name, name)
    collection = request.database.collection(name)
    return _answer({**collection.summary(), "revision": str(collection.revision)})


@route("PUT", "/_api/collection/{name}/truncate", {"waitForSync", "compact"})
def truncate(request: Request, name: str) -> Response:
    with request.transaction() as inside:
        inside.allow_write(name)
        for document in inside.scan(name):
            inside.remove(name, document["_key"])
    return _answer(request.database.collection(name).summary())


@route("DELETE", "/_api/collection/{name}")
def drop_collection(request: Request, name: str) -> Response:
    request.changes_structure()
    request.database.collection(name)
    del request.database.collections[name]
    for view in request.database.views.values():
        view.links.pop(name, None)
    return _answer({"id": name})


@route("GET", "/_api/index", {"collection", "withStats", "withHidden"})
def list_indexes(request: Request) -> Response:
    name = request.params["collection"]
    request.access.require_read(request.database.name, name)
    shown = [index.body(name) for index in request.database.collection(name).indexes.values()]
    return _answer({"indexes": shown, "identifiers": {index["id"]: index for index in shown}})


@route("POST", "/_api/index", {"collection"})
def create_index(request: Request) -> Response:
    request.changes_structure()
    index, is_new = request.database.add_index(request.params["collection"], request.json())
    return _answer(
        {**index.body(request.params["collection"]), "isNewlyCreated": is_new},
        201 if is_new else 200,
    )


@route("DELETE", "/_api/index/{name}/{index_id}")
def drop_index(request: Request, name: str, index_id: str) -> Response:
    request.changes_structure()
    request.database.drop_index(name, index_id)
    return _answer({"id": f"{name}/{index_id}"})


@route("GET", "/_api/view")
def list_views(request: Request) -> Response:
    return _answer({"result": [view.body() for view in request.database.views.values()]})


@route("POST", "/_api/view")
def create_view(request: Request) -> Response:
    request.changes_structure()
    return Response(201, make_view(request.database, request.json()).body())


@route("GET PATCH PUT", "/_api/view/{name}/properties")
def view_properties(request: Request, name: str) -> Response:
    _view(request, name)
    if request.method != "GET":
        request.changes_structure()
        request.database.views[name].change(request.json(), request.method == "PATCH")
    return _answer(request.database.views[name].body())


@route("DELETE", "/_api/view/{name}")
def drop_view(request: Request, name: str) -> Response:
    request.changes_structure()
    _view(request, name)
    del request.database.views[name]
    return _answer({"result": True})


def _view(request: Request, name: str) -> None:
    if name not in request.database.views:
        raise ServerError(1203, f"collection or view not found: {name}")


@route("GET", "/_api/analyzer")
def list_analyzers(request: Request) -> Response:
    database = request.database
    return _answer({"result": [item.body(database.name) for item in database.analyzers.values()]})


@route("POST", "/_api/analyzer")
def create_analyzer(request: Request) -> Response:
    request.changes_structure()
    made = make_analyzer(request.object("name type properties features"))
    request.database.analyzers[made.name] = made
    return Response(201, made.body(request.database.name))


@route("DELETE", "/_api/analyzer/{name}", {"force"})
def drop_analyzer(request: Request, name: str) -> Response:
    request.changes_structure()
    short = name.removeprefix(f"{request.database.name}::")
    if request.database.analyzers.pop(short, None) is None:
        raise ServerError(1202, f"unable to find analyzer '{name}'")
    return _answer({"name": name})


@route("GET", "/_api/gharial")
def list_graphs(request: Request) -> Response:
    return _answer({"graphs": list(request.database.graphs.values())})


@route("POST", "/_api/gharial", {"waitForSync"})
def create_graph(request: Request) -> Response:
    request.changes_structure()
    return _answer({"graph": request.database.create_graph(request.json())}, 202)


@route("DELETE", "/_api/gharial/{name}", {"dropCollections"})
def drop_graph(request: Request, name: str) -> Response:
    request.changes_structure()
    if request.database.graphs.pop(name, None) is None:
        raise ServerError(1924, f"graph '{name}' not found")
    return _answer({"removed": True}, 202)


def _number(text: str) -> int | float:
    """Whole doubles come back as integers, as they do from a server."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
