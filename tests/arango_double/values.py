"""AQL values: truth, the order over all types, equality across number types, and conversions.

Values are what JSON gives: None, bool, int, float, str, list, dict. Missing array members and attributes count as null
in comparisons, so `[] == [null]`.
"""

import json
import math
from functools import total_ordering
from typing import Any

from tests.arango_double.collation import collation_key

Value = Any
Row = dict[str, Any]

NULL, BOOL, NUMBER, STRING, ARRAY, OBJECT = range(6)
TYPE_NAMES = ("null", "bool", "number", "string", "array", "object")


def type_rank(value: Value) -> int:
    """Position of the value's type in the order null < bool < number < string < array < object."""
    if value is None:
        return NULL
    if value is True or value is False:
        return BOOL
    if isinstance(value, (int, float)):
        return NUMBER
    if isinstance(value, str):
        return STRING
    if isinstance(value, list):
        return ARRAY
    if isinstance(value, dict):
        return OBJECT
    raise TypeError(f"not an AQL value: {value!r}")


def type_name(value: Value) -> str:
    return TYPE_NAMES[type_rank(value)]


def is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def truthy(value: Value) -> bool:
    """null, false, 0 and "" are false; every array and object is true."""
    if isinstance(value, (list, dict)):
        return True
    return bool(value)


def compare(left: Value, right: Value) -> int:
    """Negative, zero or positive, over all types."""
    rank, other = type_rank(left), type_rank(right)
    if rank != other:
        return -1 if rank < other else 1
    if rank == NULL:
        return 0
    if rank == STRING:
        if left == right:
            return 0
        return -1 if collation_key(left) < collation_key(right) else 1
    if rank == ARRAY:
        return _compare_arrays(left, right)
    if rank == OBJECT:
        return _compare_objects(left, right)
    return int(left > right) - int(left < right)


def equal(left: Value, right: Value) -> bool:
    """Equality of AQL: 1 == 1.0, but true != 1."""
    if isinstance(left, str) or isinstance(right, str):
        return isinstance(left, str) and isinstance(right, str) and left == right
    return compare(left, right) == 0


def _compare_arrays(left: list[Value], right: list[Value]) -> int:
    for position in range(max(len(left), len(right))):
        first = left[position] if position < len(left) else None
        second = right[position] if position < len(right) else None
        result = compare(first, second)
        if result:
            return result
    return 0


def _compare_objects(left: dict[str, Value], right: dict[str, Value]) -> int:
    for name in sorted({*left, *right}, key=collation_key):
        result = compare(left.get(name), right.get(name))
        if result:
            return result
    return 0


@total_ordering
class SortKey:
    """Wraps any AQL value for Python's sort."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __lt__(self, other: "SortKey") -> bool:
        return compare(self.value, other.value) < 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SortKey) and compare(self.value, other.value) == 0

    __hash__ = None  # type: ignore[assignment]


def sort_key(value: Value) -> tuple[int, Any]:
    """A key for sorting; cheap for scalars."""
    rank = type_rank(value)
    if rank == STRING:
        return rank, collation_key(value)
    if rank == NULL:
        return rank, 0
    if rank in (BOOL, NUMBER):
        return rank, value
    return rank, SortKey(value)


def hash_key(value: Value) -> Any:
    """A hashable stand-in: equal values have equal keys."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, list):
        keys = [hash_key(member) for member in value]
        while keys and keys[-1] is None:
            keys.pop()
        return ("array", *keys)
    return ("object", frozenset((name, hash_key(member)) for name, member in value.items() if member is not None))


def distinct(values: list[Value]) -> list[Value]:
    """First occurrences, in order."""
    seen: dict[Any, Value] = {}
    for value in values:
        seen.setdefault(hash_key(value), value)
    return list(seen.values())


def normal(number: float) -> Value:
    """A number as the server prints it: whole doubles without fraction, non-finite ones as null."""
    if isinstance(number, int):
        return number if -(2**63) <= number < 2**64 else float(number)
    if not math.isfinite(number):
        return None
    if number.is_integer() and abs(number) < 2**53:
        return int(number)
    return number


def to_number(value: Value) -> int | float:
    """TO_NUMBER: null and unparsable text give 0, an array gives its only member."""
    if value is None or isinstance(value, dict):
        return 0
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, list):
        return to_number(value[0]) if len(value) == 1 else 0
    try:
        number = float(value.strip()) if "_" not in value else 0.0
    except ValueError:
        return 0
    result = normal(number)
    return 0 if result is None else result


def to_text(value: Value) -> str:
    """TO_STRING: null is empty, arrays and objects become JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return to_json(value)


def to_json(value: Value) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
