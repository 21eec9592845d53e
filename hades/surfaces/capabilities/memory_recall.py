"""Search, context, learn."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from hades.compat.functions import find_as_dict
from hades.memory.history.rows import UnknownMemory
from hades.memory.recall.agent import group_topics, process_query
from hades.memory.recall.search import plain_state
from hades.memory.upkeep.learn import count_accesses, discover_edges, rate_state, trust_source
from hades.surfaces.capabilities.capability import (
    CallContext,
    Capability,
    Cli,
    Id,
    Mcp,
    Moment,
    Reason,
    Request,
    Rest,
    Share,
    Shell,
    Task,
)
from hades.surfaces.capabilities.memory_states import (
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
from hades.surfaces.capabilities.questions import Question
from schemas.ids import Mask

# Recall: search memory, write a context, open a working set, consolidate, drill down.


MAX_TOKENS = 100_000
MemoryQuestion = Annotated[Question, Shell(metavar="QUESTION")]


class SearchRequest(Request):
    """Search memory by words and meaning: each topic once, as it is now, nearest first."""

    query: MemoryQuestion = Field(description="The question, in plain words.", examples=["when is the project due?"])
    limit: int = Field(10, ge=1, le=100, description="Maximum number of topics.")
    began_from: Annotated[Moment, Shell(flags=("--from",))] | None = Field(
        None, description="Only versions that began at this time or later."
    )
    began_until: Annotated[Moment, Shell(flags=("--until",))] | None = Field(
        None, description="Only versions that began before this time."
    )
    level: int = Field(0, ge=0, le=3, description="0: what was said; 1 to 3: daily, weekly, monthly summaries.")
    depth: Annotated[int, Field(ge=0, le=5), Shell(flags=("--related",))] = Field(
        0, description="Also follow this many edges."
    )
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class ContextRequest(Request):
    """Write a context for a question within a number of tokens: what holds now, its reasons, summaries, details."""

    query: MemoryQuestion = Field(
        description="The question, in plain words.", examples=["why was approach X rejected?"]
    )
    max_tokens: int = Field(MAX_TOKENS, ge=1, le=1_000_000, description="Maximum tokens; a tenth is kept free.")
    focus: tuple[Id, ...] = Field((), max_length=16, description="Topic or summary to show in detail; may be repeated.")
    as_of: Moment | None = Field(None, description=AS_OF)
    known_at: Moment | None = Field(None, description=KNOWN_AT)


class WorkingRequest(Request):
    """Open the working set of a topic: its last and important versions, and what it is joined to."""

    topic: Topic = Field(description=TOPIC)
    question: Annotated[Question, Shell(flags=("--ask",))] | None = Field(
        None, description="A question to the working set."
    )
    limit: int = Field(10, ge=1, le=100, description="Maximum number of results.")


class ConsolidateRequest(Request):
    """Summarise past days, weeks and months. Idempotent; the originals are kept."""

    level: int = Field(1, ge=1, le=3, description="1: days; 2: also weeks; 3: also months.")
    as_of: Moment | None = Field(None, description="The time that counts as now.")


class DrillDownRequest(Request):
    """List what a summary was made from."""

    summary: Annotated[Topic, Shell(metavar="SUMMARY")] = Field(
        description="A topic under summary/, or the id of a version."
    )
    originals: bool = Field(False, description="Follow summaries down to the original versions.")


def search(request: SearchRequest, context: CallContext) -> dict[str, Any]:
    """The topics; with a depth also what true edges join to them."""
    mask = Mask(as_of=request.as_of, known_at=request.known_at)
    window = (request.began_from, request.began_until) if request.began_from or request.began_until else None
    found = context.memory.search(request.query, window, limit=request.limit, mask=mask, levels=(request.level,))
    context.memory.log_accesses([one.state.id for one in found])
    document = find_as_dict(request.query, found)
    if not request.depth:
        return document
    return {**document, **context.memory.enhance(found, request.depth, mask=mask).as_dict()}


def write_context(request: ContextRequest, context: CallContext) -> dict[str, Any]:
    """The context and the tokens of its parts."""
    mask = Mask(as_of=request.as_of, known_at=request.known_at)
    return context.memory.retrieve_within_budget(
        request.query, request.max_tokens, focus=request.focus, mask=mask
    ).as_dict()


def open_working_set(request: WorkingRequest, context: CallContext) -> dict[str, Any]:
    """The working set, or what of it is near to the question."""
    held = context.memory.working(request.topic)
    report = vars(held.report())
    if request.question is not None:
        found = held.query(request.question, limit=request.limit)
        return {"report": report, "results": [one.as_dict() for one in found]}
    return {
        "report": report,
        "history": [plain_state(state) for state in held.history(request.topic)],
        "related": [
            {"relation": edge.relationship_type, "state": plain_state(state)}
            for edge, state in held.related(request.topic)
        ],
    }


def consolidate(request: ConsolidateRequest, context: CallContext) -> dict[str, Any]:
    """What was written at each level."""
    levels = context.memory.consolidate(request.level, as_of=request.as_of, who=context.who)
    return {"levels": [one.as_dict() for one in levels]}


def drill_down(request: DrillDownRequest, context: CallContext) -> dict[str, Any]:
    """The summary and its sources."""
    memory = context.memory
    state = memory.latest(request.summary) or memory.state(request.summary)
    if state is None:
        raise UnknownMemory(f"memory holds no summary {request.summary!r}; `hades memory topics summary/` lists them")
    sources = memory.drill_down(state.id, to_originals=request.originals)
    return {"summary": plain_state(state), "made_of": [plain_state(one) for one in sources]}


_VIEWS = "hades.surfaces.cli.show_memory"
SEARCH = Capability(
    "memory.search", "ro", SearchRequest, search,
    cli=Cli(("memory", "search"), ("query",), f"{_VIEWS}:show_search"),
    rest=Rest("POST", "/memory/search", "memory", "Search memory", is_also_get=True),
    mcp=Mcp("memory_search", "Search memory", "hades.surfaces.mcp.tools:MemorySearchReply"),
    task=NO_TASK,
)  # fmt: skip
CONTEXT = Capability(
    "memory.context", "ro", ContextRequest, write_context,
    cli=Cli(("memory", "context"), ("query",), f"{_VIEWS}:show_context"),
    rest=Rest("POST", "/memory/context", "memory", "A context within a number of tokens"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
WORKING = Capability(
    "memory.working", "ro", WorkingRequest, open_working_set,
    cli=Cli(("memory", "working"), ("topic",), f"{_VIEWS}:show_working_set"),
    rest=Rest("GET", "/memory/{topic:path}/working", "memory", "Working set of a topic"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
CONSOLIDATE = Capability(
    "memory.consolidate", "rw", ConsolidateRequest, consolidate,
    cli=Cli(("memory", "consolidate"), view=f"{_VIEWS}:show_levels", who="--who"),
    rest=Rest("POST", "/memory/consolidate", "memory", "Summarise past periods"), mcp=NO_TOOL,
    task=Task("consolidate memory"),
)  # fmt: skip
DRILL_DOWN = Capability(
    "memory.drill_down", "ro", DrillDownRequest, drill_down,
    cli=Cli(("memory", "drill-down"), ("summary",), f"{_VIEWS}:show_sources"),
    rest=Rest("GET", "/memory/{summary:path}/drill-down", "memory", "What a summary was made from"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
MEMORY_RECALL = (SEARCH, CONTEXT, WORKING, CONSOLIDATE, DRILL_DOWN)


# Learning from use: rate states, trust sources, discover edges, group topics, recall in steps, renew a topic.


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
    """Count what was read, and join related topics by edges with a confidence; the flow consolidate_memory does so."""

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
    state = trust_source(context.memory, request.source, request.trust, who=context.who, why=request.why)
    return {"topic": state.topic, "state": state_document(state)}


def learn(request: LearnRequest, context: CallContext) -> dict[str, Any]:
    """What was counted, and the edges that were drawn."""
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
    found = group_topics(context.memory, mask=Mask(as_of=request.as_of, known_at=request.known_at))
    return {"groups": [one.as_dict() for one in found[: request.limit]], "total": len(found)}


def recall(request: RecallRequest, context: CallContext) -> dict[str, Any]:
    """The plan, the contexts of its passes and what is missing."""
    mask = Mask(as_of=request.as_of, known_at=request.known_at)
    outcome = process_query(context.memory, request.query, request.max_tokens, mask=mask).as_dict()
    return {"query": request.query, "text": "\n\n".join(one["text"] for one in outcome["contexts"]), **outcome}


def reconsolidate(request: ReconsolidateRequest, context: CallContext) -> dict[str, Any]:
    """The new version, or null where nothing that it is joined to has changed."""
    from hades.memory.recall.agent import reconsolidate as renew

    if context.memory.latest(request.topic) is None:
        raise UnknownMemory(f"memory holds no topic {request.topic!r}; `hades memory topics` lists the topics")
    done = renew(context.memory, request.topic, who=context.who)
    return {"topic": request.topic, "state": None if done is None else state_document(done.state)}


_LEARNING_VIEWS = "hades.surfaces.cli.show_memory"
_STATE = "hades.surfaces.mcp.tools:MemoryStateReply"
RATE = Capability(
    "memory.rate", "rw", RateRequest, rate,
    cli=Cli(("memory", "rate"), ("name",), f"{_LEARNING_VIEWS}:show_rating", who="--who"),
    rest=Rest("POST", "/memory/rate", "memory", "Rate a state", examples=({"name": "design/approach_x",
                                                                          "importance": 0.9},)),
    mcp=Mcp("memory_rate", "Rate a memory", _STATE, is_idempotent=False), task=NO_TASK,
)  # fmt: skip
TRUST = Capability(
    "memory.trust", "rw", TrustRequest, trust,
    cli=Cli(("memory", "trust"), ("source", "trust"), f"{_LEARNING_VIEWS}:show_trust", who="--who"),
    rest=Rest("POST", "/memory/trust", "memory", "Trust a source", examples=({"source": "wiki", "trust": 0.8},)),
    mcp=Mcp("memory_trust", "Trust a source", _STATE), task=NO_TASK,
)  # fmt: skip
LEARN = Capability(
    "memory.learn", "rw", LearnRequest, learn,
    cli=Cli(("memory", "learn"), view=f"{_LEARNING_VIEWS}:show_learning", who="--who"),
    rest=Rest("POST", "/memory/learn", "memory", "Count readings and discover edges"), mcp=NO_TOOL,
    task=Task("learn from the use of memory"),
)  # fmt: skip
GROUPS = Capability(
    "memory.groups", "ro", GroupsRequest, groups,
    cli=Cli(("memory", "groups"), view=f"{_LEARNING_VIEWS}:show_groups"),
    rest=Rest("GET", "/memory/groups", "memory", "Groups of related topics"), mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
RECALL = Capability(
    "memory.recall", "ro", RecallRequest, recall,
    cli=Cli(("memory", "recall"), ("query",), f"{_LEARNING_VIEWS}:show_recall"),
    rest=Rest("POST", "/memory/recall", "memory", "Recall in planned steps"),
    mcp=Mcp("memory_recall", "Recall in planned steps", "hades.surfaces.mcp.tools:MemoryRecallReply", text="text"),
    task=NO_TASK,
)  # fmt: skip
RECONSOLIDATE = Capability(
    "memory.reconsolidate", "rw", ReconsolidateRequest, reconsolidate,
    cli=Cli(("memory", "reconsolidate"), ("topic",), f"{_LEARNING_VIEWS}:show_renewal", who="--who"),
    rest=Rest("POST", "/memory/{topic:path}/reconsolidate", "memory", "Renew a topic whose neighbours changed"),
    mcp=NO_TOOL, task=NO_TASK,
)  # fmt: skip
MEMORY_LEARNING = (RATE, TRUST, LEARN, GROUPS, RECALL, RECONSOLIDATE)
