"""HTTP routes of collections and indexes."""

from typing import Any

from tests.arango_double.documents import DOCUMENT_COLLECTION, EDGE_COLLECTION, Collection
from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.routing import ROUTER, Request, Response

_CREATE = (
    "name", "type", "waitForSync", "isSystem", "keyOptions", "numberOfShards", "shardKeys", "replicationFactor",
    "writeConcern", "distributeShardsLike", "shardingStrategy", "smartJoinAttribute", "schema", "computedValues",
    "cacheEnabled",
)  # fmt: skip
_KEY_OPTIONS = {"type", "allowUserKeys", "increment", "offset"}
_OK = {"error": False, "code": 200}


@ROUTER.route("GET", "/_api/collection")
def list_collections(request: Request) -> Response:
    request.allow("excludeSystem")
    level = request.access.users.collection_level
    shown = [
        found.summary()
        for found in request.database.sorted_collections()
        if level(request.access.user, request.database.name, found.name) != "none"
        and not (found.is_system and request.flag("excludeSystem"))
    ]
    return Response(200, {**_OK, "result": shown})


@ROUTER.route("POST", "/_api/collection")
def create_collection(request: Request) -> Response:
    request.allow("waitForSyncReplication", "enforceReplicationFactor")
    body = request.object(*_CREATE)
    request.changes_structure()
    kind = body.get("type", DOCUMENT_COLLECTION)
    if kind not in (DOCUMENT_COLLECTION, EDGE_COLLECTION):
        raise ServerError(1218, "collection type invalid")
    if body.get("schema") or body.get("computedValues"):
        raise NotInDouble("schema validation and computed values")
    key_options = body.get("keyOptions") or {}
    if set(key_options) - _KEY_OPTIONS or key_options.get("type", "traditional") not in (
        "traditional", "autoincrement", "uuid", "padded",
    ):  # fmt: skip
        raise ServerError(1232, "invalid key generator")
    properties = {
        "waitForSync": bool(body.get("waitForSync")),
        "keyOptions": {"allowUserKeys": True, "type": "traditional", **key_options},
    }
    made = request.database.create_collection(body.get("name"), kind, properties, bool(body.get("isSystem")))
    return Response(200, {**_OK, **made.summary(), **_properties(made)})


@ROUTER.route("GET", "/_api/collection/{name}/count")
def count_documents(request: Request, name: str) -> Response:
    request.allow()
    found = _readable(request, name)
    with request.transaction() as transaction:
        count = transaction.count(name)
    return Response(200, {**_OK, **found.summary(), **_properties(found), "count": count})


@ROUTER.route("PUT", "/_api/collection/{name}/truncate")
def truncate(request: Request, name: str) -> Response:
    request.allow("waitForSync", "compact")
    found = request.database.collection(name)
    with request.transaction() as transaction:
        transaction.allow_write(name)
        for document in transaction.scan(name):
            transaction.put(name, document["_key"], None)
    return Response(200, {**_OK, **found.summary()})


@ROUTER.route("DELETE", "/_api/collection/{name}")
def drop_collection(request: Request, name: str) -> Response:
    request.allow("isSystem")
    request.changes_structure()
    request.access.require_write(request.database.name, name)
    found = request.database.collection(name)
    if found.is_system and not request.flag("isSystem"):
        raise ServerError(11, "forbidden")
    request.database.drop_collection(name)
    return Response(200, {**_OK, "id": found.id})


@ROUTER.route("GET", "/_api/index")
def list_indexes(request: Request) -> Response:
    request.allow("collection", "withStats", "withHidden")
    name = request.params.get("collection", "")
    shown = [index.body(name) for index in _readable(request, name).indexes.values()]
    return Response(200, {**_OK, "indexes": shown, "identifiers": {index["id"]: index for index in shown}})


@ROUTER.route("POST", "/_api/index")
def create_index(request: Request) -> Response:
    request.allow("collection")
    name = request.params.get("collection", "")
    request.changes_structure()
    request.database.collection(name)
    index, is_new = request.database.add_index(name, request.object())
    status = 201 if is_new else 200
    return Response(status, {**index.body(name), "isNewlyCreated": is_new, "error": False, "code": status})


@ROUTER.route("DELETE", "/_api/index/{name}/{index_id}")
def drop_index(request: Request, name: str, index_id: str) -> Response:
    request.allow()
    request.changes_structure()
    request.database.drop_index(name, index_id)
    return Response(200, {**_OK, "id": f"{name}/{index_id}"})


def _readable(request: Request, name: str) -> Collection:
    found = request.database.collection(name)
    request.access.require_read(request.database.name, name)
    return found


def _properties(found: Collection) -> dict[str, Any]:
    defaults = {"waitForSync": False, "keyOptions": {"allowUserKeys": True, "type": "traditional"}}
    return {"statusString": "loaded", "cacheEnabled": False, "schema": None, **defaults, **found.properties}
