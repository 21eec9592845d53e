"""Neighbours: one query for all nodes of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from aql import load
from hades.errors import BadQuery
from hades.ports.store import Direction
from hades.ports.store_tables import NEIGHBOUR_SCHEMA
from hades.stores import questions, rows
from hades.stores.arango.scope import Scope, chunks
from schemas.catalogue import Collection, EdgeShape
from schemas.intervals import Mask, iso

NODES_PER_QUERY = 5_000


def neighbours(
    scope: Scope,
    nodes: Sequence[str],
    edges: str,
    direction: Direction,
    types: Sequence[str] | None,
    fanout: int,
    mask: Mask,
) -> pa.Table:
    """See `RowStore.neighbours`."""
    collection, shape = _edges(edges)
    questions.check_limit("fanout", fanout)
    binds = {**_filters(collection, shape, types, mask), "weight": shape.weight_field, "fanout": fanout}
    if direction is Direction.OUT:
        text = load("graph/expand_outbound")
    elif direction is Direction.IN:
        text = load("graph/expand_inbound")
    else:
        text = load("graph/expand_any")
    found = [
        edge
        for some in chunks(list(dict.fromkeys(nodes)), NODES_PER_QUERY)
        for edge in scope.query(text, {**binds, "nodes": list(some)}, f"following {edges}")
    ]
    columns = [list(column) for column in zip(*found, strict=True)] or [[] for _ in NEIGHBOUR_SCHEMA]
    weights = NEIGHBOUR_SCHEMA.get_field_index("weight")
    columns[weights] = [None if weight is None else float(weight) for weight in columns[weights]]
    return pa.table(columns, schema=NEIGHBOUR_SCHEMA)


def _edges(name: str) -> tuple[Collection, EdgeShape]:
    collection = rows.require(name)
    if collection.edge is None:
        raise BadQuery(f"{name} holds no edges; name an edge collection")
    return collection, collection.edge


def _filters(collection: Collection, shape: EdgeShape, types: Sequence[str] | None, mask: Mask) -> dict[str, Any]:
    return {
        "@edges": collection.name,
        "type": shape.type_field,
        "types": None if types is None else list(types),
        "as_of": None if mask.as_of is None else iso(mask.as_of),
        "known_at": None if mask.known_at is None else iso(mask.known_at),
    }
