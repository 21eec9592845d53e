"""Object functions of AQL."""

import json
from collections.abc import Iterable

from tests.arango_double.collation import collation_key
from tests.arango_double.context import QueryContext
from tests.arango_double.registry import function, invalid_argument
from tests.arango_double.values import Value, equal, to_json, to_text, truthy


@function("HAS", 2)
def has(_: QueryContext, document: Value, name: Value) -> bool:
    return isinstance(document, dict) and to_text(name) in document


@function("ATTRIBUTES KEYS", 1, 3)
def attributes(context: QueryContext, document: Value, skip_system: Value = False, in_order: Value = False) -> Value:
    if not isinstance(document, dict):
        invalid_argument(context, "ATTRIBUTES")
        return None
    names = [name for name in document if not (truthy(skip_system) and name.startswith("_"))]
    return sorted(names, key=collation_key) if truthy(in_order) else names


@function("VALUES", 1, 2)
def values(context: QueryContext, document: Value, skip_system: Value = False) -> Value:
    if not isinstance(document, dict):
        invalid_argument(context, "VALUES")
        return None
    return [value for name, value in document.items() if not (truthy(skip_system) and name.startswith("_"))]


@function("VALUE", 2)
def value_at(context: QueryContext, document: Value, path: Value) -> Value:
    if not isinstance(document, dict) or not isinstance(path, list):
        invalid_argument(context, "VALUE")
        return None
    current: Value = document
    for step in path:
        if isinstance(current, dict):
            current = current.get(to_text(step))
        elif isinstance(current, list) and isinstance(step, int) and -len(current) <= step < len(current):
            current = current[step]
        else:
            return None
    return current


def _objects(context: QueryContext, name: str, parts: tuple[Value, ...]) -> list[dict[str, Value]] | None:
    members = parts[0] if len(parts) == 1 and isinstance(parts[0], list) else list(parts)
    if all(isinstance(member, dict) for member in members):
        return members
    invalid_argument(context, name)
    return None


@function("MERGE", 1, None)
def merge(context: QueryContext, *parts: Value) -> Value:
    objects = _objects(context, "MERGE", parts)
    if objects is None:
        return None
    return {name: value for member in objects for name, value in member.items()}


@function("MERGE_RECURSIVE", 1, None)
def merge_recursive(context: QueryContext, *parts: Value) -> Value:
    objects = _objects(context, "MERGE_RECURSIVE", parts)
    if objects is None:
        return None
    merged: dict[str, Value] = {}
    for member in objects:
        merged = merged_deep(merged, member)
    return merged


def merged_deep(base: dict[str, Value], patch: dict[str, Value]) -> dict[str, Value]:
    """`patch` over `base`, objects merged attribute by attribute."""
    result = dict(base)
    for name, value in patch.items():
        old = result.get(name)
        result[name] = merged_deep(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _names(parts: tuple[Value, ...]) -> set[str]:
    flat: list[Value] = []
    for part in parts:
        flat.extend(part if isinstance(part, list) else [part])
    return {to_text(name) for name in flat}


@function("KEEP", 2, None)
def keep(context: QueryContext, document: Value, *names: Value) -> Value:
    if not isinstance(document, dict):
        invalid_argument(context, "KEEP")
        return None
    wanted = _names(names)
    return {name: value for name, value in document.items() if name in wanted}


@function("UNSET", 2, None)
def unset(context: QueryContext, document: Value, *names: Value) -> Value:
    if not isinstance(document, dict):
        invalid_argument(context, "UNSET")
        return None
    unwanted = _names(names)
    return {name: value for name, value in document.items() if name not in unwanted}


@function("KEEP_RECURSIVE", 2, None)
def keep_recursive(context: QueryContext, document: Value, *names: Value) -> Value:
    if not isinstance(document, dict):
        invalid_argument(context, "KEEP_RECURSIVE")
        return None
    return _kept(document, _names(names))


def _kept(value: Value, wanted: set[str]) -> Value:
    if isinstance(value, list):
        return [_kept(member, wanted) for member in value]
    if isinstance(value, dict):
        return {name: _kept(member, wanted) for name, member in value.items() if name in wanted}
    return value


@function("UNSET_RECURSIVE", 2, None)
def unset_recursive(context: QueryContext, document: Value, *names: Value) -> Value:
    if not isinstance(document, dict):
        invalid_argument(context, "UNSET_RECURSIVE")
        return None
    return _dropped(document, _names(names))


def _dropped(value: Value, unwanted: set[str]) -> Value:
    if isinstance(value, list):
        return [_dropped(member, unwanted) for member in value]
    if isinstance(value, dict):
        return {name: _dropped(member, unwanted) for name, member in value.items() if name not in unwanted}
    return value


@function("MATCHES", 2, 3)
def matches(context: QueryContext, document: Value, examples: Value, as_index: Value = False) -> Value:
    if not isinstance(document, dict):
        return -1 if truthy(as_index) else False
    candidates: Iterable[Value] = examples if isinstance(examples, list) else [examples]
    for place, example in enumerate(candidates):
        if not isinstance(example, dict):
            invalid_argument(context, "MATCHES")
            continue
        if all(equal(document.get(name), value) for name, value in example.items()):
            return place if truthy(as_index) else True
    return -1 if truthy(as_index) else False


@function("TRANSLATE", 2, 3)
def translate(context: QueryContext, value: Value, table: Value, *default: Value) -> Value:
    if not isinstance(table, dict):
        invalid_argument(context, "TRANSLATE")
        return None
    return table.get(to_text(value), default[0] if default else value)


@function("JSON_STRINGIFY", 1)
def json_stringify(_: QueryContext, value: Value) -> str:
    return to_json(value)


@function("JSON_PARSE", 1)
def json_parse(context: QueryContext, text: Value) -> Value:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        invalid_argument(context, "JSON_PARSE")
        return None
