"""Nodes, topics, overview, compare, corrections, snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated, Any, Literal

from pydantic import Field

from hades.curation import list_edits, update_entity
from hades.errors import SnapshotError
from hades.ports.services import utc_now
from hades.ports.store import Direction
from hades.retrieval.answer.overview import describe_corpus
from hades.retrieval.walks.neighbourhood import Reach, compare_views, node_shown, subgraph, topics_shown
from hades.snapshot.open import snapshots
from hades.surfaces.capabilities.capability import (
    AS_OF,
    KNOWN_AT,
    CallContext,
    Capability,
    Cli,
    FreeForm,
    Id,
    Mcp,
    Moment,
    Nothing,
    OmittedSurface,
    Reason,
    Request,
    Rest,
    Share,
    Shell,
    read_pairs,
)
from hades.wiring import open_build_context, open_view, paid_models
from schemas.builds import EditState
from schemas.catalogue import ALL
from schemas.ids import Mask

# Look at the published graph: a node, its neighbours, the graph around some nodes, the topics.


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
    with context.answers.lease() as view:
        return topics_shown(context.readable, view, request.limit)


def _walk(context: CallContext, ids: tuple[str, ...], request: WalkRequest, **limits: int) -> dict[str, Any]:
    reach = Reach(direction=Direction(request.direction), types=request.types or None, **limits)
    with context.answers.lease() as view:
        return subgraph(view, ids, reach, Mask(request.as_of, request.known_at))


_NO_TOOL = OmittedSurface("agents ask graph_query_paths, which returns paths with their evidence")
_NO_TASK = OmittedSurface("flows call get_entity_neighborhood and get_relevant_subgraph of tasks/retrieval.py")
_VIEWS = "hades.surfaces.cli.show_answers"
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


# Look at the corpus as a whole, and at what changed between two published graphs.


class OverviewRequest(Nothing):
    """Show the corpus at a glance: what it holds, what it speaks of most, and example questions made from it."""


class CompareRequest(Request):
    """Compare two published graphs: which documents, names and topics came and went."""

    before: Id | None = Field(None, description="Snapshot id; by default the one that served before.")
    after: Id | None = Field(None, description="Snapshot id; by default the one that serves.")


def describe(request: OverviewRequest, context: CallContext) -> dict[str, Any]:
    """Read the store and the snapshot that serves."""
    return describe_corpus(context.readable)


def compare(request: CompareRequest, context: CallContext) -> dict[str, Any]:
    """Open both snapshots and compare them."""
    known = [one.snapshot for one in snapshots(context.settings.home) if one.problem is None]
    after = request.after or next(iter(known), None)
    before = request.before or next((one for one in known if one != after), None)
    if after is None or before is None:
        raise SnapshotError(
            f"{len(known)} snapshots can be read, expected two to compare; run `hades run nightly` again"
        )
    with (
        closing(open_view(context.settings, before)) as older,
        closing(open_view(context.settings, after)) as newer,
    ):
        return compare_views(older, newer)


OVERVIEW = Capability(
    name="overview",
    mode="ro",
    request=OverviewRequest,
    call=describe,
    cli=Cli(("overview",)),
    rest=Rest("GET", "/overview", "graph", "The corpus at a glance"),
    mcp=OmittedSurface("agents ask questions; the resource of the graph already states its counts"),
    task=OmittedSurface("a look at the corpus for people; flows read the store"),
)
COMPARE = Capability(
    name="compare",
    mode="ro",
    request=CompareRequest,
    call=compare,
    cli=Cli(("compare",), view="hades.surfaces.cli.show_answers:show_comparison"),
    rest=Rest("GET", "/snapshots/compare", "snapshots", "What changed between two graphs"),
    mcp=OmittedSurface("a question of whoever runs the builds, not of agents"),
    task=OmittedSurface("the report of a build already says what it changed"),
)
# Corrections of entities: make one, list them, approve one, undo one.
EntityId = Annotated[Id, Shell(metavar="ENTITY_ID")]
EditId = Annotated[Id, Shell(metavar="EDIT_ID")]
_WHY = "Reason, for whoever reads the list of edits."
_EDIT_ID = "Id of the edit, as `hades entity edits` lists it."


def read_fields(pairs: Sequence[str]) -> dict[str, Any]:
    """FIELD=VALUE pairs of the command line."""
    return read_pairs(pairs)


class UpdateEntityRequest(Request):
    """Correct what the graph says about an entity. The edit is idempotent, survives rebuilds and can be undone.

    A change of identity of a much connected entity, or against another person's edit, waits for a second approval.
    Questions see it after the next publish.
    """

    entity_id: EntityId = Field(description="Id of the entity, as paths show it.", examples=["entities/ada_lovelace"])
    fields: Annotated[
        FreeForm,
        Shell(flags=("--set",), metavar="FIELD=VALUE", read=read_fields, is_list=True,
              help="name, aliases, summary, type or domain; JSON or plain text; may be repeated."),
    ] = Field(
        max_length=8,
        description="What to change: name, aliases (replaces the list), summary, type (concept, method or person), "
        "domain.",
        examples=[{"summary": "a British mathematician"}, {"name": "Ada King", "aliases": ["Ada Lovelace"]}],
    )  # fmt: skip
    why: Reason = Field("", description=_WHY)
    confidence: Share = Field(1.0, description="Confidence, 0 to 1; an uncertain edit waits for approval.")


class EditsRequest(Request):
    """List corrections, oldest first: who made them, who approved them, and which wait."""

    entity: Annotated[Id, Shell(metavar="[ENTITY_ID]")] | None = Field(
        None, description="Only corrections of this entity."
    )
    state: Literal["pending", "applied", "undone"] | None = Field(None, description="Only corrections in this state.")


class ApproveRequest(Request):
    """Approve another person's correction; it applies once enough people have."""

    edit_id: EditId = Field(description=_EDIT_ID)


