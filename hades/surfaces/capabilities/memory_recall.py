"""Recall: search memory, write a context, open a working set, consolidate, drill down."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from hades.surfaces.capabilities.capability import Capability, Cli, Mcp, Request, Rest, Shell, Task
from hades.surfaces.capabilities.context import CallContext
from hades.surfaces.capabilities.fields import Id, Moment
from hades.surfaces.capabilities.memory_records import AS_OF, KNOWN_AT, NO_TASK, NO_TOOL, TOPIC, Topic
from hades.surfaces.capabilities.query import Question

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
    from hades.memory.functions import find_as_dict
    from schemas.intervals import Mask

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
    from schemas.intervals import Mask

    mask = Mask(as_of=request.as_of, known_at=request.known_at)
    return context.memory.retrieve_within_budget(
        request.query, request.max_tokens, focus=request.focus, mask=mask
    ).as_dict()


def open_working_set(request: WorkingRequest, context: CallContext) -> dict[str, Any]:
    """The working set, or what of it is near to the question."""
    from hades.memory.recall.search import plain_state

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
    from hades.memory.history.names import UnknownMemory
    from hades.memory.recall.search import plain_state

    memory = context.memory
    state = memory.latest(request.summary) or memory.state(request.summary)
    if state is None:
        raise UnknownMemory(f"memory holds no summary {request.summary!r}; `hades memory topics summary/` lists them")
    sources = memory.drill_down(state.id, to_originals=request.originals)
    return {"summary": plain_state(state), "made_of": [plain_state(one) for one in sources]}


_VIEWS = "hades.surfaces.cli.memory.search_views"
SEARCH = Capability(
    "memory.search", "ro", SearchRequest, search,
    cli=Cli(("memory", "search"), ("query",), f"{_VIEWS}:show_search"),
    rest=Rest("POST", "/memory/search", "memory", "Search memory", is_also_get=True),
    mcp=Mcp("memory_search", "Search memory", "hades.surfaces.mcp.replies:MemorySearchReply"),
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
