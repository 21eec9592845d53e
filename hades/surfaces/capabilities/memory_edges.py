"""Edges between topics: add one, end one, list them, and say what holds and why."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hades.surfaces.capabilities.capability import Capability, Cli, Request, Rest, Shell, Task
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import Id, Metadata, Moment, Reason, Share
from hades.surfaces.capabilities.memory_records import (
    AS_OF,
    KNOWN_AT,
    NO_TASK,
    NO_TOOL,
    TOPIC,
    TOPIC_OR_STATE,
    VALID_FROM,
    VALID_UNTIL,
    WHY,
    EdgeId,
    Relation,
    Topic,
    TopicOrState,
    act_document,
    edge_document,
    edge_documents,
)


class LinkRequest(Request):
    """Join two topics or states by a relation that holds over a time."""

    source: TopicOrState = Field(description="A topic, which means its newest version, or the id of one version.")
    relation: Relation = Field(description="Relation in small letters, digits and _, for example blocked_by.")
    target: TopicOrState = Field(description=TOPIC_OR_STATE)
    kind: Literal["temporal", "cross_topic", "causal", "reference"] | None = Field(
        None, description="Kind of the edge; by default it follows from the relation."
    )
    strength: Share = Field(1.0, description="Strength, 0 to 1.")
    valid_from: Moment | None = Field(None, description=VALID_FROM)
    valid_until: Moment | None = Field(None, description=VALID_UNTIL)
    description: Reason = Field("", description="The edge in a sentence.")
    bidirectional: Annotated[bool, Shell(flags=("--both-ways",))] = Field(
        False, description="The relation holds in both directions."
    )
    metadata: Metadata = Field(default_factory=dict, max_length=64, description="Object that is kept with the edge.")
    why: Reason = Field("", description=WHY)


class CloseRequest(Request):
    """End an edge: from then on it is not true. It stays in the history."""

    edge_id: EdgeId = Field(description="Id of the edge, as `hades memory edges` prints it.")
    at: Moment | None = Field(None, description="When it stopped being true; by default now.")
    superseded_by: Annotated[Id, Shell(metavar="EDGE_ID")] | None = Field(
        None, description="The edge that replaces it."
    )
    why: Reason = Field("", description=WHY)


class EdgesRequest(Request):
    """List the edges of a topic or state that are true now, or were true at a time."""

    topic: TopicOrState = Field(description=TOPIC_OR_STATE)
    direction: Literal["any", "outbound", "inbound"] = Field("any", description="Direction of the edges.")
    types: Annotated[tuple[Id, ...], Shell(flags=("--relation",))] = Field(
        (), max_length=32, description="Only edges of this relation; may be repeated."
    )
    everything: Annotated[bool, Shell(flags=("--all",))] = Field(
        False, description="Also edges that have ended or have not begun."
    )
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class WhyRequest(Request):
    """Say what holds of a topic, why it holds, and what held before."""

    topic: Topic = Field(description=TOPIC)
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class WhenRequest(Request):
    """Find when one relation of a topic was replaced by another; `at` is null when it never was."""

    topic: Topic = Field(description=TOPIC)
    from_rel: Annotated[Relation, Shell(metavar="FROM_RELATION")] = Field(description="The relation that ended.")
    to_rel: Annotated[Relation, Shell(metavar="TO_RELATION")] = Field(description="The relation that began.")


class AuditRequest(Request):
    """List who did what to a topic, a state or an edge, when and why."""

    topic: Annotated[TopicOrState, Shell(metavar="TOPIC_STATE_OR_EDGE")] = Field(
        description="A topic, or the id of a state or an edge."
    )


def link(request: LinkRequest, context: CallContext) -> dict[str, Any]:
    """Write the edge."""
    from schemas.memory import MemoryEdgeKind

    given = {**request.arguments(), "kind": None if request.kind is None else MemoryEdgeKind(request.kind)}
    edge = context.memory.link(**given, who=context.who)
    return {"edge": edge_document(context.memory, edge)}


def close(request: CloseRequest, context: CallContext) -> dict[str, Any]:
    """Write the end of the edge."""
    given = request.arguments()
    edge = context.memory.close(given.pop("edge_id"), **given, who=context.who)
    return {"edge": edge_document(context.memory, edge)}


def edges(request: EdgesRequest, context: CallContext) -> dict[str, Any]:
    """The edges as they are or were."""
    from hades.ports.store import Direction
    from schemas.intervals import Mask

    found = context.memory.edges(
        request.topic,
        mask=Mask(as_of=request.as_of, known_at=request.known_at),
        direction=Direction(request.direction),
        types=list(request.types) or None,
        everything=request.everything,
    )
    return {"topic": request.topic, "edges": edge_documents(context.memory, found)}


def why(request: WhyRequest, context: CallContext) -> dict[str, Any]:
    """The current answer, the edges it rests on, and those that no longer hold."""
    from schemas.intervals import Mask

    return context.memory.why(request.topic, mask=Mask(as_of=request.as_of, known_at=request.known_at)).as_dict()


def when(request: WhenRequest, context: CallContext) -> dict[str, Any]:
    """The time of the change with both edges."""
    change = context.memory.find_edge_change(request.topic, request.from_rel, request.to_rel)
    if change is None:
        return {"at": None}
    ended, began = edge_documents(context.memory, [change.ended, change.began])
    return {"at": change.at.isoformat(), "ended": ended, "began": began}


def audit(request: AuditRequest, context: CallContext) -> dict[str, Any]:
    """The acts, oldest first; of a topic those on all its versions and edges."""
    memory, names = context.memory, [request.topic]
    if request.topic in memory.topics(request.topic):
        joined = memory.edges(request.topic, everything=True)
        names = [*memory.trace(request.topic).states, *(edge.id for edge in joined)]
    acts = sorted((act for name in names for act in memory.audit(name)), key=lambda act: act.key)
    return {"subject": request.topic, "acts": [act_document(act) for act in acts]}


_VIEWS = "hades.surfaces.cli.memory.version_views"
LINK = Capability(
    "memory.link", "rw", LinkRequest, link,
    cli=Cli(("memory", "link"), ("source", "relation", "target"), f"{_VIEWS}:show_edge", who="--who"),
    rest=Rest("POST", "/memory/links", "memory", "Join two topics", 201, "edge", examples=(
        {"source": "design/approach_x", "target": "design/index", "relation": "blocked_by"},)),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
CLOSE = Capability(
    "memory.close", "rw", CloseRequest, close,
    cli=Cli(("memory", "close"), ("edge_id",), f"{_VIEWS}:show_edge", who="--who"),
    rest=Rest("POST", "/memory/links/{edge_id}/close", "memory", "End an edge", part="edge"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
EDGES = Capability(
    "memory.edges", "ro", EdgesRequest, edges,
    cli=Cli(("memory", "edges"), ("topic",), f"{_VIEWS}:show_edges"),
    rest=Rest("GET", "/memory/{topic:path}/edges", "memory", "Edges of a topic"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
WHY_IT_HOLDS = Capability(
    "memory.why", "ro", WhyRequest, why,
    cli=Cli(("memory", "why"), ("topic",), f"{_VIEWS}:show_account"),
    rest=Rest("GET", "/memory/{topic:path}/why", "memory", "What holds of a topic, and why"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
WHEN = Capability(
    "memory.when", "ro", WhenRequest, when,
    cli=Cli(("memory", "when"), ("topic", "from_rel", "to_rel"), f"{_VIEWS}:show_change_of_relation",
            succeeds=lambda document: document["at"] is not None),
    rest=Rest("GET", "/memory/{topic:path}/when", "memory", "When one relation was replaced by another"),
    mcp=NO_TOOL, task=Task("find edge change"),
)  # fmt: skip
AUDIT = Capability(
    "memory.audit", "ro", AuditRequest, audit,
    cli=Cli(("memory", "audit"), ("topic",), f"{_VIEWS}:show_acts"),
    rest=Rest("GET", "/memory/{topic:path}/audit", "memory", "Who did what to a topic"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
MEMORY_EDGES = (LINK, CLOSE, EDGES, WHY_IT_HOLDS, WHEN, AUDIT)