class UndoEditRequest(Request):
    """Undo a correction; the documents, or an older correction, count again."""

    edit_id: EditId = Field(description=_EDIT_ID)
    why: Reason = Field("", description=_WHY)


def update(request: UpdateEntityRequest, context: CallContext) -> dict[str, Any]:
    """Make the edit."""
    return update_entity(
        context.writable,
        request.entity_id,
        request.fields,
        who=context.who,
        why=request.why,
        at=utc_now(),
        confidence=request.confidence,
        embedder=context.embedder,
    ).as_dict()


def edits(request: EditsRequest, context: CallContext) -> dict[str, Any]:
    """The edits as records."""
    state = None if request.state is None else EditState(request.state)
    found = list_edits(context.readable, entity_id=request.entity, state=state)
    return {"edits": [edit.model_dump(mode="json", by_alias=True) for edit in found]}


def approve(request: ApproveRequest, context: CallContext) -> dict[str, Any]:
    """Add the approval."""
    from hades.curation import approve as approve_edit

    report = approve_edit(context.writable, request.edit_id, who=context.who, at=utc_now(), embedder=context.embedder)
    return report.as_dict()


def undo(request: UndoEditRequest, context: CallContext) -> dict[str, Any]:
    """Reverse the edit."""
    from hades.curation import undo as undo_edit

    report = undo_edit(
        context.writable, request.edit_id, who=context.who, why=request.why, at=utc_now(), embedder=context.embedder
    )
    return report.as_dict()


_VIEW = "hades.surfaces.cli.show_answers:show_edit"
_NO_ENTITY_TOOL = OmittedSurface("an agent proposes an edit; people list, approve and undo edits")
_NO_ENTITY_TASK = OmittedSurface("corrections are made by people and agents, not by flows")
ENTITY_CAPABILITIES = (
    Capability(
        "entity.edits", "ro", EditsRequest, edits,
        cli=Cli(("entity", "edits"), ("entity",), "hades.surfaces.cli.show_answers:show_edits"),
        rest=Rest("GET", "/entities/edits", "entities", "Corrections"), mcp=_NO_ENTITY_TOOL, task=_NO_ENTITY_TASK,
    ),
    Capability(
        "entity.approve", "rw", ApproveRequest, approve,
        cli=Cli(("entity", "approve"), ("edit_id",), _VIEW, who="--as", is_audited=True),
        rest=Rest("POST", "/entities/edits/{edit_id}/approve", "entities", "Approve a correction"),
        mcp=_NO_ENTITY_TOOL, task=_NO_ENTITY_TASK,
    ),
    Capability(
        "entity.undo", "rw", UndoEditRequest, undo,
        cli=Cli(("entity", "undo"), ("edit_id",), _VIEW, who="--as", is_audited=True),
        rest=Rest("POST", "/entities/edits/{edit_id}/undo", "entities", "Undo a correction"),
        mcp=_NO_ENTITY_TOOL, task=_NO_ENTITY_TASK,
    ),
    Capability(
        "entity.update", "rw", UpdateEntityRequest, update,
        cli=Cli(("entity", "update"), ("entity_id",), _VIEW, who="--as", is_audited=True),
        rest=Rest("POST", "/entities/{entity_id}", "entities", "Correct an entity", examples=(
            {"fields": {"summary": "runs callbacks, one at a time"}, "why": "was empty"},)),
        mcp=Mcp("graph_entity_update", "Correct an entity", "hades.surfaces.mcp.tools:EntityEditReply"),
        task=_NO_ENTITY_TASK,
    ),
)  # fmt: skip


