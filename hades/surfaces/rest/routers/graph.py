"""The graph itself: nodes, what surrounds them, topics."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query

from hades.ports.store import Direction
from hades.retrieval.walks.explore import Reach, node_shown, subgraph
from hades.surfaces.capabilities.fields import AS_OF, ID_CHARACTERS, KNOWN_AT, Id, Moment
from hades.surfaces.rest.services import Served, Services
from schemas.intervals import Mask

reading = APIRouter(tags=["graph"])

AsOf = Annotated[Moment | None, Query(description=AS_OF, examples=["2026-01-31T00:00:00Z"])]
KnownAt = Annotated[Moment | None, Query(description=KNOWN_AT)]
Types = Annotated[list[Id] | None, Query(max_length=32, description="only edges of these types")]
Fanout = Annotated[int, Query(ge=1, le=100, description="edges followed from each node, heaviest first")]
_TOPIC_COLUMNS = ["_key", "level", "name", "parent", "summary", "size", "drift"]


@reading.get("/graph/nodes/{collection}/{key:path}", summary="A node")
async def node(
    collection: Annotated[str, Path(max_length=64, examples=["entities"])],
    key: Annotated[str, Path(max_length=ID_CHARACTERS, examples=["event_loop"])],
    services: Served,
) -> dict[str, Any]:
    """Its facts, degrees and topic; chunks, functions and files with their text."""
    return await services.work(_node, services, f"{collection}/{key}")


@reading.get("/graph/neighbours", summary="What surrounds a node")
async def neighbours(
    services: Served,
    id: Annotated[Id, Query(description="a node", examples=["entities/event_loop"])],
    direction: Direction = Direction.ANY,
    types: Types = None,
    fanout: Fanout = 16,
    as_of: AsOf = None,
    known_at: KnownAt = None,
) -> dict[str, Any]:
    """Its edges and their other ends."""
    reach = Reach(1, fanout, fanout + 1, 2 * fanout, direction, _types(types))
    return await services.work(_subgraph, services, [id], reach, Mask(as_of, known_at))


@reading.get("/graph/subgraph", summary="The graph around some nodes")
async def around(
    services: Served,
    id: Annotated[list[Id], Query(min_length=1, max_length=32, description="nodes to start from")],
    hops: Annotated[int, Query(ge=0, le=3)] = 1,
    direction: Direction = Direction.ANY,
    types: Types = None,
    fanout: Fanout = 8,
    nodes: Annotated[int, Query(ge=1, le=500, description="nodes shown at most")] = 100,
    edges: Annotated[int, Query(ge=0, le=2000, description="edges shown at most")] = 400,
    as_of: AsOf = None,
    known_at: KnownAt = None,
) -> dict[str, Any]:
    """Nodes and edges within a number of hops, inside a budget; `capped` says that there was more."""
    reach = Reach(hops, fanout, nodes, edges, direction, _types(types))
    return await services.work(_subgraph, services, id, reach, Mask(as_of, known_at))


@reading.get("/hierarchy", summary="Topics")
async def hierarchy(services: Served, limit: Annotated[int, Query(ge=1, le=2000)] = 500) -> dict[str, Any]:
    """Super-topics (level 2) and topics (level 1) of the snapshot that serves, largest first."""
    return await services.work(_hierarchy, services, limit)


def _types(types: list[str] | None) -> tuple[str, ...] | None:
    return tuple(types) if types else None


def _node(services: Services, identifier: str) -> dict[str, Any]:
    with services.answers.lease() as view:
        return node_shown(view, identifier)


def _subgraph(services: Services, identifiers: list[str], reach: Reach, mask: Mask) -> dict[str, Any]:
    with services.answers.lease() as view:
        return subgraph(view, identifiers, reach, mask)


def _hierarchy(services: Services, limit: int) -> dict[str, Any]:
    rows = [row for batch in services.readable.scan("clusters", columns=_TOPIC_COLUMNS) for row in batch.to_pylist()]
    with services.answers.lease() as view:
        numbers = view.number([f"clusters/{row['_key']}" for row in rows])
        snapshot = view.info.snapshot
    shown = [
        {"id": f"clusters/{row.pop('_key')}", **row, "parent": f"clusters/{row['parent']}" if row["parent"] else None}
        for row, number in zip(rows, np.asarray(numbers).tolist(), strict=True)
        if number >= 0
    ]
    shown.sort(key=lambda topic: (-topic["level"], -topic["size"], topic["id"]))
    return {"snapshot": snapshot, "topics": shown[:limit], "total": len(shown)}
