"""Approximate vector search: only in the query shape that a vector index can answer, else error 1554.

FOR over the collection, at most one FILTER (3.12.6), LETs, SORT by exactly the approximate value in the metric's
direction, then LIMIT. The double computes exact distances, so it never misses a neighbour that a server might.
"""

from collections.abc import Callable, Iterator
from typing import NoReturn

from tests.arango_double import syntax
from tests.arango_double.errors import aql_error
from tests.arango_double.evaluate import Compiler
from tests.arango_double.functions import cosine
from tests.arango_double.indexes import Index, value_at
from tests.arango_double.language import APPROXIMATE
from tests.arango_double.operators import attribute_path, constant, limit_value
from tests.arango_double.syntax import Node, Statement
from tests.arango_double.values import Row, Value, is_number, truthy

Stage = Callable[[Iterator[Row], Row], Iterator[Row]]


def plan_vector_search(compiler: Compiler, statements: list[Statement], place: int) -> tuple[Stage, int] | None:
    """A stage for FOR..LIMIT and the place after it, when the statements there ask for a vector search."""
    first = statements[place]
    block = statements[place : _block_end(statements, place)]
    if not isinstance(first, syntax.For) or not any(_approximate(node) for item in block for node in syntax.walk(item)):
        return None
    name = compiler.source_name(first.source)
    filters = [item for item in block if isinstance(item, syntax.Filter)]
    lets = [item for item in block if isinstance(item, syntax.Let)]
    sort, limit = block[-2] if len(block) > 1 else first, block[-1]
    if not isinstance(sort, syntax.Sort) or not isinstance(limit, syntax.Limit) or len(filters) > 1:
        _refuse("a vector search is FOR, at most one FILTER, LETs, SORT and LIMIT")
    call = _sort_call(sort.keys[0].value, lets)
    if len(sort.keys) != 1 or sort.keys[0].ascends or not isinstance(call, syntax.Call) or not _approximate(call):
        _refuse("SORT must be by exactly the approximate value, DESC")
    index, query = _index_for(compiler, name, first.variable, call)
    return _stage(compiler, name, first.variable, call, index, query, filters, lets, limit), place + len(block)


def _block_end(statements: list[Statement], place: int) -> int:
    """The place after the first LIMIT, or where the loop's simple statements end."""
    for end in range(place + 1, len(statements)):
        if isinstance(statements[end], syntax.Limit):
            return end + 1
        if not isinstance(statements[end], (syntax.Filter, syntax.Let, syntax.Sort)):
            return end
    return len(statements)


def _approximate(node: Node) -> bool:
    return isinstance(node, syntax.Call) and node.name == APPROXIMATE


def _sort_call(value: Node, lets: list[syntax.Let]) -> Node:
    if isinstance(value, syntax.Ref):
        value = next((item.value for item in lets if item.variable == value.name), value)
    return value


def _index_for(compiler: Compiler, name: str, variable: str, call: syntax.Call) -> tuple[Index, Node]:
    left, right = (attribute_path(argument, variable, compiler.context.binds) for argument in call.arguments[:2])
    path, query = (left, call.arguments[1]) if left is not None else (right, call.arguments[0])
    if len(call.arguments) == 3:
        known, options = constant(call.arguments[2], compiler.context.binds)
        if not known or not isinstance(options, dict) or set(options) - {"nProbe"}:
            aql_error(10, f"{call.name}() options must be an object with nProbe", "planning")
    for index in compiler.context.database.collection(name).indexes.values():
        fits = index.type == "vector" and index.fields == [path] and index.definition["params"]["metric"] == "cosine"
        if fits and index.definition.get("trainingState", "ready") == "ready":
            return index, query
    return _refuse(f"no cosine vector index on '{path}'")


def _stage(
    compiler: Compiler,
    name: str,
    variable: str,
    call: syntax.Call,
    index: Index,
    query: Node,
    filters: list[syntax.Filter],
    lets: list[syntax.Let],
    limit: syntax.Limit,
) -> Stage:
    context = compiler.context
    wanted = compiler.compile(query)
    conditions = [compiler.compile(item.condition) for item in filters]
    plain = [(item.variable, None if item.value is call else compiler.compile(item.value)) for item in lets]
    count = limit_value(limit.count, context.binds)
    path, dimension = index.fields[0].split("."), index.definition["params"]["dimension"]

    def distances(row: Row) -> list[tuple[float, Row]]:
        vector = wanted(row)
        if not isinstance(vector, list) or len(vector) != dimension or not all(is_number(item) for item in vector):
            aql_error(10, f"query vector must be an array of {dimension} numbers", "executing")
        found: list[tuple[float, Row]] = []
        for document in context.transaction.scan(name):
            context.check()
            stored: Value = value_at(document, path)
            value = cosine(vector, stored) if isinstance(stored, list) and len(stored) == dimension else None
            made = {**row, variable: document}
            if value is None or not all(truthy(condition(made)) for condition in conditions):
                continue
            context.stats.scanned_index += 1
            for let, evaluate in plain:
                made[let] = value if evaluate is None else evaluate(made)
            found.append((value, made))
        return found

    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        ranked = [item for row in rows for item in distances(row)]
        ranked.sort(key=lambda item: item[0], reverse=True)
        for _, made in ranked[:count]:
            yield made

    return stage


def _refuse(why: str) -> NoReturn:
    aql_error(1554, f"failed vector search: {why}", "planning")
