"""HTTP routes of named graphs, their vertices and edges."""

from typing import Any

from tests.arango_double import graphs, writes
from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.indexes import Document
from tests.arango_double.routing import ROUTER, Request, Response
from tests.arango_double.transactions import Transaction
from tests.arango_double.writes import Merge, Written

_OK = {"error": False, "code": 200}
_SHOW = ("returnNew", "returnOld", "waitForSync", "keepNull", "ignoreRevs", "overwrite")


@ROUTER.route("GET", "/_api/gharial")
def list_graphs(request: Request) -> Response:
    request.allow()
    return Response(200, {**_OK, "graphs": graphs.list_graphs(request.database)})


@ROUTER.route("POST", "/_api/gharial")
def create_graph(request: Request) -> Response:
    request.allow("waitForSync")
    request.changes_structure()
    return _graph(202, graphs.create_graph(request.database, request.object()))


@ROUTER.route("GET", "/_api/gharial/{graph}")
def show_graph(request: Request, graph: str) -> Response:
    request.allow()
    return _graph(200, graphs.graph_body(graphs.find_graph(request.database, graph)))


@ROUTER.route("DELETE", "/_api/gharial/{graph}")
def drop_graph(request: Request, graph: str) -> Response:
    request.allow("dropCollections")
    request.changes_structure()
    graphs.drop_graph(request.database, graph, request.flag("dropCollections"))
    return Response(202, {"error": False, "code": 202, "removed": True})


@ROUTER.route("GET", "/_api/gharial/{graph}/(vertex|edge)")
def list_members(request: Request, graph: str) -> Response:
    request.allow()
    found = graphs.find_graph(request.database, graph)
    if request.path.endswith("/vertex"):
        return Response(200, {**_OK, "collections": graphs.vertex_collections(found)})
    return Response(200, {**_OK, "collections": sorted(item["collection"] for item in found["edgeDefinitions"])})


@ROUTER.route("POST", "/_api/gharial/{graph}/(vertex|edge)")
def add_member(request: Request, graph: str) -> Response:
    request.allow()
    request.changes_structure()
    if request.path.endswith("/vertex"):
        body = request.object("collection", "options")
        return _graph(202, graphs.change_orphan(request.database, graph, body.get("collection"), add=True))
    return _graph(202, graphs.add_definition(request.database, graph, request.object()))


@ROUTER.route("PUT", "/_api/gharial/{graph}/edge/{collection}")
def replace_definition(request: Request, graph: str, collection: str) -> Response:
    request.allow("waitForSync", "dropCollections")
    request.changes_structure()
    body = dict(request.object("collection", "from", "to", "purge", "waitForSync"))
    if body.pop("purge", False):
        raise NotInDouble("purge of replaced edge definitions")
    body.pop("waitForSync", None)
    return _graph(202, graphs.replace_definition(request.database, graph, collection, body))


@ROUTER.route("DELETE", "/_api/gharial/{graph}/(?P<kind>vertex|edge)/{collection}")
def remove_member(request: Request, graph: str, kind: str, collection: str) -> Response:
    request.allow("dropCollection", "dropCollections", "waitForSync")
    request.changes_structure()
    if kind == "vertex":
        changed = graphs.change_orphan(request.database, graph, collection, add=False)
    else:
        changed = graphs.remove_definition(request.database, graph, collection)
    if request.flag("dropCollection") or request.flag("dropCollections"):
        request.database.drop_collection(collection)
    return _graph(202, changed)


@ROUTER.route("POST", "/_api/gharial/{graph}/(?P<kind>vertex|edge)/{collection}")
def insert_member(request: Request, graph: str, kind: str, collection: str) -> Response:
    request.allow(*_SHOW)
    found = _member_graph(request, graph, kind, collection)
    body = request.object()
    with request.transaction(refreshes=True) as transaction:
        transaction.allow_write(collection)
        if kind == "edge":
            _check_ends(transaction, found, collection, body)
        written = writes.insert(transaction, collection, body)
    return _shown(request, kind, written, 202)


