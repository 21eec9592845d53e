"""Array functions of AQL."""

from collections.abc import Callable

from tests.arango_double.context import QueryContext
from tests.arango_double.functions_numbers import array_expected
from tests.arango_double.registry import function, invalid_argument
from tests.arango_double.values import (
    Value,
    distinct,
    equal,
    hash_key,
    normal,
    sorted_values,
    to_json,
    to_number,
    to_text,
    truthy,
)


@function("LENGTH COUNT", 1)
def length(_: QueryContext, value: Value) -> int:
    if value is None or isinstance(value, bool):
        return int(bool(value))
    if isinstance(value, (list, dict)):
        return len(value)
    return len(value) if isinstance(value, str) else len(to_json(value))


@function("FIRST", 1)
def first(context: QueryContext, values: Value) -> Value:
    return values[0] if array_expected(context, "FIRST", values) and values else None


@function("LAST", 1)
def last(context: QueryContext, values: Value) -> Value:
    return values[-1] if array_expected(context, "LAST", values) and values else None


@function("NTH", 2)
def nth(context: QueryContext, values: Value, place: Value) -> Value:
    index = int(to_number(place))
    return values[index] if array_expected(context, "NTH", values) and 0 <= index < len(values) else None


@function("PUSH", 2, 3)
def push(context: QueryContext, values: Value, value: Value, unique: Value = False) -> Value:
    if values is None:
        return [value]
    if not isinstance(values, list):
        invalid_argument(context, "PUSH")
        return None
    if truthy(unique) and any(equal(member, value) for member in values):
        return values
    return [*values, value]


@function("UNSHIFT", 2, 3)
def unshift(context: QueryContext, values: Value, value: Value, unique: Value = False) -> Value:
    if values is None:
        return [value]
    if not isinstance(values, list):
        invalid_argument(context, "UNSHIFT")
        return None
    if truthy(unique) and any(equal(member, value) for member in values):
        return values
    return [value, *values]


@function("APPEND", 2, 3)
def append(context: QueryContext, values: Value, more: Value, unique: Value = False) -> Value:
    if values is not None and not isinstance(values, list):
        invalid_argument(context, "APPEND")
        return None
    joined = [*(values or []), *(more if isinstance(more, list) else [] if more is None else [more])]
    return distinct(joined) if truthy(unique) else joined


@function("POP", 1)
def pop(context: QueryContext, values: Value) -> Value:
    return values[:-1] if array_expected(context, "POP", values) else None


@function("SHIFT", 1)
def shift(context: QueryContext, values: Value) -> Value:
    return values[1:] if array_expected(context, "SHIFT", values) else None


@function("REMOVE_VALUE", 2, 3)
def remove_value(context: QueryContext, values: Value, value: Value, limit: Value = None) -> Value:
    if values is None:
        return []
    if not array_expected(context, "REMOVE_VALUE", values):
        return None
    left = len(values) if limit is None else int(to_number(limit))
    kept = []
    for member in values:
        if left > 0 and equal(member, value):
            left -= 1
        else:
            kept.append(member)
    return kept


@function("REMOVE_VALUES", 2)
def remove_values(context: QueryContext, values: Value, unwanted: Value) -> Value:
    if not (array_expected(context, "REMOVE_VALUES", values) and array_expected(context, "REMOVE_VALUES", unwanted)):
        return None
    keys = {hash_key(value) for value in unwanted}
    return [value for value in values if hash_key(value) not in keys]


@function("REMOVE_NTH", 2)
def remove_nth(context: QueryContext, values: Value, place: Value) -> Value:
    if not array_expected(context, "REMOVE_NTH", values):
        return None
    index = int(to_number(place))
    index += len(values) if index < 0 else 0
    return [value for position, value in enumerate(values) if position != index]


@function("REPLACE_NTH", 3, 4)
def replace_nth(context: QueryContext, values: Value, place: Value, value: Value, padding: Value = None) -> Value:
    if not array_expected(context, "REPLACE_NTH", values):
        return None
    index = int(to_number(place))
    index = max(0, index + len(values)) if index < 0 else index
    result = [*values, *[padding] * (index - len(values) + 1)]
    result[index] = value
    return result


@function("UNION", 2, None)
def union(context: QueryContext, *arrays: Value) -> Value:
    if not _all_arrays(context, "UNION", arrays):
        return None
    return [value for array in arrays for value in array]


@function("UNION_DISTINCT", 2, None)
def union_distinct(context: QueryContext, *arrays: Value) -> Value:
    if not _all_arrays(context, "UNION_DISTINCT", arrays):
        return None
    return distinct([value for array in arrays for value in array])


