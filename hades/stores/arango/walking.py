"""Neighbours and paths: one query for all nodes of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from aql import load
from hades.errors import BadQuery
from hades.ports.store import DEFAULT_COST, NEIGHBOUR_SCHEMA, Direction, StorePath
from hades.stores import cheapest, questions, rows
from hades.stores.arango.scope import Scope, chunks
from schemas.catalogue import Collection, EdgeShape
from schemas.intervals import Mask, iso

NODES_PER_QUERY = 5_000
_AGAINST = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT, Direction.ANY: Direction.ANY}


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


def cheapest_paths(
    scope: Scope,
    source: str,
    target: str,
    k: int,
    max_hops: int,
    edges: str,
    direction: Direction,
    types: Sequence[str] | None,
    mask: Mask,
    max_work: int,
) -> list[StorePath]:
    """See `RowStore.cheapest_paths`.

    The search is the one of both stores; a weighted traversal on the server would neither count its work nor order
    equal costs.
    """
    collection, shape = _edges(edges)
    questions.check_limit("k", k)
    questions.check_limit("max_hops", max_hops)
    binds = {
        **_filters(collection, shape, types, mask),
        "cost": shape.cost_field or "cost",
        "default_cost": DEFAULT_COST,
        "limit": max_work + 1,  # one too many is enough to know that the budget is spent
    }

    def expand(way: Direction) -> cheapest.Expand:
        if way is Direction.OUT:
            text = load("graph/list_steps_outbound")
        elif way is Direction.IN:
            text = load("graph/list_steps_inbound")
        else:
            text = load("graph/list_steps_any")
        return lambda nodes: [
            cheapest.Step(node, neighbour, edge, float(cost))
            for some in chunks(nodes, NODES_PER_QUERY)
            for node, neighbour, edge, cost in scope.query(text, {**binds, "nodes": list(some)}, f"following {edges}")
        ]

    return cheapest.cheapest_paths(
        expand(direction), expand(_AGAINST[direction]), source, target, k=k, max_hops=max_hops, max_work=max_work
    )


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
