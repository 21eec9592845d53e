"""Versions of a topic: add one, read the newest, one at a time, or all of them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hades.surfaces.capabilities.capability import Capability, Cli, Mcp, OmittedSurface, Request, Rest, Shell, Task
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import CONTENT_CHARACTERS, Metadata, Moment, Reason, Share
from hades.surfaces.capabilities.memory_records import (
    AS_OF,
    KNOWN_AT,
    NO_TASK,
    NO_TOOL,
    TOPIC,
    TOPIC_CHARACTERS,
    VALID_FROM,
    VALID_UNTIL,
    WHY,
    Topic,
    act_document,
    edge_documents,
    plain,
    state_document,
)

if TYPE_CHECKING:
    from hades.memory.service import Memory

Tag = Annotated[str, Field(max_length=100)]
_STATE = "hades.surfaces.mcp.replies:MemoryStateReply"


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
    from hades.memory.history.names import UnknownMemory
    from schemas.intervals import Mask

    state = context.memory.latest(request.topic, mask=Mask(request.as_of, request.known_at))
    if state is None:
        raise UnknownMemory(f"memory holds no topic {request.topic!r}; `hades memory topics` lists the topics")
    context.memory.log_accesses([state.id])
    return {"topic": request.topic, "state": state_document(state)}


def history(request: HistoryRequest, context: CallContext) -> dict[str, Any]:
    """The versions, each with the act that wrote it."""
    from hades.memory.history.names import UnknownMemory
    from schemas.intervals import Mask

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
    from hades.memory.history.names import UnknownMemory

    document = at_or_null(context.memory, request.topic, request.moment, request.known_at)
    if document["state"] is None:
        when = request.moment.isoformat()
        raise UnknownMemory(
            f"nothing was known of {request.topic!r} at {when}; `hades memory history` lists its versions"
        )
    return document


def at_or_null(memory: Memory, topic: str, moment: datetime, known_at: datetime | None = None) -> dict[str, Any]:
    """The same with `state` None before the first version."""
    from schemas.intervals import Mask

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
    cli=Cli(("memory", "add"), ("topic", "content"), "hades.surfaces.cli.memory.version_views:show_added", who="--who"),
    rest=Rest("POST", "/memory/states", "memory", "Add a version to a topic", 201, "state", examples=(
        {"topic": "design/approach_x", "content": "Approach X needs a second index.", "tags": ["design"]},)),
    mcp=Mcp("memory_add", "Add to memory", _STATE, is_idempotent=False),
    task=NO_TASK,
)  # fmt: skip
LATEST = Capability(
    "memory.latest", "ro", LatestRequest, latest,
    cli=Cli(("memory", "latest"), ("topic",), "hades.surfaces.cli.memory.version_views:show_state"),
    rest=Rest("GET", "/memory/{topic:path}/latest", "memory", "Newest version of a topic", part="state"),
    mcp=Mcp("memory_latest", "Newest version of a topic", _STATE, null_when_unknown="state"),
    task=NO_TASK,
)  # fmt: skip
HISTORY = Capability(
    "memory.history", "ro", HistoryRequest, history,
    cli=Cli(("memory", "history"), ("topic",), "hades.surfaces.cli.memory.version_views:show_history"),
    rest=Rest("GET", "/memory/{topic:path}/history", "memory", "Versions of a topic"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
AT = Capability(
    "memory.at", "ro", AtRequest, at,
    cli=Cli(("memory", "at"), ("topic", "moment"), "hades.surfaces.cli.memory.version_views:show_state"),
    rest=Rest("GET", "/memory/{topic:path}/at", "memory", "What was true of a topic at a time", part="state"),
    mcp=Mcp("memory_at", "What was true at a time", _STATE, null_when_unknown="state"),
    task=Task("query at time"),
)  # fmt: skip
TOPICS = Capability(
    "memory.topics", "ro", TopicsRequest, topics,
    cli=Cli(("memory", "topics"), ("prefix",), "hades.surfaces.cli.memory.version_views:show_topics"),
    rest=Rest("GET", "/memory/topics", "memory", "Topics"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
TRACE = Capability(
    "memory.trace", "ro", TraceRequest, trace,
    cli=OmittedSurface("`hades memory history` lists the same versions with their content"),
    rest=Rest("GET", "/memory/{topic:path}/trace", "memory", "All versions of a topic by id"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
MEMORY_VERSIONS = (ADD, TOPICS, LATEST, HISTORY, AT, TRACE)
