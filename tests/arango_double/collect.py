"""COLLECT: grouping, aggregation, INTO and counting."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from tests.arango_double import syntax
from tests.arango_double.evaluate import Compiler, Evaluator
from tests.arango_double.functions_numbers import spread
from tests.arango_double.options import COLLECT_OPTIONS, read_options
from tests.arango_double.values import (
    Row,
    Value,
    compare,
    distinct,
    hash_key,
    is_number,
    normal,
    sort_key,
    sorted_values,
)

Reducer = Callable[[list[Value]], Value]


def collect_stage(compiler: Compiler, node: syntax.Collect) -> Callable[[Iterator[Row], Row], Iterator[Row]]:
    """Rows in, one row per group out, groups in ascending order of their values."""
    read_options(compiler.context, "COLLECT", node.options, COLLECT_OPTIONS)
    groups = [(item.variable, compiler.compile(item.value)) for item in node.groups]
    aggregates = [_aggregate(compiler, item) for item in node.aggregates]
    describe = _describer(compiler, node)
    context, outer = compiler.context, set(node.outer)

    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        found: dict[Any, tuple[list[Value], Row, list[Row]]] = {}
        for row in rows:
            context.hold(None)
            values = [value(row) for _, value in groups]
            key = tuple(hash_key(value) for value in values)
            if key not in found:
                found[key] = (values, row, [])
            found[key][2].append(row)
        if not groups and not found:
            found[()] = ([], base, [])
        for values, first, members in sorted(found.values(), key=lambda item: [sort_key(value) for value in item[0]]):
            made = {name: value for name, value in first.items() if name.removeprefix("$hit:") in outer}
            made.update({name: value for (name, _), value in zip(groups, values, strict=True)})
            for name, argument, reduce in aggregates:
                made[name] = reduce([argument(row) for row in members])
            if node.count_into is not None:
                made[node.count_into] = len(members)
            if node.into is not None:
                made[node.into] = [describe(row) for row in members]
            yield made

    return stage


def _describer(compiler: Compiler, node: syntax.Collect) -> Evaluator:
    """What INTO keeps of each row: a projection, the KEEP variables, or every hidden variable."""
    if node.projection is not None:
        return compiler.compile(node.projection)
    names = node.keep if node.keep is not None else node.visible
    shown = [name for name in names if not name.startswith("$")]
    return lambda row: {name: row[name] for name in shown if name in row}


def _aggregate(compiler: Compiler, item: syntax.Assignment) -> tuple[str, Evaluator, Reducer]:
    assert isinstance(item.value, syntax.Call)
    return item.variable, compiler.compile(item.value.arguments[0]), _REDUCERS[item.value.name]


def _numbers(values: list[Value]) -> list[float] | None:
    present = [value for value in values if value is not None]
    return present if all(is_number(value) for value in present) else None


def _sum(values: list[Value]) -> Value:
    numbers = _numbers(values)
    return normal(sum(numbers)) if numbers else None


def _average(values: list[Value]) -> Value:
    numbers = _numbers(values)
    return normal(sum(numbers) / len(numbers)) if numbers else None


def _extreme(sign: int) -> Reducer:
    def reduce(values: list[Value]) -> Value:
        best: Value = None
        for value in values:
            if value is not None and (best is None or compare(value, best) * sign > 0):
                best = value
        return best

    return reduce


def _variance(sample: bool, root: bool) -> Reducer:
    def reduce(values: list[Value]) -> Value:
        numbers = _numbers(values)
        variance = spread(numbers, sample) if numbers else None
        if variance is None:
            return None
        return normal(math.sqrt(variance) if root else variance)

    return reduce


def _bits(fold: Callable[[int, int], int]) -> Reducer:
    def reduce(values: list[Value]) -> Value:
        present = [value for value in values if value is not None]
        if not present or not all(isinstance(value, int) and 0 <= value < 2**32 for value in present):
            return None
        result: int = present[0]
        for value in present[1:]:
            result = fold(result, value)
        return result

    return reduce


_REDUCERS: dict[str, Reducer] = {
    "LENGTH": len,
    "COUNT": len,
    "SUM": _sum,
    "AVERAGE": _average,
    "AVG": _average,
    "MIN": _extreme(-1),
    "MAX": _extreme(1),
    "COUNT_DISTINCT": lambda values: len(distinct(values)),
    "COUNT_UNIQUE": lambda values: len(distinct(values)),
    "UNIQUE": distinct,
    "SORTED_UNIQUE": lambda values: sorted_values(distinct(values)),
    "PUSH": list,
    "VARIANCE": _variance(sample=False, root=False),
    "VARIANCE_POPULATION": _variance(sample=False, root=False),
    "VARIANCE_SAMPLE": _variance(sample=True, root=False),
    "STDDEV": _variance(sample=False, root=True),
    "STDDEV_POPULATION": _variance(sample=False, root=True),
    "STDDEV_SAMPLE": _variance(sample=True, root=True),
    "BIT_AND": _bits(lambda a, b: a & b),
    "BIT_OR": _bits(lambda a, b: a | b),
    "BIT_XOR": _bits(lambda a, b: a ^ b),
}
