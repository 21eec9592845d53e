"""Numeric functions of AQL and statistics over arrays."""

import math
import random
from collections.abc import Callable

from tests.arango_double.context import QueryContext
from tests.arango_double.registry import function
from tests.arango_double.values import Value, compare, hash_key, is_number, normal, to_number


def _unary(name: str, compute: Callable[[float], float]) -> None:
    @function(name, 1)
    def call(_: QueryContext, value: Value) -> Value:
        try:
            return normal(compute(to_number(value)))
        except (ValueError, OverflowError):
            return None


for _name, _compute in {
    "FLOOR": math.floor,
    "CEIL": math.ceil,
    "ROUND": lambda x: math.floor(x + 0.5),
    "ABS": abs,
    "SQRT": math.sqrt,
    "LOG": math.log,
    "LOG2": math.log2,
    "LOG10": math.log10,
    "EXP": math.exp,
    "EXP2": lambda x: 2.0**x,
    "SIN": math.sin,
    "COS": math.cos,
    "TAN": math.tan,
    "ASIN": math.asin,
    "ACOS": math.acos,
    "ATAN": math.atan,
    "RADIANS": math.radians,
    "DEGREES": math.degrees,
}.items():
    _unary(_name, _compute)


@function("POW", 2)
def power(_: QueryContext, base: Value, exponent: Value) -> Value:
    try:
        return normal(math.pow(to_number(base), to_number(exponent)))
    except (ValueError, OverflowError):
        return None


@function("ATAN2", 2)
def atan2(_: QueryContext, y: Value, x: Value) -> Value:
    return normal(math.atan2(to_number(y), to_number(x)))


@function("PI", 0)
def pi(_: QueryContext) -> float:
    return math.pi


@function("RAND", 0)
def rand(_: QueryContext) -> float:
    return random.random()


def array_expected(context: QueryContext, name: str, value: Value) -> bool:
    """True for an array; otherwise warn 1563, after which the function gives null."""
    if isinstance(value, list):
        return True
    context.warn(1563, f"in function '{name}()': array expected")
    return False


@function("MIN", 1)
def minimum(context: QueryContext, values: Value) -> Value:
    return _extreme(context, "MIN", values, -1)


@function("MAX", 1)
def maximum(context: QueryContext, values: Value) -> Value:
    return _extreme(context, "MAX", values, 1)


def _extreme(context: QueryContext, name: str, values: Value, sign: int) -> Value:
    if not array_expected(context, name, values):
        return None
    best: Value = None
    for value in values:
        if value is not None and (best is None or compare(value, best) * sign > 0):
            best = value
    return best


@function("SUM", 1)
def total(context: QueryContext, values: Value) -> Value:
    if not array_expected(context, "SUM", values):
        return None
    result: float = 0
    for value in values:
        if value is None:
            continue
        if not is_number(value):
            return None
        result += value
    return normal(result)


@function("PRODUCT", 1)
def product(context: QueryContext, values: Value) -> Value:
    numbers = _numbers(context, "PRODUCT", values)
    return None if numbers is None else normal(math.prod(numbers))


def _numbers(context: QueryContext, name: str, values: Value) -> list[float] | None:
    if not array_expected(context, name, values):
        return None
    numbers = [value for value in values if value is not None]
    if not all(is_number(value) for value in numbers):
        context.warn(1561, f"in function '{name}()': invalid arithmetic value")
        return None
    return numbers


@function("AVERAGE AVG", 1)
def average(context: QueryContext, values: Value) -> Value:
    numbers = _numbers(context, "AVERAGE", values)
    return normal(sum(numbers) / len(numbers)) if numbers else None


@function("MEDIAN", 1)
def median(context: QueryContext, values: Value) -> Value:
    numbers = sorted(_numbers(context, "MEDIAN", values) or [])
    if not numbers:
        return None
    middle = len(numbers) // 2
    return normal(numbers[middle] if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2)


@function("PERCENTILE", 2, 3)
def percentile(context: QueryContext, values: Value, percent: Value, method: Value = "rank") -> Value:
    numbers = sorted(_numbers(context, "PERCENTILE", values) or [])
    share = to_number(percent)
    if not numbers:
        return None
    if not 0 < share <= 100:
        context.warn(1542, "invalid argument type in call to function 'PERCENTILE()'")
        return None
    interpolate = method == "interpolation"
    index = share * (len(numbers) + 1 if interpolate else len(numbers)) / 100
    place = math.floor(index) if interpolate else math.ceil(index)
    if place >= len(numbers):
        return normal(numbers[-1])
    if place <= 0:
        return None
    if not interpolate:
        return normal(numbers[place - 1])
    return normal((index - place) * (numbers[place] - numbers[place - 1]) + numbers[place - 1])


def spread(numbers: list[float], sample: bool) -> float | None:
    """Population or sample variance; None when there are too few numbers."""
    if len(numbers) < (2 if sample else 1):
        return None
    mean = sum(numbers) / len(numbers)
    return sum((number - mean) ** 2 for number in numbers) / (len(numbers) - sample)


def _statistic(names: str, sample: bool, root: bool) -> None:
    @function(names, 1)
    def call(context: QueryContext, values: Value) -> Value:
        variance = spread(_numbers(context, names.partition(" ")[0], values) or [], sample)
        if variance is None:
            return None
        return normal(math.sqrt(variance) if root else variance)


_statistic("VARIANCE VARIANCE_POPULATION", sample=False, root=False)
_statistic("VARIANCE_SAMPLE", sample=True, root=False)
_statistic("STDDEV STDDEV_POPULATION", sample=False, root=True)
_statistic("STDDEV_SAMPLE", sample=True, root=True)


@function("COUNT_DISTINCT COUNT_UNIQUE", 1)
def count_distinct(context: QueryContext, values: Value) -> Value:
    if not array_expected(context, "COUNT_DISTINCT", values):
        return None
    return len({hash_key(value) for value in values})


def _bits(name: str, fold: Callable[[int, int], int]) -> None:
    @function(name, 1, 2)
    def call(context: QueryContext, first: Value, second: Value = None) -> Value:
        values = first if isinstance(first, list) else [first, second]
        numbers = [value for value in values if value is not None]
        if not numbers or not all(isinstance(number, int) and 0 <= number < 2**32 for number in numbers):
            context.warn(1542, f"invalid argument type in call to function '{name}()'")
            return None
        result = numbers[0]
        for number in numbers[1:]:
            result = fold(result, number)
        return result


_bits("BIT_AND", lambda a, b: a & b)
_bits("BIT_OR", lambda a, b: a | b)
_bits("BIT_XOR", lambda a, b: a ^ b)
