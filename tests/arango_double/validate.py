"""Checks between parsing and running: bind variables, collections, rights, and no access after a write."""

from dataclasses import dataclass, field

from tests.arango_double import syntax
from tests.arango_double.context import QueryContext
from tests.arango_double.errors import aql_error
from tests.arango_double.parser import Parsed
from tests.arango_double.syntax import Node
from tests.arango_double.values import Value

_READS_DOCUMENTS = ("DOCUMENT",)
_TAKES_COLLECTION = {"LENGTH", "DOCUMENT"}


def check_binds(parsed: Parsed, binds: dict[str, Value]) -> None:
    """Bind exactly the declared set: missing 1551, extra 1552, a collection that is not text 1553."""
    for name in parsed.binds:
        if name not in binds:
            aql_error(1551, f"no value specified for declared bind parameter '{name}'")
    for name in binds:
        if name not in parsed.binds:
            aql_error(1552, f"bind parameter '{name}' was not declared in the query")
    for node in syntax.walk(parsed.query):
        if isinstance(node, syntax.SourceBind):
            value = binds[node.key]
            if not isinstance(value, str) or not value:
                aql_error(1553, f"bind parameter '{node.key}' has an invalid value or type")


@dataclass(slots=True)
class Sources:
    """Collections and views that a query names, with how it uses them."""

    reads: dict[str, None] = field(default_factory=dict)
    writes: dict[str, bool] = field(default_factory=dict)

    def names(self) -> list[str]:
        return list(dict.fromkeys([*self.reads, *self.writes]))


def find_sources(query: syntax.Query, binds: dict[str, Value]) -> Sources:
    """Every data source in the query; unbound `@@` parameters (when only parsing) are left out."""
    sources = Sources()
    for node in syntax.walk(query):
        if isinstance(node, syntax.Removal):
            name = _name(node.collection, binds)
            if name is not None:
                sources.writes[name] = False
        elif isinstance(node, (syntax.CollectionRef, syntax.SourceBind)):
            name = _name(node, binds)
            if name is not None:
                sources.reads[name] = None
    for name in sources.writes:
        if not _is_read(query, name, binds):
            sources.reads.pop(name, None)
    return sources


def check_sources(parsed: Parsed, context: QueryContext) -> Sources:
    """Existence (1203), use as operand (1568), rights and access after modification (1579)."""
    database = context.database
    sources = find_sources(parsed.query, context.binds)
    for name in sources.names():
        if name not in database.collections and (name not in database.views or name in sources.writes):
            aql_error(1203, f"collection or view not found: {name}")
    for name in sources.reads:
        if name in database.collections:
            context.transaction.allow_read(name)
    for name, exclusive in sources.writes.items():
        context.transaction.allow_write(name, exclusive)
    context.transaction.renew()
    _check_operands(parsed.query, context)
    _check_order(parsed.query, context, _Written())
    return sources


def _name(node: Node, binds: dict[str, Value]) -> str | None:
    if isinstance(node, syntax.SourceBind):
        return binds.get(node.key)
    assert isinstance(node, syntax.CollectionRef)
    return node.name


def _is_read(query: syntax.Query, name: str, binds: dict[str, Value]) -> bool:
    targets = {id(node.collection) for node in syntax.walk(query) if isinstance(node, syntax.Removal)}
    return any(
        isinstance(node, (syntax.CollectionRef, syntax.SourceBind))
        and id(node) not in targets
        and _name(node, binds) == name
        for node in syntax.walk(query)
    )


def _check_operands(node: Node, context: QueryContext) -> None:
    """A collection may stand in FOR, INTO, a graph clause and a few functions; nowhere else."""
    allowed: list[Node] = []
    if isinstance(node, syntax.For):
        allowed = [node.source]
    elif isinstance(node, syntax.Removal):
        allowed = [node.collection]
    elif isinstance(node, syntax.Traversal):
        allowed = node.edges
    elif isinstance(node, syntax.Query):
        allowed = node.withs
    elif isinstance(node, syntax.Call) and node.name in _TAKES_COLLECTION:
        allowed = node.arguments
    for child in node.children():
        if isinstance(child, (syntax.CollectionRef, syntax.SourceBind)):
            if not any(child is item for item in allowed):
                name = _name(child, context.binds)
                aql_error(1568, f"collection '{name}' used as expression operand", "planning")
        else:
            _check_operands(child, context)


@dataclass(slots=True)
class _Written:
    names: set[str] = field(default_factory=set)


def _check_order(node: Node, context: QueryContext, written: _Written) -> None:
    target: Node | None = None
    if isinstance(node, syntax.Removal):
        target = node.collection
    if isinstance(node, syntax.Traversal) and written.names:
        aql_error(1579, "access after data-modification by traversal", "planning")
    if isinstance(node, syntax.Call) and node.name in _READS_DOCUMENTS and written.names:
        aql_error(1579, f"access after data-modification by function {node.name}()", "planning")
    for child in node.children():
        if child is target:
            continue
        if isinstance(child, (syntax.CollectionRef, syntax.SourceBind)):
            if (name := _name(child, context.binds)) in written.names:
                aql_error(1579, f"access after data-modification by collection '{name}'", "planning")
        else:
            _check_order(child, context, written)
    if target is not None:
        name = _name(target, context.binds)
        assert name is not None
        if name in written.names:
            aql_error(1579, f"access after data-modification by collection '{name}'", "planning")
        written.names.add(name)
