"""The functions that the queries of `aql/` call; each takes the query, then its arguments."""

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tests.arango_double.values import Value, distinct, hash_key, normal, to_number, to_text

if TYPE_CHECKING:
    from tests.arango_double.query import Query

Implementation = Callable[..., Any]
_ARRAYS: dict[int, tuple[list[float], NDArray[np.float64], float]] = {}  # by the id of the list


@dataclass(frozen=True)
class Function:
    """How many arguments a function takes at least and at most, and what computes it."""

    least: int
    most: int
    call: Implementation


FUNCTIONS: dict[str, Function] = {}


def function(call: Implementation) -> Implementation:
    """Make it a function of the language, by its name in capitals without a last underscore."""
    parameters = list(inspect.signature(call).parameters.values())[1:]
    least = sum(
        one.default is one.empty and one.kind is not one.VAR_POSITIONAL for one in parameters
    )
    endless = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    FUNCTIONS[call.__name__.rstrip("_").upper()] = Function(
        least, 65536 if endless else len(parameters), call
    )
    return call


def _is_array(query: "Query", name: str, value: Value) -> bool:
    if not isinstance(value, list):
        query.warn(1563, f"in function '{name}()': array expected")
    return isinstance(value, list)


def _invalid(query: "Query", name: str) -> None:
    """Warn as the server does when an argument has the wrong type; the call then gives null."""
    query.warn(1542, f"invalid argument type in call to function '{name}()'")


@function
def length(query: "Query", value: Value) -> int:
    if value is None or isinstance(value, bool):
        return int(bool(value))
    return len(value) if isinstance(value, (list, dict, str)) else len(to_text(value))


@function
def union(query: "Query", one: Value, other: Value, *more: Value) -> Value:
    return [
        value
        for array in (one, other, *more)
        if _is_array(query, "UNION", array)
        for value in array
    ]


@function
def union_distinct(query: "Query", one: Value, other: Value, *more: Value) -> Value:
    return distinct(union(query, one, other, *more))


@function
def minus(query: "Query", values: Value, other: Value, *more: Value) -> Value:
    gone = {hash_key(value) for value in union(query, other, [], *more)}
    return [value for value in distinct(values) if hash_key(value) not in gone]


@function
def has(query: "Query", value: Value, name: Value) -> bool:
    return isinstance(value, dict) and to_text(name) in value


@function
def left(query: "Query", value: Value, count: Value) -> str:
    return to_text(value)[: int(to_number(count))]


@function
def to_hex(query: "Query", value: Value) -> str:
    return to_text(value).encode().hex()


@function
def tokens(query: "Query", value: Value, analyzer: Value = "text_en") -> Value:
    found = query.database.analyzer(to_text(analyzer))
    if not isinstance(value, str):
        _invalid(query, "TOKENS")
        return []
    return found.terms(value)


@function
def not_null(query: "Query", value: Value, *more: Value) -> Value:
    return next((one for one in (value, *more) if one is not None), None)


@function
def keep(query: "Query", held: Value, name: Value, *more: Value) -> Value:
    if not isinstance(held, dict):
        return _invalid(query, "KEEP")
    wanted = [
        to_text(one)
        for part in (name, *more)
        for one in (part if isinstance(part, list) else [part])
    ]
    return {one: held[one] for one in wanted if one in held}


@function
def date_now(query: "Query") -> int:
    return int(time.time() * 1000)


def cosine(one: list[float], other: list[float]) -> float | None:
    """Cosine of the angle, None when a vector has no length."""
    (first, length), (second, other_length) = _array(one), _array(other)
    found = float(first @ second) / (length * other_length) if length and other_length else None
    return None if found is None else (found if abs(found) <= 1.0 else math.copysign(1.0, found))


def _array(values: list[float]) -> tuple[NDArray[np.float64], float]:
    """A vector and its length. Documents are never changed, so what was made of a list is kept with
    it.
    """
    held = _ARRAYS.get(id(values))
    if held is None:
        made = np.array(values, np.float64)
        held = _ARRAYS[id(values)] = values, made, math.sqrt(float(made @ made))
    return held[1:]


@function
def cosine_similarity(query: "Query", one: Value, other: Value) -> Value:
    if not isinstance(one, list) or not isinstance(other, list) or len(one) != len(other):
        return _invalid(query, "COSINE_SIMILARITY")
    result = cosine(one, other)
    if result is None:
        query.warn(1561, "in function 'COSINE_SIMILARITY()': invalid arithmetic value")
    return None if result is None else normal(result)
