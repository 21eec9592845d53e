"""The parts of an answer as Arrow tables, for readers that want rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from schemas.retrieval import Path, Retrieval

_TEXTS, _NUMBERS = pa.list_(pa.string()), pa.list_(pa.int64())
TABLES: dict[str, pa.Schema] = {
    "passages": pa.schema(
        [
            ("rank", pa.int64()), ("id", pa.string()), ("document", pa.string()), ("title", pa.string()),
            ("text", pa.string()), ("score", pa.float64()), ("from", _TEXTS), ("span", _NUMBERS),
            ("headings", _TEXTS), ("path", pa.string()), ("lines", _NUMBERS), ("symbol", pa.string()),
            ("kind", pa.string()),
        ]
    ),
    "paths": pa.schema(
        [
            ("rank", pa.int64()), ("score", pa.float64()), ("reliability", pa.float64()),
            ("confidence", pa.float64()), ("text", pa.string()), ("why", pa.string()), ("nodes", _TEXTS),
            ("relations", _TEXTS), ("documents", _TEXTS),
        ]
    ),
    "ranking": pa.schema([("rank", pa.int64()), ("id", pa.string()), ("score", pa.float64())]),
}  # fmt: skip


def make_result_table(retrieval: Retrieval, part: str) -> pa.Table:
    """The passages, the paths or the ranking, one row each, best first."""
    if part not in TABLES:
        raise ValueError(f"{part!r} is not a part of a result; expected one of {', '.join(TABLES)}")
    if part == "paths":
        rows = [_path_row(path) for path in retrieval.paths]
    else:
        rows = [row.model_dump(by_alias=True) for row in getattr(retrieval, part)]
    return pa.Table.from_pylist(rows, schema=TABLES[part])


def _path_row(path: Path) -> dict[str, Any]:
    plain = path.model_dump(include={"rank", "score", "reliability", "confidence", "text", "why"})
    return {
        **plain,
        "nodes": [node.id for node in path.nodes],
        "relations": [edge.type for edge in path.edges],
        "documents": sorted({edge.provenance.doc for edge in path.edges if edge.provenance.doc}),
    }
