"""Look at the published graph: a node, its neighbours, the graph around some nodes, the topics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hades.surfaces.capabilities.capability import Capability, Cli, OmittedSurface, Request, Rest, Shell
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import AS_OF, KNOWN_AT, Id, Moment

Fanout = Annotated[int, Field(ge=1, le=100)]
FANOUT = "Number of edges followed from each node, heaviest first."


class NodeRequest(Request):
    """Show a node: its facts, degrees and topic; chunks, functions and files with their text."""

    id: Id = Field(description="Id of a node, for example entities/event_loop.", examples=["entities/event_loop"])


class WalkRequest(Request):
    """Which edges are followed, and at which time."""

    direction: Literal["any", "outbound", "inbound"] = Field("any", description="Direction of the edges to follow.")
    types: tuple[Id, ...] = Field((), max_length=32, description="Only edges of these types; by default all.")
    as_of: Moment | None = Field(None, description=AS_OF, examples=["2026-01-31T00:00:00Z"])
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class NeighboursRequest(WalkRequest):
    """Show the edges of a node and the nodes at their other ends."""

    id: Id = Field(description="Id of a node, for example entities/event_loop.", examples=["entities/event_loop"])
    fanout: Fanout = Field(16, description=FANOUT)


class SubgraphRequest(WalkRequest):
    """Show the nodes and edges within a number of hops; `capped` tells whether there are more."""

    id: Annotated[tuple[Id, ...], Shell(metavar="ID...")] = Field(
        min_length=1, max_length=32, description="Ids of the nodes to start from."
    )
    hops: Annotated[int, Field(ge=0, le=3)] = Field(1, description="Maximum number of edges from a start node.")
    fanout: Fanout = Field(8, description=FANOUT)
    nodes: Annotated[int, Field(ge=1, le=500)] = Field(100, description="Maximum number of nodes.")
    edges: Annotated[int, Field(ge=0, le=2000)] = Field(400, description="Maximum number of edges.")


class TopicsRequest(Request):
    """List super-topics (level 2) and topics (level 1) of the current snapshot, largest first."""

    limit: Annotated[int, Field(ge=1, le=2000)] = Field(500, description="Maximum number of topics.")


def show_node(request: NodeRequest, context: CallContext) -> dict[str, Any]:
    """Read one node."""
    from hades.retrieval.walks.explore import node_shown

    with context.answers.lease() as view:
        return node_shown(view, request.id)


def show_neighbours(request: NeighboursRequest, context: CallContext) -> dict[str, Any]:
    """Walk one hop."""
    fanout = request.fanout
    return _walk(context, (request.id,), request, hops=1, fanout=fanout, nodes=fanout + 1, edges=2 * fanout)


def show_subgraph(request: SubgraphRequest, context: CallContext) -> dict[str, Any]:
    """Walk the requested number of hops."""
    limits = {"hops": request.hops, "fanout": request.fanout, "nodes": request.nodes, "edges": request.edges}
    return _walk(context, request.id, request, **limits)


def list_topics(request: TopicsRequest, context: CallContext) -> dict[str, Any]:
    """Read the topics that the current snapshot has."""
    from hades.retrieval.walks.explore import topics_shown

    with context.answers.lease() as view:
        return topics_shown(context.readable, view, request.limit)


def _walk(context: CallContext, ids: tuple[str, ...], request: WalkRequest, **limits: int) -> dict[str, Any]:
    from hades.ports.store import Direction
    from hades.retrieval.walks.explore import Reach, subgraph
    from schemas.intervals import Mask

    reach = Reach(direction=Direction(request.direction), types=request.types or None, **limits)
    with context.answers.lease() as view:
        return subgraph(view, ids, reach, Mask(request.as_of, request.known_at))


_NO_TOOL = OmittedSurface("agents ask graph_query_paths, which returns paths with their evidence")
_NO_TASK = OmittedSurface("flows call get_entity_neighborhood and get_relevant_subgraph of tasks/retrieval.py")
_VIEWS = "hades.surfaces.cli.graph_views"
GRAPH_CAPABILITIES = (
    Capability(
        name="graph.node",
        mode="ro",
        request=NodeRequest,
        call=show_node,
        cli=Cli(("graph", "node"), ("id",)),
        rest=Rest("GET", "/graph/nodes/{id:path}", "graph", "A node"),
        mcp=_NO_TOOL,
        task=_NO_TASK,
    ),
    Capability(
        name="graph.neighbours",
        mode="ro",
        request=NeighboursRequest,
        call=show_neighbours,
        cli=Cli(("graph", "neighbours"), ("id",), view=f"{_VIEWS}:show_subgraph"),
        rest=Rest("GET", "/graph/neighbours", "graph", "The neighbours of a node"),
        mcp=_NO_TOOL,
        task=_NO_TASK,
    ),
    Capability(
        name="graph.subgraph",
        mode="ro",
        request=SubgraphRequest,
        call=show_subgraph,
        cli=Cli(("graph", "subgraph"), ("id",), view=f"{_VIEWS}:show_subgraph"),
        rest=Rest("GET", "/graph/subgraph", "graph", "The graph around some nodes"),
        mcp=_NO_TOOL,
        task=_NO_TASK,
    ),
    Capability(
        name="graph.topics",
        mode="ro",
        request=TopicsRequest,
        call=list_topics,
        cli=Cli(("graph", "topics"), view=f"{_VIEWS}:show_topics"),
        rest=Rest("GET", "/hierarchy", "graph", "Topics"),
        mcp=OmittedSurface("every answer of pathrag_retrieve already names the topics it used"),
        task=OmittedSurface("flows read the collection clusters themselves"),
    ),
)
