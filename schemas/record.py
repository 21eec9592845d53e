"""Base of every record; a record as Arrow columns and back."""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import orjson
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

# The base of every record: its marks, its bounds, and the text of its free-form fields. Columns and
# Arrow schemas are made from records by `schemas.record`. A process that asks a question loads no
# Arrow.


class VectorColumn:
    """Marks a list of numbers that is an embedding: stored as float32, finite, one dimension per
    model.
    """


class JsonColumn:
    """Marks a free-form object: stored as canonical JSON text in Arrow, as an object in
    ArangoDB.
    """


Vector = Annotated[tuple[float, ...], VectorColumn()]
JsonObject = dict[str, Any]
Json = Annotated[JsonObject, JsonColumn()]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]


class Record(BaseModel):
    """An immutable row. It knows its field names and bounds, and nothing of storage.

    Its validator is made with the first row: a process writes or reads rows of few collections, and
    making one takes longer than a search.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        use_enum_values=True,
        defer_build=True,
    )


class Keyed(Record):
    """A record with a key; the key comes from content (see `schemas.ids`)."""

    key: str = Field(
        alias="_key",
        description="content-addressed, legal in both stores",
    )


class Edge(Keyed):
    """A directed record between two documents, with both time axes."""

    source: str = Field(alias="_from", description="`_id` of the tail")
    target: str = Field(alias="_to", description="`_id` of the head")
    valid_from: datetime | None = Field(
        None,
        description="when it became true; absent = always was",
    )
    valid_until: datetime | None = Field(
        None,
        description="when it stopped being true; absent = still is",
    )
    recorded_at: datetime | None = Field(None, description="when we learned it")
    retracted_at: datetime | None = Field(None, description="when we withdrew it")


def canonical_json(value: object) -> str:
    """JSON text that is the same for the same value: keys sorted, no spaces. Free-form columns hold
    this form.
    """
    try:
        return orjson.dumps(
            value,
            option=orjson.OPT_SORT_KEYS,
            default=str,
        ).decode()
    except TypeError:
        # orjson refuses a lone surrogate and a huge integer, which hostile input may hold.
        return json.dumps(
            value,
            sort_keys=True,
            separators=(",", ":"),
            default=str,
        )


TIME = pa.timestamp("us", tz="UTC")
Row = TypeVar("Row", bound=Record)


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
    return pa.schema(
        [pa.field(column.name, column.type, column.nullable) for column in columns_of(record)]
    )


def to_table(record: type[Record], rows: Sequence[Record]) -> pa.Table:
    """Records as one Arrow table, for small writes; builds make columns directly."""
    columns = columns_of(record)
    dumped = [row.model_dump(by_alias=True) for row in rows]

    for column in columns:
        if column.is_json:
            for row in dumped:
                row[column.name] = canonical_json(row[column.name])

    return pa.Table.from_pylist(dumped, schema=arrow_schema(record))


def from_rows(record: type[Row], rows: Iterable[dict[str, Any]]) -> list[Row]:
    """Rows of a store as records, in their order; the inverse of `to_table`."""
    json_columns = []
    for column in columns_of(record):
        if column.is_json:
            json_columns.append(column.name)

    records = []
    for row in rows:
        objects = {}
        for name in json_columns:
            if name in row:
                objects[name] = orjson.loads(row[name])

        records.append(record(**{**row, **objects}))

    return records


def repeated(
    value: object,
    kind: pa.DataType,
    rows: int,
) -> pa.Array:
    """The same value in every row; Arrow's own `repeat` cannot repeat a list no times."""
    if rows:
        return pa.repeat(pa.scalar(value, kind), rows)
    return pa.nulls(0, kind)


def _column(name: str, field: FieldInfo) -> Column:
    annotation, nullable = _without_none(field.annotation)
    marks = [*field.metadata, *_marks_within(annotation)]
    if get_origin(annotation) is Annotated:
        inner_type = get_args(annotation)[0]
    else:
        inner_type = annotation

    is_vector = any(isinstance(mark, VectorColumn) for mark in marks)
    is_json = any(isinstance(mark, JsonColumn) for mark in marks)
    if is_vector:
        arrow_type = pa.list_(pa.float32())
    elif is_json:
        arrow_type = pa.string()
    else:
        arrow_type = _arrow_type(inner_type)

    return Column(
        name=field.alias or name,
        type=arrow_type,
        nullable=nullable,
        description=field.description or "",
        is_vector=is_vector,
        is_json=is_json,
        choices=tuple(map(str, inner_type)) if _is_enum(inner_type) else (),
        minimum=_bound(marks, "ge"),
        maximum=_bound(marks, "le"),
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
    """Marks of an Annotated type that stands inside `X | None`, where pydantic does not lift them
    to the field.
    """
    if get_origin(annotation) is not Annotated:
        return []

    marks: list[object] = []
    for mark in get_args(annotation)[1:]:
        if isinstance(mark, FieldInfo):
            marks += mark.metadata
        else:
            marks.append(mark)

    return marks


def _bound(marks: Sequence[object], name: str) -> float | None:
    for mark in marks:
        bound = getattr(mark, name, None)
        if bound is not None:
            return float(bound)

    return None


def _is_enum(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, StrEnum)


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if get_origin(annotation) in (Union, types.UnionType):
        members = []
        for part in get_args(annotation):
            if part is not type(None):
                members.append(part)

        return members[0], len(members) < len(get_args(annotation))

    return annotation, False


def _arrow_type(annotation: Any) -> pa.DataType:
    arrow_types = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        datetime: TIME,
    }
    if annotation in arrow_types:
        return arrow_types[annotation]
    if get_origin(annotation) is Annotated:
        return _arrow_type(get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return pa.list_(_arrow_type(get_args(annotation)[0]))
    if _is_enum(annotation):
        return pa.string()
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return pa.struct([pa.field(child.name, child.type) for child in arrow_schema(annotation)])

    raise TypeError(
        f"{annotation!r} has no Arrow type; use str, int, float, bool, datetime, tuple or a Record"
    )
