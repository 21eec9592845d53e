"""Learning from use: rate states, trust sources, discover edges, group topics, recall in steps, renew a topic."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from hades.surfaces.capabilities.capability import Capability, Cli, Mcp, Request, Rest, Shell, Task
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import Id, Moment, Reason, Share
from hades.surfaces.capabilities.memory_recall import MAX_TOKENS, MemoryQuestion
from hades.surfaces.capabilities.memory_records import (
    AS_OF,
    KNOWN_AT,
    NO_TASK,
    NO_TOOL,
    TOPIC,
    TOPIC_OR_STATE,
    WHY,
    Topic,
    TopicOrState,
    edge_documents,
    state_document,
)


class RateRequest(Request):
    """Say how important a state is, or whether it was useful; search and context rank by it. Undo restores it."""

    name: TopicOrState = Field(description=TOPIC_OR_STATE)
    importance: Share | None = Field(None, description="Importance, 0 to 1.")
    useful: bool | None = Field(None, description="Whether it helped: moves the importance by a quarter of the way.")
    why: Reason = Field("", description=WHY)


class TrustRequest(Request):
    """Say how far a source is trusted; of two facts that exclude each other the more trusted one is kept."""

    source: Annotated[Id, Shell(metavar="SOURCE")] = Field(description="Name of the source, as facts name it.")
    trust: Annotated[Share, Shell(metavar="TRUST")] = Field(description="Trust, 0 to 1; 0.5 where nobody said so.")
    why: Reason = Field("", description=WHY)


class LearnRequest(Request):
    """Count what was read, and join topics that are related by edges with a confidence; builds do it every night."""

    limit: int = Field(1000, ge=1, le=100_000, description="Maximum number of changed topics to look at.")


class GroupsRequest(Request):
    """Group the topics that edges join, each group named by the words that its topics share."""

    limit: int = Field(50, ge=1, le=1000, description="Maximum number of groups.")
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class RecallRequest(Request):
    """Plan what a question needs, retrieve it in up to three passes, and say which steps found nothing."""

    query: MemoryQuestion = Field(description="The question, in plain words.", examples=["why was X rejected?"])
    max_tokens: int = Field(MAX_TOKENS, ge=1, le=1_000_000, description="Maximum tokens of the first pass.")
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class ReconsolidateRequest(Request):
    """Make the next version of a topic if a topic it is joined to has changed since; else change nothing."""

    topic: Topic = Field(description=TOPIC)


def rate(request: RateRequest, context: CallContext) -> dict[str, Any]:
    """The state with its new importance."""
    from hades.memory.upkeep.learning import rate_state

    state = rate_state(
        context.memory,
        request.name,
        importance=request.importance,
        is_useful=request.useful,
        who=context.who,
        why=request.why,
    )
    return {"topic": state.topic, "state": state_document(state)}


def trust(request: TrustRequest, context: CallContext) -> dict[str, Any]:
    """The state under `source/` that says so."""
    from hades.memory.upkeep.learning import trust_source

    state = trust_source(context.memory, request.source, request.trust, who=context.who, why=request.why)
    return {"topic": state.topic, "state": state_document(state)}


def learn(request: LearnRequest, context: CallContext) -> dict[str, Any]:
    """What was counted, and the edges that were drawn."""
    from hades.memory.upkeep.discovery import discover_edges
    from hades.memory.upkeep.learning import count_accesses

    counted = count_accesses(context.memory)
    found = discover_edges(context.memory, limit=request.limit, who=context.who)
    edges = [context.memory.beliefs(edge)[-1] for edge in found.edges]
    return {
        "accesses": counted.as_dict(),
        "topics": found.topics,
        "left": found.left,
        "edges": edge_documents(context.memory, edges),
    }


def groups(request: GroupsRequest, context: CallContext) -> dict[str, Any]:
    """The groups, largest first."""
    from hades.memory.recall.groups import group_topics
    from schemas.intervals import Mask

    found = group_topics(context.memory, mask=Mask(as_of=request.as_of, known_at=request.known_at))
    return {"groups": [one.as_dict() for one in found[: request.limit]], "total": len(found)}


def recall(request: RecallRequest, context: CallContext) -> dict[str, Any]:
    """The plan, the contexts of its passes and what is missing."""
    from hades.memory.recall.agent import process_query
    from schemas.intervals import Mask

    mask = Mask(as_of=request.as_of, known_at=request.known_at)
    outcome = process_query(context.memory, request.query, request.max_tokens, mask=mask).as_dict()
    return {"query": request.query, "text": "\n\n".join(one["text"] for one in outcome["contexts"]), **outcome}


def reconsolidate(request: ReconsolidateRequest, context: CallContext) -> dict[str, Any]:
    """The new version, or null where nothing that it is joined to has changed."""
    from hades.memory.history.names import UnknownMemory
    from hades.memory.recall.agent import reconsolidate as renew

    if context.memory.latest(request.topic) is None:
        raise UnknownMemory(f"memory holds no topic {request.topic!r}; `hades memory topics` lists the topics")
    done = renew(context.memory, request.topic, who=context.who)
    return {"topic": request.topic, "state": None if done is None else state_document(done.state)}


_VIEWS = "hades.surfaces.cli.memory.learning_views"
_STATE = "hades.surfaces.mcp.replies:MemoryStateReply"
RATE = Capability(
    "memory.rate", "rw", RateRequest, rate,
    cli=Cli(("memory", "rate"), ("name",), f"{_VIEWS}:show_rating", who="--who"),
    rest=Rest("POST", "/memory/rate", "memory", "Rate a state", examples=({"name": "design/approach_x",
                                                                          "importance": 0.9},)),
    mcp=Mcp("memory_rate", "Rate a memory", _STATE, is_idempotent=False), task=NO_TASK,
)  # fmt: skip
TRUST = Capability(
    "memory.trust", "rw", TrustRequest, trust,
    cli=Cli(("memory", "trust"), ("source", "trust"), f"{_VIEWS}:show_trust", who="--who"),
    rest=Rest("POST", "/memory/trust", "memory", "Trust a source", examples=({"source": "wiki", "trust": 0.8},)),
    mcp=Mcp("memory_trust", "Trust a source", _STATE), task=NO_TASK,
)  # fmt: skip
LEARN = Capability(
    "memory.learn", "rw", LearnRequest, learn,
    cli=Cli(("memory", "learn"), view=f"{_VIEWS}:show_learning", who="--who"),
    rest=Rest("POST", "/memory/learn", "memory", "Count readings and discover edges"), mcp=NO_TOOL,
    task=Task("learn from the use of memory"),
)  # fmt: skip
GROUPS = Capability(
    "memory.groups", "ro", GroupsRequest, groups,
    cli=Cli(("memory", "groups"), view=f"{_VIEWS}:show_groups"),
    rest=Rest("GET", "/memory/groups", "memory", "Groups of related topics"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
RECALL = Capability(
    "memory.recall", "ro", RecallRequest, recall,
    cli=Cli(("memory", "recall"), ("query",), f"{_VIEWS}:show_recall"),
    rest=Rest("POST", "/memory/recall", "memory", "Recall in planned steps"),
    mcp=Mcp("memory_recall", "Recall in planned steps", "hades.surfaces.mcp.replies:MemoryRecallReply", text="text"),
    task=NO_TASK,
)  # fmt: skip
RECONSOLIDATE = Capability(
    "memory.reconsolidate", "rw", ReconsolidateRequest, reconsolidate,
    cli=Cli(("memory", "reconsolidate"), ("topic",), f"{_VIEWS}:show_renewal", who="--who"),
    rest=Rest("POST", "/memory/{topic:path}/reconsolidate", "memory", "Renew a topic whose neighbours changed"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
MEMORY_LEARNING = (RATE, TRUST, LEARN, GROUPS, RECALL, RECONSOLIDATE)