# Published snapshots: list them, roll back to one, list the builds.


class SnapshotsRequest(Request):
    """List the published graphs and which one serves, newest first."""


class RollbackRequest(Request):
    """Let an older graph serve again at once, and restore the weights that belong to it."""

    what: Annotated[Literal["graph", "weights", "ranker"], Shell(metavar="[weights|ranker|graph]")] = Field(
        "graph", description="What to roll back."
    )
    to: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]+$"), Shell(metavar="VERSION")] | None = Field(
        None, description="Snapshot id, or version (of a ranker also `none`); by default the previous one."
    )


class RunsRequest(Request):
    """List the newest builds with their stages and contracts, what each stage last completed, alerts and a forecast."""

    limit: int = Field(20, ge=1, le=100, description="Maximum number of builds.")


def list_snapshots(request: SnapshotsRequest, context: CallContext) -> dict[str, Any]:
    """The snapshots of this home."""
    from dataclasses import asdict

    return {"snapshots": [asdict(held) for held in snapshots(context.settings.home)]}


def roll_back(request: RollbackRequest, context: CallContext) -> dict[str, Any]:
    """Move the pointer, then restore the store."""
    from hades.build.release.publish import roll_back as go_back

    with open_build_context(context.settings) as build:
        return go_back(build, request.what, request.to).as_dict()


def list_runs(request: RunsRequest, context: CallContext) -> dict[str, Any]:
    """The builds, the records of their stages, the newest alerts, and what the next build would take and cost."""
    from dataclasses import asdict

    import orjson

    from hades.build.forecast import forecast_build
    from hades.build.release.publish import last_alerts
    from hades.build.report import last_runs

    home = context.settings.home
    rows = [row for batch in context.readable.scan("build_stages") for row in batch.to_pylist()]
    is_whole = context.readable.describe().get("holds", ALL) == ALL  # a smaller database is not built
    stages = [{**row, "report": orjson.loads(row["report"])} for row in rows]
    return {
        "runs": [asdict(run) for run in last_runs(home, request.limit)],
        "stages": stages,
        "alerts": last_alerts(home),
        "next": forecast_build(context.readable, home, paid_models(context.settings)).as_dict() if is_whole else {},
    }


_NOT_FOR_AGENTS = OmittedSurface("operations of the service are for people and schedulers")
SNAPSHOT_CAPABILITIES = (
    Capability(
        "snapshots", "ro", SnapshotsRequest, list_snapshots,
        cli=Cli(("snapshots",), view="hades.surfaces.cli.build:show_snapshots"),
        rest=Rest("GET", "/snapshots", "snapshots", "Published graphs"), mcp=_NOT_FOR_AGENTS,
        task=OmittedSurface("a flow publishes; `hades snapshots` lists"),
    ),
    Capability(
        "rollback", "rw", RollbackRequest, roll_back,
        cli=Cli(("rollback",), ("what",), "hades.surfaces.cli.build:show_rollback"),
        rest=Rest("POST", "/snapshots/rollback", "snapshots", "Let an older graph serve",
                  examples=({"what": "graph"},)),
        mcp=_NOT_FOR_AGENTS,
        task=OmittedSurface("the task `roll back` of tasks/build.py is a step of the flow rollback"),
    ),
    Capability(
        "runs", "ro", RunsRequest, list_runs, cli=OmittedSurface("`hades status` prints the last runs"),
        rest=Rest("GET", "/runs", "runs", "Nightly builds"), mcp=_NOT_FOR_AGENTS,
        task=OmittedSurface("Prefect lists its own runs"),
    ),
)  # fmt: skip
