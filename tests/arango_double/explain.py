"""Execution plans, as far as tests look at them: node types, indexes, collections."""

from typing import Any

from tests.arango_double import syntax
from tests.arango_double.context import QueryContext
from tests.arango_double.evaluate import Compiler
from tests.arango_double.index_choice import choose, wishes_for
from tests.arango_double.parser import Parsed
from tests.arango_double.syntax import Statement
from tests.arango_double.validate import find_sources

_SIMPLE = {
    syntax.Traversal: "TraversalNode",
    syntax.Filter: "FilterNode",
    syntax.Let: "CalculationNode",
    syntax.Collect: "CollectNode",
    syntax.Sort: "SortNode",
    syntax.Limit: "LimitNode",
    syntax.Return: "ReturnNode",
}


def explain(parsed: Parsed, context: QueryContext) -> dict[str, Any]:
    """The plan of a query: a chain of nodes for its outermost statements."""
    compiler = Compiler(context, lambda query: lambda row: [])
    nodes: list[dict[str, Any]] = [{"type": "SingletonNode", "id": 1, "dependencies": []}]
    statements = parsed.query.statements
    for place, statement in enumerate(statements):
        node = _node(compiler, statement, statements[place + 1 :])
        nodes.append({**node, "id": len(nodes) + 1, "dependencies": [len(nodes)]})
    for node in nodes:
        node["estimatedCost"], node["estimatedNrItems"] = float(node["id"]), 1
    sources = find_sources(parsed.query, context.binds)
    uses_index = any(node["type"] == "IndexNode" for node in nodes)
    return {
        "nodes": nodes,
        "rules": ["use-indexes"] if uses_index else [],
        "collections": [
            {"name": name, "type": "write" if name in sources.writes else "read"}
            for name in sorted(sources.names())
            if name in context.database.collections
        ],
        "variables": [],
        "estimatedCost": float(len(nodes)),
        "estimatedNrItems": 1,
        "isModificationQuery": bool(sources.writes),
    }


def _node(compiler: Compiler, statement: Statement, following: list[Statement]) -> dict[str, Any]:
    if isinstance(statement, syntax.For):
        return _loop(compiler, statement, following)
    if isinstance(statement, syntax.Removal):
        return {"type": "RemoveNode", "collection": compiler.source_name(statement.collection)}
    if isinstance(statement, syntax.Let) and isinstance(statement.value, syntax.Subquery):
        return {"type": "SubqueryNode"}
    return {"type": _SIMPLE[type(statement)]}


def _loop(compiler: Compiler, node: syntax.For, following: list[Statement]) -> dict[str, Any]:
    if not isinstance(node.source, (syntax.CollectionRef, syntax.SourceBind)):
        return {"type": "EnumerateListNode"}
    name = compiler.source_name(node.source)
    database = compiler.context.database
    if name in database.views:
        return {"type": "EnumerateViewNode", "view": name}
    choice = choose(database.collection(name), wishes_for(node.variable, following, compiler.context.binds))
    if choice is None:
        return {"type": "EnumerateCollectionNode", "collection": name}
    return {"type": "IndexNode", "collection": name, "indexes": [choice.index.body(name)]}
