"""Base of every record; a record as Arrow columns and back."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
import orjson
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

# The base of every record: its marks, its bounds, and the text of its free-form fields. Columns and Arrow schemas
# are made from records by `schemas.record`. A process that asks a question loads no Arrow.


class VectorColumn:
    """Marks a list of numbers that is an embedding: stored as float32, finite, one dimension per model."""


class JsonColumn:
    """Marks a free-form object: stored as canonical JSON text in Arrow, as an object in ArangoDB."""


Vector = Annotated[tuple[float, ...], VectorColumn()]
Json = Annotated[dict[str, Any], JsonColumn()]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]


class Record(BaseModel):
    """An immutable row. It knows its field names and bounds, and nothing of storage.

    Its validator is made with the first row: a process writes or reads rows of few collections, and making one takes
    longer than a search.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, use_enum_values=True, defer_build=True
    )


class Keyed(Record):
    """A record with a key; the key comes from content (see `schemas.ids`)."""

    key: str = Field(alias="_key", description="content-addressed, legal in both stores")


class Edge(Keyed):
    """A directed record between two documents, with both time axes."""

    source: str = Field(alias="_from", description="`_id` of the tail")
    target: str = Field(alias="_to", description="`_id` of the head")
    valid_from: datetime | None = Field(None, description="when it became true; absent = always was")
    valid_until: datetime | None = Field(None, description="when it stopped being true; absent = still is")
    recorded_at: datetime | None = Field(None, description="when we learned it")
    retracted_at: datetime | None = Field(None, description="when we withdrew it")


def canonical_json(value: object) -> str:
    """JSON text that is the same for the same value: keys sorted, no spaces. Free-form columns hold this form."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str).decode()
    except TypeError:  # a lone surrogate or a huge integer, which orjson refuses and hostile input holds
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


# Small Arrow arrays from Python values and back, without pandas. Arrow imports pandas, where it is installed, at
# its first conversion of a Python value (`pa.array`, `pa.scalar`, `Table.from_pylist`, `to_numpy`). That takes 0.6
# s, more than the rest of a question. Arrays that are assembled from their buffers need no conversion, and neither
# does `to_pylist`. A process that converts a lot calls `hide_pandas_from_arrow` first.


FEW_VALUES = 1024  # above this the conversion by Arrow is faster
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def hide_pandas_from_arrow() -> None:
    """Let Arrow look for pandas once and not find it, so that it converts Python values without loading it.

    Arrow looks again when a frame is converted (`to_pandas`, `Table.from_pandas`). Only `pa.array` of a pandas series
    is different before that: it takes NaN for a number and not for null. Nothing happens where pandas is loaded.
    """
    if "pandas" in sys.modules:
        return
    finder = _RefusePandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.scalar(0, pa.int64())  # the wrapper of Arrow looks for pandas here
        pa.array([0, None])  # and the library below it here
    finally:
        sys.meta_path.remove(finder)


class _RefusePandas:
    """A finder of modules that says of pandas that it is not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is hidden while Arrow looks for it", name=name)


def make_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values as an array of this type, None as null."""
    if len(values) > FEW_VALUES:
        return pa.array(values, kind)
    if pa.types.is_string(kind):
        texts = [b"" if value is None else value.encode() for value in values]
        buffers = [_offsets([len(text) for text in texts]), pa.py_buffer(b"".join(texts))]
    elif pa.types.is_list(kind):
        return _make_lists(values, kind)
    elif pa.types.is_boolean(kind):
        buffers = [_bits([bool(value) for value in values])]
    elif pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz is not None:
        numbers = [0 if value is None else (value - _EPOCH) // _MICROSECOND for value in values]
        buffers = [pa.py_buffer(np.array(numbers, np.int64))]
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        buffers = [pa.py_buffer(np.array([value or 0 for value in values], _number_type(kind)))]
    else:
        return pa.array(values, kind)
    return pa.Array.from_buffers(kind, len(values), [_validity(values), *buffers])


@cache
def make_scalar(value: str | int | bool, kind: pa.DataType) -> pa.Scalar:
    """A constant of a compute function."""
    return make_array([value], kind)[0]


def make_table(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table; a column that a row lacks is null."""
    columns = [make_array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def read_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as dictionaries, as `to_pylist` gives them; Arrow would import pandas to read a time with a zone."""
    columns = {name: _read_values(table.column(name)) for name in table.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _read_values(column: pa.ChunkedArray) -> list[Any]:
    if not (pa.types.is_timestamp(column.type) and column.type.unit == "us" and column.type.tz is not None):
        return list(column.to_pylist())
    numbers = column.cast(pa.int64()).to_pylist()
    return [None if number is None else _EPOCH + number * _MICROSECOND for number in numbers]


def _make_lists(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    inner = make_array([one for value in values for one in value or ()], kind.value_type)
    offsets = _offsets([len(value or ()) for value in values])
    return pa.Array.from_buffers(kind, len(values), [_validity(values), offsets], children=[inner])


def _number_type(kind: pa.DataType) -> np.dtype[Any]:
    letter = "f" if pa.types.is_floating(kind) else "i" if pa.types.is_signed_integer(kind) else "u"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def _offsets(lengths: Sequence[int]) -> pa.Buffer:
    return pa.py_buffer(np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int32))


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    return _bits([value is not None for value in values]) if any(value is None for value in values) else None


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.array(flags, bool), bitorder="little"))


# The columns of a record and the Arrow schema that follows from its fields.


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
