"""Traversals of one step along edge collections: the neighbours of a vertex with the edges that lead there."""

from collections.abc import Callable, Iterator

from tests.arango_double import syntax
from tests.arango_double.documents import EDGE_COLLECTION
from tests.arango_double.errors import NotInDouble, aql_error
from tests.arango_double.evaluate import Compiler
from tests.arango_double.indexes import Condition, Document
from tests.arango_double.operators import constant
from tests.arango_double.syntax import Statement
from tests.arango_double.values import Row

_ENDS = {"OUTBOUND": ("_from", "_to", 0), "INBOUND": ("_to", "_from", 1)}


def traversal_stage(
    compiler: Compiler, node: syntax.Traversal, following: list[Statement]
) -> Callable[[Iterator[Row], Row], Iterator[Row]]:
    """One row for each edge of the start vertex; what no statement reads is not loaded, as on a server."""
    context = compiler.context
    if [constant(end, context.binds) for end in (node.depth.low, node.depth.high)] != [(True, 1), (True, 1)]:
        raise NotInDouble("traversals of other depths than 1..1")
    collections = [compiler.source_name(edges) for edges in node.edges]
    for name in collections:
        context.transaction.allow_read(name)
        if context.database.collection(name).type != EDGE_COLLECTION:
            aql_error(1218, f"collection type invalid for collection '{name}': expecting edge", "planning")
    start = compiler.compile(node.start)
    near, far, place = _ENDS[node.direction]
    read = {part.name for statement in following for part in syntax.walk(statement) if isinstance(part, syntax.Ref)}
    vertex, *edge = node.variables
    if vertex in read:
        raise NotInDouble("reading the vertex of a traversal")

    def edges_of(handle: str) -> Iterator[Document]:
        for name in collections:
            buckets = context.database.collection(name).indexes["1"].buckets[place]
            found = context.transaction.lookup(name, buckets, [Condition(near, "==", handle)])
            context.stats.scanned_index += len(found)
            yield from found

    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        for row in rows:
            handle = start(row)
            if not isinstance(handle, str) or "/" not in handle:
                context.warn(10, "Invalid input for traversal: Only id strings or objects with _id are allowed")
                continue
            for found in edges_of(handle):
                context.check()
                yield {**row, vertex: found[far], **dict.fromkeys(edge, found)}

    return stage