def _membership(name: str, keeps: Callable[[bool, int, int], bool]) -> None:
    """INTERSECTION, MINUS and OUTERSECTION: by in-first, in how many arrays, of how many."""

    @function(name, 2, None)
    def call(context: QueryContext, *arrays: Value) -> Value:
        if not _all_arrays(context, name, arrays):
            return None
        keys = [{hash_key(value) for value in array} for array in arrays]
        candidates = distinct([value for array in arrays for value in array])
        return [
            value
            for value in candidates
            if keeps(hash_key(value) in keys[0], sum(hash_key(value) in known for known in keys), len(keys))
        ]


_membership("INTERSECTION", lambda in_first, hits, size: hits == size)
_membership("MINUS", lambda in_first, hits, size: in_first and hits == 1)
_membership("OUTERSECTION", lambda in_first, hits, size: hits == 1)


def _all_arrays(context: QueryContext, name: str, values: tuple[Value, ...]) -> bool:
    if all(isinstance(value, list) for value in values):
        return True
    invalid_argument(context, name)
    return False


@function("JACCARD", 2)
def jaccard(context: QueryContext, left: Value, right: Value) -> Value:
    if not _all_arrays(context, "JACCARD", (left, right)):
        return None
    first_keys, second_keys = {hash_key(value) for value in left}, {hash_key(value) for value in right}
    either = first_keys | second_keys
    return normal(len(first_keys & second_keys) / len(either)) if either else 1


@function("UNIQUE", 1)
def unique(context: QueryContext, values: Value) -> Value:
    return distinct(values) if array_expected(context, "UNIQUE", values) else None


@function("SORTED", 1)
def sorted_array(context: QueryContext, values: Value) -> Value:
    return sorted_values(values) if array_expected(context, "SORTED", values) else None


@function("SORTED_UNIQUE", 1)
def sorted_unique(context: QueryContext, values: Value) -> Value:
    return sorted_values(distinct(values)) if array_expected(context, "SORTED_UNIQUE", values) else None


@function("FLATTEN", 1, 2)
def flatten(context: QueryContext, values: Value, depth: Value = 1) -> Value:
    if not array_expected(context, "FLATTEN", values):
        return None
    return flattened(values, max(1, int(to_number(depth))))


def flattened(values: list[Value], depth: int) -> list[Value]:
    """Members of member arrays moved up, `depth` times."""
    result: list[Value] = []
    for value in values:
        if isinstance(value, list) and depth > 0:
            result.extend(flattened(value, depth - 1))
        else:
            result.append(value)
    return result


@function("SLICE", 2, 3)
def slice_array(context: QueryContext, values: Value, start: Value, count: Value = None) -> Value:
    if not array_expected(context, "SLICE", values):
        return None
    begin = int(to_number(start))
    begin = max(0, len(values) + begin) if begin < 0 else begin
    if count is None:
        return values[begin:]
    size = int(to_number(count))
    end = len(values) + size if size < 0 else begin + size
    return values[begin:end] if end > begin else []


@function("REVERSE", 1)
def reverse(context: QueryContext, values: Value) -> Value:
    if isinstance(values, str):
        return values[::-1]
    return values[::-1] if array_expected(context, "REVERSE", values) else None


@function("POSITION CONTAINS_ARRAY", 2, 3)
def position(context: QueryContext, values: Value, value: Value, as_index: Value = False) -> Value:
    if not array_expected(context, "POSITION", values):
        return None
    found = next((place for place, member in enumerate(values) if equal(member, value)), -1)
    return found if truthy(as_index) else found >= 0


@function("RANGE", 2, 3)
def make_range(context: QueryContext, start: Value, end: Value, step: Value = None) -> Value:
    low, high = to_number(start), to_number(end)
    if step is None:
        low, high = int(low), int(high)
        return list(range(low, high + 1)) if low <= high else list(range(low, high - 1, -1))
    width = to_number(step)
    if width == 0 or (low < high and width < 0) or (low > high and width > 0):
        invalid_argument(context, "RANGE")
        return None
    count = int((high - low) / width + 1e-12) + 1
    return [normal(low + width * place) for place in range(count)]


@function("ZIP", 2)
def zip_arrays(context: QueryContext, keys: Value, values: Value) -> Value:
    if not isinstance(keys, list) or not isinstance(values, list) or len(keys) != len(values):
        invalid_argument(context, "ZIP")
        return None
    pairs: dict[str, Value] = {}
    for key, value in zip(keys, values, strict=True):
        pairs.setdefault(to_text(key), value)
    return pairs
