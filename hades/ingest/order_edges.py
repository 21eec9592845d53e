"""Which chunk comes after which, where a source states an order of its documents, as the turns of a talk have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hades.ingest.stated_edges import read_facts
from schemas.catalogue import collection_named
from schemas.edges import ReferenceType
from schemas.ids import edge_key, node_id

Row = dict[str, Any]
_FOLLOWS = '"follows":"'  # documents without it state no order, and their facts are not parsed


def next_edges(documents: pa.Table, chunks: pa.Table) -> list[Row]:
    """From the last chunk of a document to the first of the one that follows it; by key.

    `documents` have _key, origin, source and facts; `chunks` have _key, document and span.
    """
    columns = (documents.column(name).to_pylist() for name in ("_key", "origin", "source", "facts"))
    rows = list(zip(*columns, strict=True))
    by_origin = {(source, origin): key for key, origin, source, _ in rows}
    pairs = [
        (by_origin.get((source, before)), key)
        for key, _, source, facts in rows
        if facts and _FOLLOWS in facts and (before := read_facts(facts).get("follows"))
    ]
    ends = _ends(chunks) if pairs else {}
    found = {}
    for before, after in pairs:
        if before in ends and after in ends and before != after:
            tail, head = node_id("doc_chunks", ends[before][1]), node_id("doc_chunks", ends[after][0])
            key = edge_key(tail, str(ReferenceType.NEXT), head)
            found[key] = {"_key": key, "_from": tail, "_to": head, "type": str(ReferenceType.NEXT)}
    return [found[key] for key in sorted(found)]


def next_table(rows: Sequence[Row]) -> pa.Table:
    """The rows in the catalogue's columns."""
    declared = collection_named("references")
    assert declared is not None
    schema = pa.schema([declared.schema.field(name) for name in ("_key", "_from", "_to", "type")])
    return pa.Table.from_pylist(list(rows), schema=schema)


def _ends(chunks: pa.Table) -> dict[str, tuple[str, str]]:
    """The first and the last chunk of each document, by its key."""
    held: dict[str, list[tuple[int, str]]] = {}
    columns = (chunks.column(name).to_pylist() for name in ("_key", "document", "span"))
    for key, document, span in zip(*columns, strict=True):
        held.setdefault(document.partition("/")[2], []).append((span[0], key))
    return {document: (min(places)[1], max(places)[1]) for document, places in held.items()}