@ROUTER.route("GET", "/_api/gharial/{graph}/(?P<kind>vertex|edge)/{collection}/{key}")
def get_member(request: Request, graph: str, kind: str, collection: str, key: str) -> Response:
    request.allow()
    _member_graph(request, graph, kind, collection)
    with request.transaction() as transaction:
        transaction.allow_read(collection)
        document = transaction.get(collection, key)
    if document is None:
        raise ServerError(1202)
    return Response(200, {**_OK, kind: document})


@ROUTER.route("PATCH PUT", "/_api/gharial/{graph}/(?P<kind>vertex|edge)/{collection}/{key}")
def change_member(request: Request, graph: str, kind: str, collection: str, key: str) -> Response:
    request.allow(*_SHOW)
    found = _member_graph(request, graph, kind, collection)
    body = request.object()
    rev = request.headers.get("if-match", "").strip('"') or None
    with request.transaction(refreshes=True) as transaction:
        transaction.allow_write(collection)
        if kind == "edge" and (request.method == "PUT" or "_from" in body or "_to" in body):
            old = transaction.get(collection, key) or {}
            _check_ends(transaction, found, collection, {**old, **body} if request.method == "PATCH" else body)
        try:
            if request.method == "PUT":
                written = writes.replace(transaction, collection, key, body, rev)
            else:
                merge = Merge(request.flag("keepNull", True))
                written = writes.update(transaction, collection, key, body, merge, rev)
        except ServerError as error:
            raise _precondition(error) from error
    return _shown(request, kind, written, 202)


@ROUTER.route("DELETE", "/_api/gharial/{graph}/(?P<kind>vertex|edge)/{collection}/{key}")
def remove_graph_document(request: Request, graph: str, kind: str, collection: str, key: str) -> Response:
    """Removing a vertex removes its edges in every edge collection of the graph."""
    request.allow(*_SHOW)
    found = _member_graph(request, graph, kind, collection)
    rev = request.headers.get("if-match", "").strip('"') or None
    with request.transaction(refreshes=True) as transaction:
        transaction.allow_write(collection)
        try:
            written = writes.remove(transaction, collection, key, rev)
        except ServerError as error:
            raise _precondition(error) from error
        if kind == "vertex":
            _remove_edges(transaction, found, f"{collection}/{key}")
    answer: dict[str, Any] = {"error": False, "code": 202, "removed": True}
    if request.flag("returnOld"):
        answer["old"] = written.old
    return Response(202, answer)


def _member_graph(request: Request, graph: str, kind: str, collection: str) -> Document:
    found = graphs.find_graph(request.database, graph)
    check = graphs.require_vertex_collection if kind == "vertex" else graphs.require_edge_collection
    check(found, collection)
    return found


def _check_ends(transaction: Transaction, graph: Document, collection: str, body: Any) -> None:
    graphs.check_edge(graph, collection, body)
    for end in ("_from", "_to"):
        name, _, key = body[end].partition("/")
        if transaction.get(name, key) is None:
            raise ServerError(1202, f"document not found: vertex {body[end]} of the edge")


def _remove_edges(transaction: Transaction, graph: Document, handle: str) -> None:
    for definition in graph["edgeDefinitions"]:
        name = definition["collection"]
        transaction.allow_write(name)
        for edge in transaction.scan(name):
            if handle in (edge["_from"], edge["_to"]):
                transaction.put(name, edge["_key"], None)


def _precondition(error: ServerError) -> ServerError:
    if error.number == 1200 and error.message.startswith("conflict, _rev"):
        return ServerError(1200, error.message, 412)
    return error


def _graph(status: int, graph: dict[str, Any]) -> Response:
    return Response(status, {"error": False, "code": status, "graph": graph})


def _shown(request: Request, kind: str, written: Written, status: int) -> Response:
    assert written.new is not None
    shown: dict[str, Any] = {name: written.new[name] for name in ("_id", "_key", "_rev")}
    if written.old is not None:
        shown["_oldRev"] = written.old["_rev"]
    answer: dict[str, Any] = {"error": False, "code": status, kind: shown}
    if request.flag("returnNew"):
        answer["new"] = written.new
    if request.flag("returnOld") and written.old is not None:
        answer["old"] = written.old
    return Response(status, answer)
