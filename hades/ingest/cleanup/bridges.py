"""Bridges after a change of the graph: one with a missing node or edge goes, one read elsewhere now says where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.manifest import as_table
from hades.ingest.sync_rows import Change
from hades.ports.store import RowStore
from schemas.record import canonical_json

_COLUMNS = ["_key", "nodes", "edges", "provenance"]


def correct_bridges(store: RowStore, changed_ids: Sequence[str] | None = None) -> Change:
    """Drop bridges whose nodes or edges are gone; name the present source of every edge of the others.

    With the ids of the entities and relations that went or changed only bridges over these are looked at. A pinned
    bridge is kept while its edges stand, so a change of where an edge was read must not cost it.
    """
    batches = store.scan("bridge_cache", columns=_COLUMNS) if changed_ids is None or changed_ids else ()
    rows = [row for batch in batches for row in _over(batch, changed_ids).to_pylist()]
    if not rows:
        return Change()
    nodes = _standing(store, "entities", (node for row in rows for node in row["nodes"]), ["_key"])
    edges = _standing(store, "relations", (edge for row in rows for edge in row["edges"]), ["_key", "provenance"])
    broken = [
        row["_key"] for row in rows if not (set(row["nodes"]) <= nodes.keys() and set(row["edges"]) <= edges.keys())
    ]
    store.delete("bridge_cache", keys=broken)
    left = set(broken)
    told = {row["_key"]: _tell(row["provenance"], edges) for row in rows if row["_key"] not in left}
    changed = [
        {"_key": row["_key"], "provenance": told[row["_key"]]}
        for row in rows
        if row["_key"] in told and told[row["_key"]] != row["provenance"]
    ]
    if changed:
        store.patch("bridge_cache", as_table("bridge_cache", changed))
    return Change(changed=len(changed), removed=len(broken))


def _over(batch: pa.RecordBatch, ids: Sequence[str] | None) -> pa.RecordBatch:
    """The bridges that pass over one of these nodes or edges; all of them where no ids are given."""
    if ids is None:
        return batch
    rows = [pc.list_parent_indices(batch.column(name)) for name in ("nodes", "edges")]
    hits = [pc.is_in(pc.list_flatten(batch.column(name)), value_set=pa.array(ids)) for name in ("nodes", "edges")]
    touched = pa.concat_arrays([row.filter(hit) for row, hit in zip(rows, hits, strict=True)])
    return batch.take(pc.unique(touched))


def _standing(
    store: RowStore, collection: str, identifiers: Iterable[str], columns: list[str]
) -> dict[str, dict[str, Any]]:
    keys = sorted({one.partition("/")[2] for one in identifiers})
    return {f"{collection}/{row['_key']}": row for row in store.get(collection, keys, columns=columns).to_pylist()}


def _tell(provenance: str, edges: Mapping[str, dict[str, Any]]) -> str:
    """The provenance with each edge's document and span as the relation has them now."""
    held = orjson.loads(provenance)
    steps = []
    for step in held.get("edges", ()):
        source = edges[step["id"]]["provenance"] or {"doc": "", "span": None}
        steps.append({**step, "doc": source["doc"], "span": source["span"]})
    return canonical_json({**held, "edges": steps})
