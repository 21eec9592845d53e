"""Small Arrow arrays from Python values and back, without pandas.

Arrow imports pandas, where it is installed, at its first conversion of a Python value (`pa.array`, `pa.scalar`,
`Table.from_pylist`, `to_numpy`). That takes 0.6 s, more than the rest of a question. Arrays that are assembled from
their buffers need no conversion, and neither does `to_pylist`. A process that converts a lot calls
`hide_pandas_from_arrow` first.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

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
