"""Tiny corpora that can be checked by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa

from schemas.record import TIME

Row = dict[str, Any]
View = tuple[pa.Table, pa.Table]  # chunks and documents, as `derive` takes them


def build_view(rows: Sequence[Row]) -> View:
    """A corpus of rows with id, text and, where they matter, title, source and facts; one chunk
    each unless told.
    """
    documents = {
        "_key": [row["id"] for row in rows],
        "origin": [row.get("origin", row["id"]) for row in rows],
        "title": [row.get("title", "") for row in rows],
        "source": [row.get("source", "passages") for row in rows],
        "created": pa.array([row.get("created") for row in rows], TIME),
        "facts": [json.dumps(row.get("facts", {})) for row in rows],
        "domains": pa.array([row.get("domains", []) for row in rows], pa.list_(pa.string())),
    }
    chunks: list[Row] = []
    for row in rows:
        cuts = row.get("cuts", [0, len(row["text"])])
        for begin, end in pairwise(cuts):
            text = row["text"][begin:end]
            chunks.append(
                {
                    "_key": f"c{row['id']}-{begin}",
                    "document": f"documents/{row['id']}",
                    "text": text,
                    "span": [begin, end],
                }
            )
    schema = pa.schema(
        [
            ("_key", pa.string()),
            ("document", pa.string()),
            ("text", pa.string()),
            ("span", pa.list_(pa.int64())),
        ]
    )
    return pa.Table.from_pylist(chunks, schema=schema), pa.table(documents)
