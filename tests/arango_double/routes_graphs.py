"""HTTP routes of named graphs, their vertices and edges."""

from typing import Any

from tests.arango_double import graphs
from tests.arango_double.routing import ROUTER, Request, Response

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


@ROUTER.route("DELETE", "/_api/gharial/{graph}")
def drop_graph(request: Request, graph: str) -> Response:
    request.allow("dropCollections")
    request.changes_structure()
    graphs.drop_graph(request.database, graph, request.flag("dropCollections"))
    return Response(202, {"error": False, "code": 202, "removed": True})


def _graph(status: int, graph: dict[str, Any]) -> Response:
    return Response(status, {"error": False, "code": status, "graph": graph})
