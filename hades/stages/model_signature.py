"""The signature of a registered version as MLflow's file `MLmodel`: what goes in and what comes out, by name and type.

The file names no Python flavour, so nothing can be unpickled from it; MLflow reads the signature all the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

FILE = "MLmodel"


def write_signature(folder: Path, artifact: str, inputs: Iterable[pa.Field], outputs: Iterable[pa.Field]) -> Path:
    """Write the file beside the artifact that it describes."""
    document = {
        "flavors": {"hades": {"file": artifact}},
        "signature": {"inputs": json.dumps(_columns(inputs)), "outputs": json.dumps(_columns(outputs)), "params": None},
    }
    path = folder / FILE
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")  # JSON is YAML
    return path


def _columns(fields: Iterable[pa.Field]) -> list[dict[str, object]]:
    return [{"name": field.name, "required": not field.nullable, **_type_of(field.type)} for field in fields]


def _type_of(kind: pa.DataType) -> dict[str, object]:
    """The type of a column in the words of MLflow."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return {"type": "array", "items": _type_of(kind.value_type)}
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_integer(kind):
        return {"type": "long"}
    if pa.types.is_float32(kind):
        return {"type": "float"}
    return {"type": "double"} if pa.types.is_floating(kind) else {"type": "string"}
