"""Computed values: attributes that a collection fills in on every write."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from tests.arango_double import syntax
from tests.arango_double.context import Limits, QueryContext
from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.evaluate import Compiler
from tests.arango_double.indexes import Document
from tests.arango_double.parser import Parsed, parse

if TYPE_CHECKING:
    from tests.arango_double.documents import Database
    from tests.arango_double.transactions import Transaction

_ATTRIBUTES = {"name", "expression", "overwrite", "computeOn", "keepNull", "failOnWarning"}
_OPERATIONS = ("insert", "update", "replace")


def make_computed(database: "Database", definitions: Any) -> list[Callable[[Document, str], Document]]:
    """Checked functions from document and operation to the document with its computed attribute."""
    if definitions is None:
        return []
    if not isinstance(definitions, list):
        raise ServerError(10, "computedValues must be an array")
    return [_computed(database, definition) for definition in definitions]


def _computed(database: "Database", definition: Any) -> Callable[[Document, str], Document]:
    if not isinstance(definition, dict) or set(definition) - _ATTRIBUTES:
        raise ServerError(10, f"invalid computed value definition: {definition!r}")
    name, overwrite = definition.get("name"), definition.get("overwrite")
    if not isinstance(name, str) or name in ("_key", "_id", "_rev", "_from", "_to") or not isinstance(overwrite, bool):
        raise ServerError(10, "computed values need a name that is not a system attribute, and overwrite")
    parsed = parse(str(definition.get("expression")), database.language)
    _check_expression(parsed)
    operations = definition.get("computeOn", list(_OPERATIONS))
    keep_null, strict = definition.get("keepNull", True), definition.get("failOnWarning", False)
    value = parsed.query.statements[0]
    assert isinstance(value, syntax.Return)

    def compute(document: Document, operation: str) -> Document:
        if operation not in operations or (name in document and not overwrite):
            return document
        binds = {"doc": document} if "doc" in parsed.binds else {}
        context = QueryContext(
            database,
            cast("Transaction", None),
            database.language,
            binds=binds,
            limits=Limits(fail_on_warning=strict),
        )
        result = Compiler(context, _no_subqueries).compile(value.value)({})
        if result is None and not keep_null:
            return {key: member for key, member in document.items() if key != name}
        return {**document, name: result}

    return compute


def _check_expression(parsed: Parsed) -> None:
    statements = parsed.query.statements
    if len(statements) != 1 or not isinstance(statements[0], syntax.Return):
        raise ServerError(10, "computation expression must be a single RETURN")
    if set(parsed.binds) - {"doc"}:
        raise ServerError(10, "computation expression may only use @doc")
    for node in syntax.walk(parsed.query):
        if isinstance(node, (syntax.Subquery, syntax.CollectionRef, syntax.SourceBind)):
            raise ServerError(10, "computation expression must not read collections")


def _no_subqueries(query: syntax.Query) -> Any:
    raise NotInDouble("subqueries in computed values")
