"""Versions and edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from hades.memory.history.rows import UnknownMemory
from hades.ports.store import Direction
from hades.surfaces.capabilities.capability import (
    CONTENT_CHARACTERS,
    ID_CHARACTERS,
    CallContext,
    Capability,
    Cli,
    Id,
    Mcp,
    Metadata,
    Moment,
    OmittedSurface,
    Reason,
    Request,
    Rest,
    Share,
    Shell,
    Task,
)
from schemas.ids import Mask
from schemas.memory import MemoryEdgeKind

if TYPE_CHECKING:
    from hades.memory.memory import Memory
    from schemas.memory import MemoryAudit, MemoryEdge, MemoryState


# Fields and reply parts that the capabilities of memory share.


TOPIC_CHARACTERS = 500
Topic = Annotated[str, Field(min_length=1, max_length=TOPIC_CHARACTERS), Shell(metavar="TOPIC")]
TopicOrState = Annotated[
    str, Field(min_length=1, max_length=max(TOPIC_CHARACTERS, ID_CHARACTERS)), Shell(metavar="TOPIC_OR_STATE")
]
EdgeId = Annotated[Id, Shell(metavar="EDGE_ID")]
Relation = Annotated[str, Field(min_length=1, max_length=64), Shell(metavar="RELATION")]
ValidFrom = Annotated[Moment, Shell(metavar="TIME")]
TOPIC = "Topic; may hold slashes, for example design/approach_x."
TOPIC_OR_STATE = "A topic, or the id of one version."
VALID_FROM = "True from this time on, for example 2026-01-31; by default now."
VALID_UNTIL = "True until this time, exclusive; by default without end."
WHY = "Reason, kept in the audit."
AS_OF = "As it was true at this time, for example 2026-01-31."
KNOWN_AT = "As it was known at this time."
NO_TASK = OmittedSurface("a step of a conversation, not of a flow")
NO_TOOL = OmittedSurface("agents add, read and search memory; people curate it")


def state_document(state: MemoryState) -> dict[str, Any]:
    """A version as JSON, without its vector."""
    return {"id": state.id, **state.model_dump(mode="json", exclude={"embedding", "key"})}


def edge_documents(memory: Memory, edges: Iterable[MemoryEdge]) -> list[dict[str, Any]]:
    """Edges as JSON, each with the topics and versions that it joins."""
    listed = list(edges)
    ends = sorted({end for edge in listed for end in (edge.source, edge.target)})
    names = {state.key: f"{state.topic} v{state.version}" for state in memory.states(ends)}
    return [
        {
            "id": edge.id,
            "revision": edge.revision,
            "source_state_id": edge.source_state_id,
            "target_state_id": edge.target_state_id,
            "source_topic": names.get(edge.source.rpartition("/")[2], edge.source),
            "target_topic": names.get(edge.target.rpartition("/")[2], edge.target),
            **edge.model_dump(mode="json", exclude={"key", "source", "target"}),
        }
        for edge in listed
    ]


def edge_document(memory: Memory, edge: MemoryEdge) -> dict[str, Any]:
    """One edge as JSON."""
    return edge_documents(memory, [edge])[0]


def act_document(act: MemoryAudit | None) -> dict[str, Any] | None:
    """One step of an act as JSON."""
    return None if act is None else {"id": act.key, **act.model_dump(mode="json", exclude={"key"})}


def plain(value: Any) -> Any:
    """A record or report as JSON values, without vectors."""
    if isinstance(value, BaseModel):
        named = {"id": getattr(value, "id", None)} if hasattr(value, "id") else {}
        return {**named, **value.model_dump(mode="json", exclude={"embedding", "key"})}
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part) for part in value]
    return value.isoformat() if isinstance(value, datetime) else value


# Versions of a topic: add one, read the newest, one at a time, or all of them.


Tag = Annotated[str, Field(max_length=100)]
_STATE = "hades.surfaces.mcp.tools:MemoryStateReply"


class AddRequest(Request):
    """Add a version to a topic. Earlier versions are kept and can be read."""

    topic: Topic = Field(description=TOPIC, examples=["project/deadline", "user/preferences"])
    content: Annotated[str, Field(min_length=1, max_length=CONTENT_CHARACTERS)] = Field(
        description="What is known now, complete.", examples=["The deadline is May 2."]
    )
    tags: Annotated[tuple[Tag, ...], Shell(flags=("--tag",))] = Field(
        (), max_length=64, description="Tag to find it by; may be repeated."
    )
    confidence: Share = Field(1.0, description="Confidence, 0 to 1.")
    metadata: Metadata = Field(default_factory=dict, max_length=64, description="Object that is kept with the version.")
    valid_from: Moment | None = Field(None, description=VALID_FROM)
    valid_until: Moment | None = Field(None, description=VALID_UNTIL)
    importance: Share | None = Field(None, description="Importance, 0 to 1; by default 0.5.")
    why: Reason = Field("", description=WHY)


class LatestRequest(Request):
    """Read the version of a topic that holds now, or at a time."""

    topic: Topic = Field(description=TOPIC, examples=["project/deadline"])
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class HistoryRequest(Request):
    """List the versions of a topic, oldest first, with who wrote each and why."""

    topic: Topic = Field(description=TOPIC)
    limit: int = Field(100, ge=1, le=1000, description="Maximum number of versions; the newest are listed.")
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class AtRequest(Request):
    """Read what was true of a topic at a time, with the edges that held then."""

    topic: Topic = Field(description=TOPIC, examples=["project/deadline"])
    moment: Annotated[Moment, Shell(metavar="TIME")] = Field(
        description="The time, for example 2026-01-31 or 2026-01-31T12:00:00Z.", examples=["2026-01-31T12:00:00Z"]
    )
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class TopicsRequest(Request):
    """List the topics of the memory."""

    prefix: str = Field("", max_length=TOPIC_CHARACTERS, description="Only topics that begin with this.")
    limit: int = Field(1000, ge=1, le=10_000, description="Maximum number of topics.")


class TraceRequest(Request):
    """Read all versions of a topic by id, oldest first."""

    topic: Topic = Field(description=TOPIC)


def add(request: AddRequest, context: CallContext) -> dict[str, Any]:
    """Write the version."""
    state = context.memory.add(**request.arguments(), who=context.who)
    holds = context.memory.latest(state.topic)
    told = None if holds is None else {"id": holds.id, "version": holds.version}
    return {"topic": state.topic, "state": state_document(state), "holds": told}


def latest(request: LatestRequest, context: CallContext) -> dict[str, Any]:
    """The newest version, or `UnknownMemory`."""
    state = context.memory.latest(request.topic, mask=Mask(request.as_of, request.known_at))
    if state is None and context.memory.history(request.topic, limit=1):
        raise UnknownMemory(f"nothing holds of {request.topic!r} then; `hades memory history` shows its versions")
    if state is None:
        raise UnknownMemory(f"memory holds no topic {request.topic!r}; `hades memory topics` lists the topics")
    context.memory.log_accesses([state.id])
    return {"topic": request.topic, "state": state_document(state)}


def history(request: HistoryRequest, context: CallContext) -> dict[str, Any]:
    """The versions, each with the act that wrote it."""
    memory = context.memory
    mask = Mask(request.as_of, request.known_at)
    states = memory.history(request.topic, limit=request.limit, mask=mask)
    if not states:
        raise UnknownMemory(f"memory holds no topic {request.topic!r}; `hades memory topics` lists the topics")
    acts = {act.subject: act for state in states for act in memory.audit(state.id) if act.action == "add"}
    rows = [{**state_document(state), "act": act_document(acts.get(state.id))} for state in states]
    holds = memory.latest(request.topic, mask=mask)
    return {"topic": request.topic, "states": rows, "holds": None if holds is None else holds.id}


def at(request: AtRequest, context: CallContext) -> dict[str, Any]:
    """The version that held, and its edges."""
    document = at_or_null(context.memory, request.topic, request.moment, request.known_at)
    if document["state"] is None:
        when = request.moment.isoformat()
        raise UnknownMemory(
            f"nothing was known of {request.topic!r} at {when}; `hades memory history` lists its versions"
        )
    return document


def at_or_null(memory: Memory, topic: str, moment: datetime, known_at: datetime | None = None) -> dict[str, Any]:
    """The same with `state` None before the first version."""
    state = memory.at(topic, moment, known_at=known_at)
    edges = memory.edges(topic, mask=Mask(as_of=moment, known_at=known_at)) if state is not None else []
    shown = None if state is None else state_document(state)
    return {"topic": topic, "state": shown, "edges": edge_documents(memory, edges)}


def topics(request: TopicsRequest, context: CallContext) -> dict[str, Any]:
    """The names, sorted."""
    names = context.memory.topics(request.prefix)
    return {"topics": names[: request.limit], "total": len(names)}


def trace(request: TraceRequest, context: CallContext) -> dict[str, Any]:
    """The ids of all versions."""
    document: dict[str, Any] = plain(context.memory.trace(request.topic))
    return document


ADD = Capability(
    "memory.add", "rw", AddRequest, add,
    cli=Cli(("memory", "add"), ("topic", "content"), "hades.surfaces.cli.show_memory:show_added", who="--who"),
    rest=Rest("POST", "/memory/states", "memory", "Add a version to a topic", 201, "state", examples=(
        {"topic": "design/approach_x", "content": "Approach X needs a second index.", "tags": ["design"]},)),
    mcp=Mcp("memory_add", "Add to memory", _STATE, is_idempotent=False),
    task=NO_TASK,
)  # fmt: skip
LATEST = Capability(
    "memory.latest", "ro", LatestRequest, latest,
    cli=Cli(("memory", "latest"), ("topic",), "hades.surfaces.cli.show_memory:show_state"),
    rest=Rest("GET", "/memory/{topic:path}/latest", "memory", "Newest version of a topic", part="state"),
    mcp=Mcp("memory_latest", "Newest version of a topic", _STATE, null_when_unknown="state"),
    task=NO_TASK,
)  # fmt: skip
HISTORY = Capability(
    "memory.history", "ro", HistoryRequest, history,
    cli=Cli(("memory", "history"), ("topic",), "hades.surfaces.cli.show_memory:show_history"),
    rest=Rest("GET", "/memory/{topic:path}/history", "memory", "Versions of a topic"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
AT = Capability(
    "memory.at", "ro", AtRequest, at,
    cli=Cli(("memory", "at"), ("topic", "moment"), "hades.surfaces.cli.show_memory:show_state"),
    rest=Rest("GET", "/memory/{topic:path}/at", "memory", "What was true of a topic at a time", part="state"),
    mcp=Mcp("memory_at", "What was true at a time", _STATE, null_when_unknown="state"),
    task=Task("query at time"),
)  # fmt: skip
TOPICS = Capability(
    "memory.topics", "ro", TopicsRequest, topics,
    cli=Cli(("memory", "topics"), ("prefix",), "hades.surfaces.cli.show_memory:show_topics"),
    rest=Rest("GET", "/memory/topics", "memory", "Topics"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
TRACE = Capability(
    "memory.trace", "ro", TraceRequest, trace,
    cli=OmittedSurface("`hades memory history` lists the same versions with their content"),
    rest=Rest("GET", "/memory/{topic:path}/trace", "memory", "All versions of a topic by id"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
MEMORY_VERSIONS = (ADD, TOPICS, LATEST, HISTORY, AT, TRACE)


# Edges between topics: add one, end one, list them, and say what holds and why.


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


_VIEWS = "hades.surfaces.cli.show_memory"
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
