"""The columns of a record and the Arrow schema that follows from its fields."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

import pyarrow as pa
from pydantic.fields import FieldInfo

from schemas.arrays import make_array, make_table
from schemas.record import JsonColumn, Record, VectorColumn, canonical_json

TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Column:
    """One column of a collection, as both stores and the documentation see it."""

    name: str
    type: pa.DataType
    nullable: bool
    description: str
    is_vector: bool = False
    is_json: bool = False
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    default: object = None


@cache
def columns_of(record: type[Record]) -> tuple[Column, ...]:
    """The columns of a record, in field order."""
    return tuple(_column(name, field) for name, field in record.model_fields.items())


@cache
def arrow_schema(record: type[Record]) -> pa.Schema:
    """The Arrow schema in which rows of this record cross the store port."""
    return pa.schema([pa.field(column.name, column.type, column.nullable) for column in columns_of(record)])


def to_table(record: type[Record], rows: Sequence[Record]) -> pa.Table:
    """Records as one Arrow table, for small writes; builds make columns directly."""
    columns = columns_of(record)
    dumped = [row.model_dump(by_alias=True) for row in rows]
    for column in columns:
        if column.is_json:
            for row in dumped:
                row[column.name] = canonical_json(row[column.name])
    return make_table(dumped, arrow_schema(record))


def repeated(value: object, kind: pa.DataType, rows: int) -> pa.Array:
    """The same value in every row; Arrow's own `repeat` cannot repeat a list no times."""
    return pa.repeat(make_array([value], kind)[0], rows) if rows else pa.nulls(0, kind)


def _column(name: str, field: FieldInfo) -> Column:
    annotation, nullable = _without_none(field.annotation)
    marks = [*field.metadata, *_marks_within(annotation)]
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    is_vector = any(isinstance(mark, VectorColumn) for mark in marks)
    is_json = any(isinstance(mark, JsonColumn) for mark in marks)
    minimum, maximum = _bounds(marks)
    return Column(
        name=field.alias or name,
        type=pa.list_(pa.float32()) if is_vector else pa.string() if is_json else _arrow_type(bare),
        nullable=nullable,
        description=field.description or "",
        is_vector=is_vector,
        is_json=is_json,
        choices=_choices(bare),
        minimum=minimum,
        maximum=maximum,
        default=None if field.is_required() else _default(field, is_json),
    )


def _default(field: FieldInfo, is_json: bool) -> object:
    value = field.get_default(call_default_factory=True)
    if is_json and value is not None:
        return "{}"
    if isinstance(value, StrEnum):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _marks_within(annotation: Any) -> list[object]:
    """Marks of an Annotated type that stands inside `X | None`, where pydantic does not lift them to the field."""
    if get_origin(annotation) is not Annotated:
        return []
    marks = get_args(annotation)[1:]
    return [inner for mark in marks for inner in (mark.metadata if isinstance(mark, FieldInfo) else (mark,))]


def _bounds(marks: Sequence[object]) -> tuple[float | None, float | None]:
    low = next((float(mark.ge) for mark in marks if getattr(mark, "ge", None) is not None), None)  # type: ignore[attr-defined]
    high = next((float(mark.le) for mark in marks if getattr(mark, "le", None) is not None), None)  # type: ignore[attr-defined]
    return low, high


def _choices(annotation: Any) -> tuple[str, ...]:
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return tuple(str(choice) for choice in annotation)
    return ()


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [part for part in get_args(annotation) if part is not type(None)]
        return rest[0], len(rest) < len(get_args(annotation))
    return annotation, False


def _arrow_type(annotation: Any) -> pa.DataType:
    plain = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(), datetime: TIME}
    if annotation in plain:
        return plain[annotation]
    if get_origin(annotation) is Annotated:
        return _arrow_type(get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return pa.list_(_arrow_type(get_args(annotation)[0]))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return pa.string()
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return pa.struct([pa.field(child.name, child.type) for child in arrow_schema(annotation)])
    raise TypeError(f"{annotation!r} has no Arrow type; use str, int, float, bool, datetime, tuple or a Record")
