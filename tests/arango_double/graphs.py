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
        graph = find_graph(database, name)
        database.collection("_graphs").apply(name, None)
        if with_collections:
            used = {member for other in list_graphs(database) for member in members(other)}
            for collection in members(graph):
                if collection not in used and collection in database.collections:
                    database.drop_collection(collection)


def members(graph: Document) -> list[str]:
    """Every collection of a graph, edge collections first."""
    edges = [definition["collection"] for definition in graph["edgeDefinitions"]]
    return list(dict.fromkeys([*edges, *vertex_collections(graph)]))


def vertex_collections(graph: Document) -> list[str]:
    ends = [name for item in graph["edgeDefinitions"] for name in (*item["from"], *item["to"])]
    return sorted({*ends, *graph["orphanCollections"]})


def add_definition(database: Database, name: str, item: Any) -> dict[str, Any]:
    with database.condition:
        graph, definition = find_graph(database, name), _definition(item)
        if any(known["collection"] == definition["collection"] for known in graph["edgeDefinitions"]):
            raise ServerError(1920, f"multi use of edge collection in edge def: {definition['collection']}")
        _check_multi_use(database, definition, [])
        definitions = [*graph["edgeDefinitions"], definition]
        _create_collections(database, [definition], [])
        ends = {*definition["from"], *definition["to"]}
        orphans = [orphan for orphan in graph["orphanCollections"] if orphan not in ends]
        return _store(database, name, definitions, orphans)


def replace_definition(database: Database, name: str, collection: str, item: Any) -> dict[str, Any]:
    with database.condition:
        graph, definition = find_graph(database, name), _definition(item)
        if all(known["collection"] != collection for known in graph["edgeDefinitions"]):
            raise ServerError(1930, f"edge collection not used in graph: {collection}")
        _create_collections(database, [definition], [])
        definitions = [definition if known["collection"] == collection else known for known in graph["edgeDefinitions"]]
        return _store(database, name, definitions, graph["orphanCollections"])


def remove_definition(database: Database, name: str, collection: str) -> dict[str, Any]:
    with database.condition:
        graph = find_graph(database, name)
        kept = [known for known in graph["edgeDefinitions"] if known["collection"] != collection]
        if len(kept) == len(graph["edgeDefinitions"]):
            raise ServerError(1930, f"edge collection not used in graph: {collection}")
        before, after = vertex_collections(graph), vertex_collections({**graph, "edgeDefinitions": kept})
        orphans = [*graph["orphanCollections"], *(item for item in before if item not in after)]
        return _store(database, name, kept, orphans)


def change_orphan(database: Database, name: str, collection: Any, add: bool) -> dict[str, Any]:
    """Add or remove a vertex collection that no edge definition uses."""
    with database.condition:
        graph = find_graph(database, name)
        orphans = list(graph["orphanCollections"])
        if add:
            if not isinstance(collection, str):
                raise ServerError(1926, "vertex collection does not exist or is not part of the graph")
            if collection in vertex_collections(graph):
                raise ServerError(1938 if collection in orphans else 1929, "collection already used in the graph")
            _create_collections(database, [], [collection])
            orphans.append(collection)
        elif collection not in orphans:
            raise ServerError(1928, "collection is not in orphan collection")
        else:
            orphans.remove(collection)
        return _store(database, name, graph["edgeDefinitions"], orphans)


def require_vertex_collection(graph: Document, name: str) -> None:
    if name not in vertex_collections(graph):
        raise ServerError(1926, f"vertex collection '{name}' does not exist or is not part of the graph")


def require_edge_collection(graph: Document, name: str) -> None:
    if all(item["collection"] != name for item in graph["edgeDefinitions"]):
        raise ServerError(1930, f"edge collection '{name}' not used in graph")


def check_edge(graph: Document, collection: str, body: Any) -> None:
    """Through the graph interface an edge must connect what its definition allows."""
    if not isinstance(body, dict):
        raise ServerError(1227)
    for end, side in (("_from", "from"), ("_to", "to")):
        value = body.get(end)
        if not isinstance(value, str) or "/" not in value:
            raise ServerError(1233)
        vertex = value.partition("/")[0]
        allowed = [name for item in graph["edgeDefinitions"] if item["collection"] == collection for name in item[side]]
        if vertex not in vertex_collections(graph):
            raise ServerError(1947, f"referenced vertex collection '{vertex}' is not part of the graph")
        if vertex not in allowed:
            raise ServerError(1906, f"invalid edge: {end} '{value}' does not fit the edge definition")


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
