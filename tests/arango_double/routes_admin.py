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
    if request.flag("details"):
        body["details"] = {"mode": "server", "host": "", "platform": "double"}
    return Response(200, body)


@ROUTER.route("GET", "/_api/engine")
def engine(request: Request) -> Response:
    request.allow()
    return Response(200, {"name": "rocksdb"})


@ROUTER.route("GET", "/_admin/server/role")
def role(request: Request) -> Response:
    request.allow()
    return Response(200, {**_OK, "role": request.state.role})


@ROUTER.route("GET", "/_admin/server/availability")
def availability(request: Request) -> Response:
    request.allow()
    return Response(200, {**_OK, "mode": "default"})


@ROUTER.route("GET", "/_admin/license")
def license_status(request: Request) -> Response:
    request.allow()
    usage = {"bytesUsed": 0, "bytesLimit": 100 * 2**30, "limitReached": False, "status": "good"}
    return Response(200, {"upgrading": False, "diskUsage": usage})


@ROUTER.route("GET", "/_admin/options")
def options(request: Request) -> Response:
    request.allow()
    if not request.state.tells_options:
        raise ServerError(11, "forbidden")
    return Response(200, {"transaction.streaming-max-transaction-size": request.state.transaction_size_limit})


@ROUTER.route("GET", "/_api/database")
def list_databases(request: Request) -> Response:
    request.allow()
    _system_only(request)
    return Response(200, {**_OK, "result": sorted(request.state.databases)})


@ROUTER.route("GET", "/_api/database/user")
def list_accessible(request: Request) -> Response:
    request.allow()
    level = request.access.users.database_level
    shown = [name for name in sorted(request.state.databases) if level(request.access.user, name) != "none"]
    return Response(200, {**_OK, "result": shown})


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
        if known not in users.by_name:
            users.create(known, item.get("passwd", item.get("password")), item.get("active"), item.get("extra"))
        users.grant(known, name, "", "rw")
    return Response(201, {"error": False, "code": 201, "result": True})


@ROUTER.route("DELETE", "/_api/database/{name}")
def drop_database(request: Request, name: str) -> Response:
    request.allow()
    _system_only(request)
    request.state.database(name)
    if name == "_system":
        raise ServerError(11, "forbidden")
    del request.state.databases[name]
    return Response(200, {**_OK, "result": True})


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


@ROUTER.route("GET", "/_api/user/{name}")
def show_user(request: Request, name: str) -> Response:
    request.allow()
    _self_or_admin(request, name)
    return Response(200, {**_OK, **request.access.users.find(name).body()})


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


@ROUTER.route("DELETE", "/_api/user/{name}")
def drop_user(request: Request, name: str) -> Response:
    request.allow()
    request.access.require_admin()
    request.access.users.find(name)
    del request.access.users.by_name[name]
    return Response(202, {"error": False, "code": 202})


@ROUTER.route("GET", "/_api/user/{name}/database")
def list_permissions(request: Request, name: str) -> Response:
    request.allow("full")
    _self_or_admin(request, name)
    users = request.access.users
    shown: dict[str, Any] = {}
    for database in [*sorted(request.state.databases), "*"]:
        level = users.database_level(name, database)
        grants = {key: value for key, value in users.find(name).grants.get(database, {}).items() if key}
        shown[database] = {"permission": level, "collections": grants} if request.flag("full") else level
    return Response(200, {**_OK, "result": shown})


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
    if request.method == "DELETE":
        users.revoke(name, database, collection or "")
        return Response(202, {"error": False, "code": 202})
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


@ROUTER.route("GET", "/_api/transaction")
def list_transactions(request: Request) -> Response:
    request.allow()
    running = request.state.transactions.running(request.database)
    return Response(200, {"transactions": [{"id": number, "state": "running"} for number in running]})


@ROUTER.route("GET PUT DELETE", "/_api/transaction/{number}")
def transaction(request: Request, number: str) -> Response:
    request.allow()
    registry = request.state.transactions
    if request.method == "GET":
        return _transaction(200, number, registry.status(request.database, number))
    status = "committed" if request.method == "PUT" else "aborted"
    return _transaction(200, number, registry.finish(request.database, number, status))


@ROUTER.route("GET PUT DELETE", "/_api/job/{number}")
def job(request: Request, number: str) -> Response:
    request.allow()
    found = request.state.jobs.get(number)
    if found is None:
        raise ServerError(404, "not found")
    if request.method == "DELETE":
        del request.state.jobs[number]
        return Response(200, {"result": True})
    if found.response is None:
        return Response(204)
    if request.method == "GET":
        return Response(200, {**_OK})
    del request.state.jobs[number]
    headers = {**found.response.headers, "x-arango-async-id": number}
    return Response(found.response.status, found.response.body, headers)


def _transaction(status: int, number: str, word: str) -> Response:
    return Response(status, {"error": False, "code": status, "result": {"id": number, "status": word}})


def _system_only(request: Request) -> None:
    if request.database.name != "_system":
        raise ServerError(1230)
    request.access.require_admin()


def _self_or_admin(request: Request, name: str) -> None:
    if request.access.user != name:
        request.access.require_admin()
