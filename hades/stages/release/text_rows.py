"""Rows as text and back without loss: JSON Lines for programs, Markdown for people. docs/export.md has the format.

A row is one JSON object with the columns of the catalogue. Times are ISO 8601 in UTC with microseconds. Vectors are
lists of numbers in JSON Lines; in Markdown, where nobody reads them, `f32:` and the base64 of their little-endian
floats.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import orjson
import pyarrow as pa

from hades.errors import HadesError
from schemas.catalogue import Collection

Form = Literal["jsonl", "markdown"]
SUFFIXES: dict[Form, str] = {"jsonl": ".jsonl", "markdown": ".md"}
_VECTOR = "f32:"
_OPEN, _CLOSE = "```json", "```"
_TITLE_CHARACTERS = 80


class ExportError(HadesError):
    """An export that cannot be written, or one that cannot be read."""

    http_status = 400


def write_row(row: Mapping[str, Any], collection: Collection, form: Form) -> str:
    """The text of one row, ending in a newline."""
    if form == "jsonl":
        return _dump(row) + "\n"
    packed = {name: _pack(value) if _is_vector(collection, name) else value for name, value in row.items()}
    prose = [str(row[name]).strip() for name in collection.text_fields if row.get(name)]
    title = " ".join((prose[0] if prose else str(row["_key"])).split())[:_TITLE_CHARACTERS]
    quoted = "\n".join(f"> {line}" for text in prose for line in text.splitlines() or [""])
    return f"## {title}\n\n{quoted}\n\n{_OPEN}\n{_dump(packed)}\n{_CLOSE}\n\n" if prose else (
        f"## {title}\n\n{_OPEN}\n{_dump(packed)}\n{_CLOSE}\n\n"
    )  # fmt: skip


def read_rows(lines: Iterable[str], collection: Collection, form: Form, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a file; prose of a Markdown file is not read, its JSON is."""
    is_open = form == "jsonl"
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if form == "markdown" and text == (_CLOSE if is_open else _OPEN):
            is_open = not is_open
        elif is_open and text:
            yield _load(text, collection, f"{name}:{number}")
    if form == "markdown" and is_open:
        raise ExportError(f"{name}: the last block of JSON is not closed; the file was cut off, export again")


def to_batch(rows: list[dict[str, Any]], collection: Collection) -> pa.RecordBatch:
    """Rows as the store takes them: columns that are still declared."""
    held = [field for field in collection.schema if any(field.name in row for row in rows)]
    return pa.RecordBatch.from_pylist([{f.name: row.get(f.name) for f in held} for row in rows], schema=pa.schema(held))


def _dump(row: Mapping[str, Any]) -> str:
    return orjson.dumps(row, default=_plain).decode()


def _plain(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _load(text: str, collection: Collection, place: str) -> dict[str, Any]:
    try:
        row = orjson.loads(text)
        if not isinstance(row, dict) or "_key" not in row:
            raise ValueError("expected an object with _key")
        known = {field.name: field.type for field in collection.schema}
        return {name: _value(row[name], known[name]) for name in row if name in known}
    except (ValueError, TypeError) as error:
        raise ExportError(f"{place}: {error}; fix the line, or export again") from None


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value).astimezone(UTC)
    if isinstance(value, str) and value.startswith(_VECTOR) and pa.types.is_list(kind):
        return np.frombuffer(base64.b64decode(value.removeprefix(_VECTOR)), "<f4").tolist()
    return value


def _is_vector(collection: Collection, name: str) -> bool:
    kind = collection.schema.field(name).type
    return bool(pa.types.is_list(kind) and pa.types.is_float32(kind.value_type))


def _pack(value: list[float] | None) -> str | None:
    if value is None:
        return None
    return _VECTOR + base64.b64encode(np.asarray(value, dtype="<f4").tobytes()).decode()
