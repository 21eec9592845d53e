"""The functions that the queries of `aql/` call: name, how many arguments, and the Python that computes it."""

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING, Any

from tests.arango_double.values import (
    Value,
    compare,
    distinct,
    equal,
    hash_key,
    normal,
    to_json,
    to_number,
    to_text,
    truthy,
)

if TYPE_CHECKING:
    from tests.arango_double.context import QueryContext

KEY_PATTERN = re.compile(r"[A-Za-z0-9_\-.@()+,=;$!*'%:]{1,254}")
Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language; `call` takes the query context, then the evaluated arguments."""

    name: str
    minimum: int
    maximum: int | None
    call: Implementation


FUNCTIONS: dict[str, Function] = {}


def function(name: str, minimum: int, maximum: int | None = -1) -> Callable[[Implementation], Implementation]:
    """Register an implementation; `maximum` defaults to `minimum`, None is unlimited."""

    def register(call: Implementation) -> Implementation:
        FUNCTIONS[name] = Function(name, minimum, minimum if maximum == -1 else maximum, call)
        return call

    return register


def _is_array(context: "QueryContext", name: str, value: Value) -> bool:
    if not isinstance(value, list):
        context.warn(1563, f"in function '{name}()': array expected")
    return isinstance(value, list)


def _invalid(context: "QueryContext", name: str) -> Value:
    """Warn as the server does when an argument has the wrong type; the call then gives null."""
    context.warn(1542, f"invalid argument type in call to function '{name}()'")
    return None


@function("LENGTH", 1)
def length(_: "QueryContext", value: Value) -> int:
    if value is None or isinstance(value, bool):
        return int(bool(value))
    return len(value) if isinstance(value, (list, dict, str)) else len(to_json(value))


@function("FIRST", 1)
def first(context: "QueryContext", values: Value) -> Value:
    return values[0] if _is_array(context, "FIRST", values) and values else None


@function("MAX", 1)
def maximum(context: "QueryContext", values: Value) -> Value:
    best: Value = None
    for value in values if _is_array(context, "MAX", values) else ():
        if value is not None and (best is None or compare(value, best) > 0):
            best = value
    return best


@function("APPEND", 2, 3)
def append(context: "QueryContext", values: Value, more: Value, unique: Value = False) -> Value:
    if values is not None and not isinstance(values, list):
        return _invalid(context, "APPEND")
    joined = [*(values or []), *(more if isinstance(more, list) else [] if more is None else [more])]
    return distinct(joined) if truthy(unique) else joined


@function("UNION", 2, None)
def union(context: "QueryContext", *arrays: Value) -> Value:
    return [value for array in arrays if _is_array(context, "UNION", array) for value in array]


@function("UNION_DISTINCT", 2, None)
def union_distinct(context: "QueryContext", *arrays: Value) -> Value:
    return distinct(union(context, *arrays))


@function("MINUS", 2, None)
def minus(context: "QueryContext", *arrays: Value) -> Value:
    others = {hash_key(value) for value in union(context, *arrays[1:])}
    return [value for value in distinct(union(context, arrays[0])) if hash_key(value) not in others]


@function("POSITION", 2, 3)
def position(context: "QueryContext", values: Value, value: Value, as_index: Value = False) -> Value:
    found = next((place for place, member in enumerate(values) if equal(member, value)), -1)
    return found if truthy(as_index) else found >= 0


@function("CONCAT", 1, None)
def concat(_: "QueryContext", *parts: Value) -> str:
    members = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
    return "".join(to_text(member) for member in members if member is not None)


@function("LOWER", 1)
def lower(_: "QueryContext", value: Value) -> str:
    return to_text(value).lower()


@function("SUBSTRING", 2, 3)
def substring(_: "QueryContext", value: Value, offset: Value, length: Value = None) -> str:
    text, start = to_text(value), int(to_number(offset))
    start = max(0, len(text) + start) if start < 0 else start
    return text[start:] if length is None else text[start : start + max(0, int(to_number(length)))]


@function("LEFT", 2)
def left(_: "QueryContext", value: Value, count: Value) -> str:
    return to_text(value)[: max(0, int(to_number(count)))]


@function("TO_HEX", 1)
def to_hex(_: "QueryContext", value: Value) -> str:
    return to_text(value).encode().hex()


@function("TOKENS", 1, 2)
def tokens(context: "QueryContext", value: Value, analyzer: Value = "text_en") -> Value:
    found = context.analyzer(to_text(analyzer))
    if not isinstance(value, str):
        _invalid(context, "TOKENS")
        return []
    return found.terms(value)


@function("NOT_NULL", 1, None)
def not_null(_: "QueryContext", *values: Value) -> Value:
    return next((value for value in values if value is not None), None)


@function("MERGE", 1, None)
def merge(context: "QueryContext", *parts: Value) -> Value:
    objects = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else parts
    if not all(isinstance(member, dict) for member in objects):
        return _invalid(context, "MERGE")
    return {name: value for member in objects for name, value in member.items()}


@function("KEEP", 2, None)
def keep(context: "QueryContext", document: Value, *names: Value) -> Value:
    if not isinstance(document, dict):
        return _invalid(context, "KEEP")
    wanted = {to_text(name) for part in names for name in (part if isinstance(part, list) else [part])}
    return {name: value for name, value in document.items() if name in wanted}


@function("DATE_NOW", 0)
def date_now(_: "QueryContext") -> int:
    return int(time.time() * 1000)


@function("DOCUMENT", 1, 2)
def document(context: "QueryContext", first: Value, *rest: Value) -> Value:
    collection, handle = (to_text(first), rest[0]) if rest else (None, first)
    if not isinstance(handle, str):
        return None
    name, slash, key = handle.partition("/")
    if not slash:
        name, key = collection or "", handle
    return context.document(name, key) if name and collection in (None, name) else None


@function("PARSE_IDENTIFIER", 1)
def parse_identifier(context: "QueryContext", value: Value) -> Value:
    handle = value.get("_id") if isinstance(value, dict) else value
    if isinstance(handle, str) and handle.count("/") == 1 and all(handle.split("/")):
        collection, key = handle.split("/")
        return {"collection": collection, "key": key}
    return _invalid(context, "PARSE_IDENTIFIER")


@function("PARSE_COLLECTION", 1)
def parse_collection(context: "QueryContext", value: Value) -> Value:
    return (parse_identifier(context, value) or {}).get("collection")


@function("PARSE_KEY", 1)
def parse_key(context: "QueryContext", value: Value) -> Value:
    return (parse_identifier(context, value) or {}).get("key")


def cosine(left: list[float], right: list[float]) -> float | None:
    """Cosine of the angle, None when a vector has no length."""
    scale = math.sqrt(sum(map(mul, left, left)) * sum(map(mul, right, right)))
    return min(1.0, max(-1.0, sum(map(mul, left, right)) / scale)) if scale else None


@function("COSINE_SIMILARITY", 2)
def cosine_similarity(context: "QueryContext", left: Value, right: Value) -> Value:
    if not isinstance(left, list) or not isinstance(right, list) or len(left) != len(right):
        return _invalid(context, "COSINE_SIMILARITY")
    result = cosine(left, right)
    if result is None:
        context.warn(1561, "in function 'COSINE_SIMILARITY()': invalid arithmetic value")
    return None if result is None else normal(result)
