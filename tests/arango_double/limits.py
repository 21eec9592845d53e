"""LIMIT values: constants, never expressions over rows."""

from tests.arango_double.context import QueryContext
from tests.arango_double.errors import aql_error
from tests.arango_double.operators import constant
from tests.arango_double.syntax import Node
from tests.arango_double.values import is_number

_ALL = 2**62


def limit_value(node: Node, context: QueryContext, unlimited: bool = False) -> int:
    """A constant non-negative number; null means no offset, or, for the count, everything."""
    known, value = constant(node, context.binds)
    if known and value is None:
        return _ALL if unlimited else 0
    if not known or not is_number(value) or value < 0:
        aql_error(1504, "number out of range: LIMIT values must be constant non-negative numbers", "planning")
    return int(value)
