"""Exact vector similarities of AQL."""

import math
from collections.abc import Callable
from operator import mul

from tests.arango_double.context import QueryContext
from tests.arango_double.registry import function, invalid_argument
from tests.arango_double.values import Value, normal


def cosine(left: list[float], right: list[float]) -> float | None:
    """Cosine of the angle, None when a vector has no length."""
    scale = math.sqrt(sum(map(mul, left, left)) * sum(map(mul, right, right)))
    return min(1.0, max(-1.0, sum(map(mul, left, right)) / scale)) if scale else None


def l1(left: list[float], right: list[float]) -> float:
    return sum(abs(a - b) for a, b in zip(left, right, strict=True))


def l2(left: list[float], right: list[float]) -> float:
    return math.dist(left, right)


def inner_product(left: list[float], right: list[float]) -> float:
    return float(sum(map(mul, left, right)))


def _measure(name: str, compute: Callable[[list[float], list[float]], float | None]) -> None:
    @function(name, 2)
    def call(context: QueryContext, left: Value, right: Value) -> Value:
        if not isinstance(left, list) or not isinstance(right, list):
            invalid_argument(context, name)
            return None
        if right and isinstance(right[0], list):
            return [call(context, left, member) for member in right]
        if left and isinstance(left[0], list):
            return [call(context, member, right) for member in left]
        try:
            if len(left) != len(right):
                raise TypeError
            result = compute(left, right)
        except TypeError:
            invalid_argument(context, name)
            return None
        if result is None:
            context.warn(1561, f"in function '{name}()': invalid arithmetic value")
            return None
        return normal(result)


_measure("COSINE_SIMILARITY", cosine)
_measure("L1_DISTANCE", l1)
_measure("L2_DISTANCE", l2)
