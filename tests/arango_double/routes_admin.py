"""HTTP routes of the server itself: version, databases, users, transactions, jobs."""

import re
from typing import Any

from tests.arango_double.errors import ServerError
from tests.arango_double.routing import ROUTER, Request, Response

_OK = {"error": False, "code": 200}
_DATABASE = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")


@ROUTER.route("GET", "/_api/version")
def version(request: Request) -> Response:
    request.allow("details")
    body: dict[str, Any] = {"server": "arango", "license": "community", "version": request.state.language.version}
    return Response(200, body)


@ROUTER.route("GET", "/_admin/server/role")
def role(request: Request) -> Response:
    request.allow()
    return Response(200, {**_OK, "role": request.state.role})


@ROUTER.route("GET", "/_admin/options")
def options(request: Request) -> Response:
    request.allow()
    if not request.state.tells_options:
        raise ServerError(11, "forbidden")
    return Response(200, {"transaction.streaming-max-transaction-size": request.state.transaction_size_limit})


@ROUTER.route("GET", "/_api/database/current")
def current_database(request: Request) -> Response:
    request.allow()
    database = request.database
    shown = {"id": database.id, "name": database.name, "path": "", "isSystem": database.name == "_system"}
    return Response(200, {**_OK, "result": {**shown, **database.options}})


@ROUTER.route("POST", "/_api/database")
def create_database(request: Request) -> Response:
    request.allow()
    _system_only(request)
    body = request.object("name", "users", "options")
    name = body.get("name")
    if not isinstance(name, str) or not _DATABASE.fullmatch(name):
        raise ServerError(1229, f"database name invalid: {name}")
    options = body.get("options") or {}
    if set(options) - {"sharding", "replicationFactor", "writeConcern"}:
        raise ServerError(10, f"unknown database options: {sorted(options)}")
    request.state.create_database(name).options = options
    users = request.access.users
    for item in body.get("users") or [{"username": request.access.user}]:
        known = item.get("username")
        users.grant(known, name, "", "rw")
    return Response(201, {"error": False, "code": 201, "result": True})


@ROUTER.route("GET", "/_api/user")
def list_users(request: Request) -> Response:
    request.allow()
    request.access.require_admin()
    return Response(200, {**_OK, "result": [user.body() for user in request.access.users.by_name.values()]})


@ROUTER.route("POST", "/_api/user")
def create_user(request: Request) -> Response:
    request.allow()
    request.access.require_admin()
    body = request.object("user", "passwd", "active", "extra")
    made = request.access.users.create(body.get("user"), body.get("passwd"), body.get("active"), body.get("extra"))
    return Response(201, {"error": False, "code": 201, **made.body()})


@ROUTER.route("PUT PATCH", "/_api/user/{name}")
def change_user(request: Request, name: str) -> Response:
    request.allow()
    _self_or_admin(request, name)
    body = request.object("user", "passwd", "active", "extra")
    user = request.access.users.find(name)
    user.password = body.get("passwd", user.password)
    user.active = body.get("active", user.active)
    user.extra = body.get("extra", user.extra)
    return Response(200, {**_OK, **user.body()})


@ROUTER.route("GET PUT DELETE", "/_api/user/{name}/database/{database}(/{collection})?")
def permission(request: Request, name: str, database: str, collection: str | None = None) -> Response:
    request.allow()
    users = request.access.users
    users.find(name)
    if request.method == "GET":
        _self_or_admin(request, name)
        level = (
            users.collection_level(name, database, collection) if collection else users.database_level(name, database)
        )
        return Response(200, {**_OK, "result": level})
    request.access.require_admin()
    if database != "*":
        request.state.database(database)
    wanted = request.object("grant").get("grant")
    users.grant(name, database, collection or "", wanted)
    shown = f"{database}/{collection}" if collection else database
    return Response(200, {**_OK, shown: wanted})


@ROUTER.route("POST", "/_api/transaction/begin")
def begin_transaction(request: Request) -> Response:
    request.allow()
    body = request.object(
        "collections", "waitForSync", "allowImplicit", "lockTimeout", "maxTransactionSize", "skipFastLockRound"
    )
    collections = body.get("collections")
    if not isinstance(collections, dict) or set(collections) - {"read", "write", "exclusive"}:
        raise ServerError(10, "missing/invalid collections definition for transaction")
    declared: dict[str, str] = {}
    for mode in ("read", "write", "exclusive"):
        names = collections.get(mode, [])
        declared.update(dict.fromkeys([names] if isinstance(names, str) else names, mode))
    number = str(request.state.next_number())
    timeout = body.get("lockTimeout")
    seconds = float(timeout) if timeout else request.state.lock_seconds
    request.state.transactions.begin(
        request.database, request.access, number, declared, body.get("allowImplicit", True), seconds
    )
    return _transaction(201, number, "running")


@ROUTER.route("GET PUT DELETE", "/_api/transaction/{number}")
def transaction(request: Request, number: str) -> Response:
    request.allow()
    registry = request.state.transactions
    if request.method == "GET":
        return _transaction(200, number, registry.status(request.database, number))
    status = "committed" if request.method == "PUT" else "aborted"
    return _transaction(200, number, registry.finish(request.database, number, status))


def _transaction(status: int, number: str, word: str) -> Response:
    return Response(status, {"error": False, "code": status, "result": {"id": number, "status": word}})


def _system_only(request: Request) -> None:
    if request.database.name != "_system":
        raise ServerError(1230)
    request.access.require_admin()


def _self_or_admin(request: Request, name: str) -> None:
    if request.access.user != name:
        request.access.require_admin()
