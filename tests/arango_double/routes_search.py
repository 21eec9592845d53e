"""HTTP routes of views and analyzers."""

from tests.arango_double.analyzers import make_analyzer
from tests.arango_double.errors import ServerError
from tests.arango_double.routing import ROUTER, Request, Response
from tests.arango_double.views import View, make_view

_OK = {"error": False, "code": 200}


@ROUTER.route("GET", "/_api/view")
def list_views(request: Request) -> Response:
    request.allow()
    return Response(200, {**_OK, "result": [view.body() for view in request.database.views.values()]})


@ROUTER.route("POST", "/_api/view")
def create_view(request: Request) -> Response:
    request.allow()
    request.changes_structure()
    with request.database.condition:
        view = make_view(request.database, request.object(), request.state.view_commit_seconds)
    return Response(201, {**view.body(), **view.properties})


@ROUTER.route("GET", "/_api/view/{name}/properties")
def show_properties(request: Request, name: str) -> Response:
    request.allow()
    view = _view(request, name)
    return Response(200, {**_OK, **view.body(), **view.properties})


@ROUTER.route("PUT PATCH", "/_api/view/{name}/properties")
def change_properties(request: Request, name: str) -> Response:
    request.allow()
    request.changes_structure()
    view = _view(request, name)
    with request.database.condition:
        view.change(request.object(), partial=request.method == "PATCH")
    return Response(200, {**view.body(), **view.properties})


@ROUTER.route("DELETE", "/_api/view/{name}")
def drop_view(request: Request, name: str) -> Response:
    request.allow()
    request.changes_structure()
    _view(request, name)
    del request.database.views[name]
    return Response(200, {**_OK, "result": True})


@ROUTER.route("GET", "/_api/analyzer")
def list_analyzers(request: Request) -> Response:
    request.allow()
    database = request.database
    return Response(200, {**_OK, "result": [item.body(database.name) for item in database.analyzers.values()]})


@ROUTER.route("POST", "/_api/analyzer")
def create_analyzer(request: Request) -> Response:
    request.allow()
    request.changes_structure()
    body = request.object("name", "type", "properties", "features")
    database = request.database
    made = make_analyzer(body.get("name"), body.get("type"), body.get("properties") or {}, body.get("features") or [])
    database.analyzers[made.name] = made
    return Response(201, made.body(database.name))


@ROUTER.route("DELETE", "/_api/analyzer/{name}")
def drop_analyzer(request: Request, name: str) -> Response:
    request.allow("force")
    request.changes_structure()
    known = _known(request, name)
    if known in ("identity", "text_en"):
        raise ServerError(11, "forbidden")
    del request.database.analyzers[known]
    return Response(200, {**_OK, "name": f"{request.database.name}::{known}"})


def _known(request: Request, name: str) -> str:
    short = name.removeprefix(f"{request.database.name}::")
    if short not in request.database.analyzers:
        raise ServerError(1202, f"unable to find analyzer '{name}'")
    return short


def _view(request: Request, name: str) -> View:
    found = request.database.views.get(name)
    if found is None:
        raise ServerError(1203, f"collection or view not found: {name}")
    return found
