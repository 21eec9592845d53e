"""What a graph clause can reach: neighbours through edge indexes, vertices by id, weights of edges."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.arango_double import syntax
from tests.arango_double.context import QueryContext
from tests.arango_double.documents import EDGE_COLLECTION
from tests.arango_double.errors import ServerError, aql_error
from tests.arango_double.evaluate import Compiler
from tests.arango_double.graphs import find_graph
from tests.arango_double.indexes import Condition, Document
from tests.arango_double.operators import constant
from tests.arango_double.syntax import Node
from tests.arango_double.values import Row, Value, is_number

_NO_DOCUMENT: Any = object()


class GraphAccess:
    """Edges and vertices of one graph clause, read through the query's transaction."""

    def __init__(self, compiler: Compiler, subject: syntax.GraphSubject, direction: str, options: dict[str, Value]):
        self.context = compiler.context
        self.edges = _edge_collections(compiler, subject, direction, options)
        wanted = options.get("vertexCollections")
        self.vertex_collections = {wanted} if isinstance(wanted, str) else set(wanted) if wanted else None
        self._vertices: dict[str, Document | None] = {}
        transaction = self.context.transaction
        for name, _ in self.edges:
            transaction.allow_read(name)

    def neighbours(self, vertex: str, backwards: bool = False) -> Iterator[tuple[Document, str]]:
        """Edges from a vertex in the clause's direction (or against it), each with the vertex it leads to."""
        for name, direction in self.edges:
            outward, inward = direction in ("OUTBOUND", "ANY"), direction in ("INBOUND", "ANY")
            if backwards and direction != "ANY":
                outward, inward = inward, outward
            if outward:
                for edge in self._lookup(name, "_from", vertex):
                    yield edge, edge["_to"]
            if inward:
                for edge in self._lookup(name, "_to", vertex):
                    if direction != "ANY" or edge["_from"] != vertex:
                        yield edge, edge["_from"]

    def allows(self, vertex: str) -> bool:
        """Whether the clause's vertexCollections let a path pass through the vertex."""
        return self.vertex_collections is None or vertex.partition("/")[0] in self.vertex_collections

    def vertex(self, handle: str) -> Document | None:
        """The vertex document; a dangling edge gives null and warning 1202."""
        found = self._vertices.get(handle, _NO_DOCUMENT)
        if found is _NO_DOCUMENT:
            collection, _, key = handle.partition("/")
            known = self.context.database.find_collection(collection) is not None
            if known:
                self.context.transaction.allow_read(collection)
            found = self.context.transaction.get(collection, key) if known else None
            self._vertices[handle] = found
            if found is None:
                self.context.warn(1202, f"vertex '{handle}' not found")
        return found  # type: ignore[no-any-return]

    def _lookup(self, name: str, end: str, vertex: str) -> list[Document]:
        collection = self.context.database.collection(name)
        buckets = collection.indexes["1"].buckets[end == "_to"]
        found = self.context.transaction.lookup(name, buckets, [Condition(end, "==", vertex)])
        self.context.stats.scanned_index += len(found)
        return found


def _edge_collections(
    compiler: Compiler, subject: syntax.GraphSubject, direction: str, options: dict[str, Value]
) -> list[tuple[str, str]]:
    context = compiler.context
    if subject.graph is None:
        named = [
            (compiler.source_name(node), own or direction)
            for node, own in zip(subject.edges, subject.directions, strict=True)
        ]
    else:
        named = [(name, direction) for name in _graph_edges(context, subject.graph)]
    wanted = options.get("edgeCollections")
    if wanted is not None:
        allowed = [wanted] if isinstance(wanted, str) else wanted
        for name in allowed:
            if name not in [known for known, _ in named]:
                aql_error(1939, f"edge collection '{name}' is not part of the specified graph", "planning")
        named = [(name, own) for name, own in named if name in allowed]
    for name, _ in named:
        if context.database.collection(name).type != EDGE_COLLECTION:
            aql_error(1218, f"collection type invalid for collection '{name}': expecting edge", "planning")
    return named


def _graph_edges(context: QueryContext, node: Node) -> list[str]:
    _, name = constant(node, context.binds)
    if not isinstance(name, str):
        aql_error(1553, "graph name must be a string")
    try:
        graph = find_graph(context.database, name)
    except ServerError as error:
        aql_error(error.number, f"graph '{name}' not found")
    return [definition["collection"] for definition in graph["edgeDefinitions"]]


def weigher(options: dict[str, Value]) -> Callable[[Document], float] | None:
    """The cost of an edge, or None for a search by number of edges."""
    attribute = options.get("weightAttribute")
    if attribute is None:
        return None
    default = options.get("defaultWeight", 1)
    if default < 0:
        aql_error(1948, "negative edge weight not allowed", "executing")

    def weigh(edge: Document) -> float:
        value: Value = edge.get(attribute)
        cost: float = value if is_number(value) else default
        if cost < 0:
            aql_error(1948, "negative edge weight not allowed", "executing")
        return cost

    return weigh


def vertex_reader(compiler: Compiler, node: Node, what: str) -> Callable[[Row], str | None]:
    """Reads a start or target `_id`; constants of other types fail, other values warn (10) and give nothing."""
    context = compiler.context
    known, value = constant(node, context.binds)
    if known and not isinstance(value, (str, list, dict)):
        aql_error(1501, "invalid start vertex. Must either be an _id string value or an object with _id.", "planning")
    read = compiler.compile(node)

    def vertex(row: Row) -> str | None:
        found = read(row)
        handle = found.get("_id") if isinstance(found, dict) else found
        if isinstance(handle, str) and "/" in handle:
            return handle
        context.warn(10, f"Invalid input for {what}: Only id strings or objects with _id are allowed")
        return None

    return vertex


def depth_range(context: QueryContext, node: Node | None) -> tuple[int, int]:
    """`min..max` of a traversal; one number means both, nothing means 1..1."""
    if node is None:
        return 1, 1
    ends = (node.low, node.high) if isinstance(node, syntax.Range) else (node, node)
    values = [constant(end, context.binds) for end in ends]
    if not all(known and is_number(value) and value >= 0 and value == int(value) for known, value in values):
        aql_error(1501, "invalid traversal depth", "planning")
    low, high = int(values[0][1]), int(values[1][1])
    if low > high:
        aql_error(1501, "invalid traversal depth", "planning")
    return low, high
