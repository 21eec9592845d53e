"""Operators of AQL on plain values, and expressions that are known before a query runs."""

from collections.abc import Callable
from typing import Any

from tests.arango_double import syntax
from tests.arango_double.indexes import holds
from tests.arango_double.syntax import Node
from tests.arango_double.values import Value, equal, to_number, to_text

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
    if not isinstance(value, list):
        return None
    if isinstance(index, str):
        if not index.lstrip("-").isdigit():
            return None
    elif isinstance(index, bool) or not isinstance(index, (int, float)):
        return None
    place = int(index)
    return value[place] if -len(value) <= place < len(value) else None


def matches(value: Value, operator: str, other: Value) -> bool:
    """One comparison of a quantified operator."""
    if operator == "NOT IN":
        return not holds(value, "IN", other)
    if operator == "!=":
        return not equal(value, other)
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
    if isinstance(node, syntax.Unary) and node.operator in "+-":
        known, value = constant(node.operand, binds)
        return known, (-to_number(value) if node.operator == "-" else to_number(value)) if known else None
    if isinstance(node, syntax.Binary) and node.operator in ARITHMETIC:
        (left_known, left), (right_known, right) = constant(node.left, binds), constant(node.right, binds)
        if left_known and right_known:
            return True, ARITHMETIC[node.operator](to_number(left), to_number(right))
    if isinstance(node, syntax.Array):
        members = [constant(item, binds) for item in node.members]
        return all(known for known, _ in members), [value for _, value in members]
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
