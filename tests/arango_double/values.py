"""AQL values: truth, the order over all types, equality across number types, and conversions.

Values are what JSON gives. Texts are ordered as by a server with an English locale, which compares
through ICU and not by code point: `"a" < "B"` and `"a_1" < "a1"` are true. That is exact for
printable ASCII and near for accented letters.
"""

import json
import math
import unicodedata
from functools import lru_cache
from typing import Any

Value = Any
Row = dict[str, Any]
_ASCII = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_PRIMARY = {character: rank + 1 for rank, character in enumerate(_ASCII)}
_OTHER = 1000
_PLAIN = {type(None), str, int, float}  # equal as in Python among each other, and to nothing else


def order(value: Value) -> tuple[Any, ...]:
    """A key that sorts null < bool < number < text < array < object; equal values, 1 and 1.0, have
    equal keys.

    A missing member counts as null, so `[] == [null]`. Objects are only told apart.
    """
    if value is None:
        return (0,)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, (int, float)):
        return (2, value)
    if isinstance(value, str):
        return (3, collate(value))
    if isinstance(value, list):
        members = [order(member) for member in value]
        while members and members[-1] == (0,):
            members.pop()
        return (4, tuple(members))
    return (
        5,
        tuple(
            sorted((name, order(member)) for name, member in value.items() if member is not None)
        ),
    )


@lru_cache(maxsize=65536)
def collate(text: str) -> tuple[Any, ...]:
    """Weights of the letters, then of accents, then lower before upper case, then the text
    itself.
    """
    letters: list[int] = []
    accents: list[int] = []
    cases: list[int] = []
    for character in unicodedata.normalize("NFD", text):
        if unicodedata.combining(character):
            accents.append(len(letters) * 0x10000 + ord(character))
            continue
        lowered = character.lower()
        letters.append(_PRIMARY.get(lowered, _OTHER + ord(lowered[0])))
        cases.append(int(character != lowered))
    return tuple(letters), tuple(accents), tuple(cases), text


def equal(left: Value, right: Value) -> bool:
    """Equality of AQL: 1 == 1.0, but true != 1."""
    if type(left) in _PLAIN or type(right) in _PLAIN:
        return type(left) in _PLAIN and type(right) in _PLAIN and bool(left == right)
    return hash_key(left) == hash_key(right)


def hash_key(value: Value) -> Any:
    """A hashable stand-in: equal values have equal keys."""
    return value if isinstance(value, str) else order(value)


def distinct(values: list[Value]) -> list[Value]:
    """First occurrences, in order."""
    return list({hash_key(value): value for value in reversed(values)}.values())[::-1]


def truthy(value: Value) -> bool:
    """null, false, 0 and "" are false; every array and object is true."""
    return True if isinstance(value, (list, dict)) else bool(value)


def normal(number: float) -> Value:
    """A number as the server prints it: whole doubles without fraction, non-finite ones as null."""
    if isinstance(number, float) and not math.isfinite(number):
        return None
    return int(number) if number == int(number) and abs(number) < 2**53 else number


def to_number(value: Value) -> int | float:
    """TO_NUMBER of null, truth and numbers; 0 for the rest, which no query adds up."""
    return value if isinstance(value, (int, float)) else 0


def to_text(value: Value) -> str:
    """TO_STRING: null is empty, arrays and objects become JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
