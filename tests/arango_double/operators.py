"""Operators of AQL on plain values, and expressions that are known before a query runs."""

from collections.abc import Callable
from typing import Any

from tests.arango_double import syntax
from tests.arango_double.errors import aql_error
from tests.arango_double.indexes import holds
from tests.arango_double.syntax import Node
from tests.arango_double.values import Value, is_number, to_number, to_text

ORDER: dict[str, Callable[[int], bool]] = {
    "<": lambda result: result < 0,
    "<=": lambda result: result <= 0,
    ">": lambda result: result > 0,
    ">=": lambda result: result >= 0,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def member(value: Value, index: Value) -> Value:
    """`value[index]`: negative positions count from the end, anything missing is null."""
    if isinstance(value, dict):
        return value.get(to_text(index))
    place = int(index)
    return value[place] if -len(value) <= place < len(value) else None


def matches(value: Value, operator: str, other: Value) -> bool:
    """One comparison of a quantified operator."""
    return holds(value, operator, other)


def span(low: Value, high: Value) -> range:
    """`low..high`, inclusive, in either direction."""
    first, last = int(to_number(low)), int(to_number(high))
    return range(first, last + 1) if first <= last else range(first, last - 1, -1)


def constant(node: Node, binds: dict[str, Value]) -> tuple[bool, Value]:
    """Whether a node is known before the query runs, and its value: literals, binds and arithmetic on them."""
    if isinstance(node, syntax.Literal):
        return True, node.value
    if isinstance(node, syntax.Bind):
        return True, binds[node.name]
    if isinstance(node, syntax.Object) and all(isinstance(entry.key, str) for entry in node.entries):
        entries = [(entry.key, constant(entry.value, binds)) for entry in node.entries]
        return all(known for _, (known, _) in entries), {str(key): value for key, (_, value) in entries}
    return False, None


def attribute_path(node: Node, variable: str, binds: dict[str, Value]) -> str | None:
    """`d.a.@b["c"]` as "a.b.c" when `d` is the variable and every name is known; else None."""
    names: list[str] = []
    while True:
        if isinstance(node, syntax.Attribute):
            names.insert(0, node.name)
        elif isinstance(node, syntax.BoundAttribute):
            bound = binds.get(node.bind.name)
            names = [*(bound if isinstance(bound, list) else [str(bound)]), *names]
        elif isinstance(node, syntax.Index) and isinstance(name := constant(node.index, binds)[1], str):
            names.insert(0, name)
        else:
            break
        node = node.base
    return ".".join(names) if names and isinstance(node, syntax.Ref) and node.name == variable else None


def limit_value(node: Node, binds: dict[str, Value]) -> int:
    """A LIMIT: a constant non-negative number, never an expression over rows."""
    known, value = constant(node, binds)
    if not known or not is_number(value) or value < 0:
        aql_error(1504, "number out of range: LIMIT values must be constant non-negative numbers", "planning")
    return int(value)
