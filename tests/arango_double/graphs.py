"""Named graphs: definitions kept in `_graphs`, and the checks that only the graph interface makes."""

from typing import Any

from tests.arango_double.documents import DOCUMENT_COLLECTION, EDGE_COLLECTION, Database
from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.indexes import Document

_FIELDS = {"name", "edgeDefinitions", "orphanCollections", "options", "isSmart", "isDisjoint", "waitForSync"}
_CLUSTER_OPTIONS = {"numberOfShards", "replicationFactor", "writeConcern", "satellites", "minReplicationFactor"}


def find_graph(database: Database, name: str) -> Document:
    """A graph by name; missing ones are error 1924."""
    found = database.collection("_graphs").documents.get(name)
    if found is None:
        raise ServerError(1924, f"graph '{name}' not found")
    return found


def list_graphs(database: Database) -> list[dict[str, Any]]:
    return [graph_body(found) for found in database.collection("_graphs").documents.values()]


def graph_body(graph: Document) -> dict[str, Any]:
    return {**graph, "name": graph["_key"]}


def create_graph(database: Database, body: dict[str, Any]) -> dict[str, Any]:
    """Create a graph and the collections it lacks."""
    unknown = set(body) - _FIELDS
    if unknown:
        raise ServerError(10, f"unknown graph attributes: {', '.join(sorted(unknown))}")
    name = body.get("name")
    if not isinstance(name, str) or not name:
        raise ServerError(1922, "missing graph name")
    options = body.get("options") or {}
    if body.get("isSmart") or options.get("isSmart") or options.get("smartGraphAttribute"):
        raise NotInDouble("SmartGraphs")
    if set(options) - _CLUSTER_OPTIONS - {"isSmart", "isDisjoint"}:
        raise ServerError(10, f"unknown graph options: {sorted(options)}")
    definitions = [_definition(item) for item in body.get("edgeDefinitions") or []]
    with database.condition:
        if name in database.collection("_graphs").documents:
            raise ServerError(1925, f"graph '{name}' already exists")
        for definition in definitions:
            _check_multi_use(database, definition, definitions)
        _create_collections(database, definitions, body.get("orphanCollections") or [])
        return _store(database, name, definitions, body.get("orphanCollections") or [])


def drop_graph(database: Database, name: str, with_collections: bool) -> None:
    with database.condition:
        find_graph(database, name)
        database.collection("_graphs").apply(name, None)


def _definition(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict) or set(item) - {"collection", "from", "to", "satellites", "options"}:
        raise ServerError(1923, "malformed edge definition")
    lists = [item.get("from"), item.get("to")]
    if not isinstance(item.get("collection"), str) or not all(isinstance(part, list) and part for part in lists):
        raise ServerError(1923, "malformed edge definition")
    return {"collection": item["collection"], "from": sorted(item["from"]), "to": sorted(item["to"])}


def _check_multi_use(database: Database, definition: dict[str, Any], siblings: list[dict[str, Any]]) -> None:
    name = definition["collection"]
    if sum(item["collection"] == name for item in siblings) > 1:
        raise ServerError(1920, f"multi use of edge collection in edge def: {name}")
    for graph in database.collection("_graphs").documents.values():
        for known in graph["edgeDefinitions"]:
            if known["collection"] == name and known != definition:
                raise ServerError(1921, f"edge collection '{name}' already used differently in another graph")


def _create_collections(database: Database, definitions: list[dict[str, Any]], orphans: list[str]) -> None:
    for definition in definitions:
        existing = database.find_collection(definition["collection"])
        if existing is None:
            database.create_collection(definition["collection"], EDGE_COLLECTION, {})
        elif existing.type != EDGE_COLLECTION:
            raise ServerError(1944, f"edge definition collection is a document collection: {existing.name}")
    ends = [name for item in definitions for name in (*item["from"], *item["to"])]
    for name in dict.fromkeys([*ends, *orphans]):
        existing = database.find_collection(name)
        if existing is None:
            database.create_collection(name, DOCUMENT_COLLECTION, {})
        elif existing.type != DOCUMENT_COLLECTION:
            raise ServerError(1927, f"collection '{name}' is not a vertex collection")


def _store(database: Database, name: str, definitions: list[dict[str, Any]], orphans: list[str]) -> dict[str, Any]:
    graph = {
        "_key": name,
        "_id": f"_graphs/{name}",
        "_rev": database.new_revision(),
        "edgeDefinitions": definitions,
        "orphanCollections": orphans,
    }
    database.collection("_graphs").apply(name, graph)
    return graph_body(graph)
