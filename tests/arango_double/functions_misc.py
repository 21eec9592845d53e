"""Type checks and casts, null handling, control of a query (FAIL, WARN, ASSERT, SLEEP)."""

import re
import time

from tests.arango_double.context import QueryContext
from tests.arango_double.errors import aql_error
from tests.arango_double.registry import function
from tests.arango_double.values import (
    ARRAY,
    BOOL,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Value,
    to_array,
    to_number,
    to_text,
    truthy,
    type_name,
    type_rank,
)

_SLICE_SECONDS = 0.01
KEY_PATTERN = re.compile(r"[A-Za-z0-9_\-.@()+,=;$!*'%:]{1,254}")


def _type_check(names: str, rank: int) -> None:
    @function(names, 1)
    def call(_: QueryContext, value: Value) -> bool:
        return type_rank(value) == rank


_type_check("IS_NULL", NULL)
_type_check("IS_BOOL", BOOL)
_type_check("IS_NUMBER", NUMBER)
_type_check("IS_STRING", STRING)
_type_check("IS_ARRAY IS_LIST", ARRAY)
_type_check("IS_OBJECT IS_DOCUMENT", OBJECT)


@function("TYPENAME", 1)
def typename(_: QueryContext, value: Value) -> str:
    return type_name(value)


@function("IS_KEY", 1)
def is_key(_: QueryContext, value: Value) -> bool:
    return isinstance(value, str) and KEY_PATTERN.fullmatch(value) is not None


@function("TO_NUMBER", 1)
def cast_number(_: QueryContext, value: Value) -> Value:
    return to_number(value)


@function("TO_STRING", 1)
def cast_string(_: QueryContext, value: Value) -> str:
    return to_text(value)


@function("TO_BOOL", 1)
def cast_bool(_: QueryContext, value: Value) -> bool:
    return truthy(value)


@function("TO_ARRAY TO_LIST", 1)
def cast_array(_: QueryContext, value: Value) -> list[Value]:
    return to_array(value)


@function("NOT_NULL", 1, None)
def not_null(_: QueryContext, *values: Value) -> Value:
    return next((value for value in values if value is not None), None)


@function("FIRST_LIST", 1, None)
def first_list(_: QueryContext, *values: Value) -> Value:
    return next((value for value in values if isinstance(value, list)), None)


@function("FIRST_DOCUMENT", 1, None)
def first_document(_: QueryContext, *values: Value) -> Value:
    return next((value for value in values if isinstance(value, dict)), None)


@function("NOOPT NOEVAL PASSTHRU", 1)
def passthru(_: QueryContext, value: Value) -> Value:
    return value


@function("FAIL", 0, 1)
def fail(_: QueryContext, reason: Value = "") -> Value:
    aql_error(1569, f"FAIL({to_text(reason)}) called", "executing")


@function("ASSERT", 2)
def assert_true(_: QueryContext, condition: Value, message: Value) -> Value:
    if not truthy(condition):
        aql_error(1593, to_text(message), "executing")
    return True


@function("WARN", 2)
def warn(context: QueryContext, condition: Value, message: Value) -> bool:
    if not truthy(condition):
        context.warn(1594, to_text(message))
        return False
    return True


@function("SLEEP", 1)
def sleep(context: QueryContext, seconds: Value) -> Value:
    end = time.monotonic() + to_number(seconds)
    while (left := end - time.monotonic()) > 0:
        context.check()
        time.sleep(min(left, _SLICE_SECONDS))
    context.check()
    return None
