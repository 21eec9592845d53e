"""Weights as one Parquet file: every row to be restored, and in its footer what they were made with.

Equal weights give equal bytes: rows in key order, canonical JSON, no time of writing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.stages.weights.weight_rules import WeightError
from schemas.catalogue import collection_named
from schemas.record import canonical_json
from schemas.telemetry import WeightConfig

FILE = "weights.parquet"
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "relations": ("_key", "weight", "weight_components", "cost", "sim", "learned"),
    "mentions": ("_key", "weight", "learned"),
}
_COLLECTION = "collection"
_FOOTER = b"hades.weights"
_FORMAT = 1


@dataclass(frozen=True)
class WeightFile:
    """What a file holds: rows by collection, the configuration, and the report of the weighing."""

    rows: Mapping[str, pa.Table]
    config: Sequence[WeightConfig]
    report: Mapping[str, Any]


def write(path: Path, contents: WeightFile) -> None:
    """Put the weights into a file."""
    import pyarrow.parquet as pq  # with libraries of file systems, which a night without a change does not need

    footer = {
        "format": _FORMAT,
        "config": [row.model_dump(mode="json") for row in contents.config],
        "report": contents.report,
    }
    tables = [
        contents.rows[name].select(list(wanted)).append_column(_COLLECTION, _repeat(name, contents.rows[name]))
        for name, wanted in COLUMNS.items()
    ]
    table = pa.concat_tables(tables, promote_options="default")
    marked = table.replace_schema_metadata({_FOOTER: canonical_json(footer).encode()})
    pq.write_table(marked, path, compression="zstd", use_dictionary=[_COLLECTION], store_schema=True)


def read(path: Path) -> WeightFile:
    """What a file holds, in the catalogue's types."""
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise WeightError(f"{path.name} cannot be read as Parquet ({error}); restore another version") from error
    footer = orjson.loads((table.schema.metadata or {}).get(_FOOTER, b"{}"))
    if footer.get("format") != _FORMAT:
        raise WeightError(
            f"{path.name} holds weights of format {footer.get('format')}, this version reads {_FORMAT}; "
            "restore another version"
        )
    if "learned" not in table.column_names:  # written before use taught anything
        table = table.append_column("learned", pa.nulls(table.num_rows, pa.float64()))
    rows = {name: _of(table, name) for name in COLUMNS}
    return WeightFile(rows, [WeightConfig.model_validate(row) for row in footer["config"]], footer["report"])


def _of(table: pa.Table, collection: str) -> pa.Table:
    declared = collection_named(collection)
    assert declared is not None
    schema = pa.schema([declared.schema.field(name) for name in COLUMNS[collection]])
    chosen = table.filter(pc.equal(table.column(_COLLECTION), collection))
    return chosen.select(schema.names).cast(schema).combine_chunks()


def _repeat(name: str, table: pa.Table) -> pa.Array:
    return pa.repeat(pa.scalar(name, pa.string()), table.num_rows)
