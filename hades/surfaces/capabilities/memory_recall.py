"""Memory: search it, write a context, summarise it, and learn from its use."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from hades.memory.history.rows import UnknownMemory, plain
from hades.memory.recall import agent
from hades.memory.upkeep.learn import count_accesses, discover_edges, rate_state, trust_source
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities import replies
from hades.surfaces.capabilities.capability import (
    AtMoment,
    Cli,
    Id,
    Mcp,
    Moment,
    Question,
    Rest,
    Share,
    Shell,
    capability,
    field,
)
from hades.surfaces.capabilities.memory_states import PlainTopic, Topic, TopicOrState, Why
from hades.surfaces.capabilities.replies import edge_documents, unknown_topic
from schemas.ids import Mask

MAX_TOKENS = 100_000
MemoryQuestion = Annotated[
    Question, Shell(metavar="QUESTION"), Field(description="The question, in plain words.")
]


@capability(
    "memory.search",
    Cli("query"),
    Rest(
        "POST",
        "/memory/search",
        "Search memory",
        is_also_get=True,
    ),
    Mcp(
        "memory_search",
        "Search memory",
        replies.MemorySearchReply,
    ),
    also=AtMoment,
)
def search(
    context: CallContext,
    *,
    query: MemoryQuestion = field(examples=["when is the project due?"]),
    limit: int = field(
        "Maximum number of topics.",
        10,
        ge=1,
        le=100,
    ),
    began_from: Moment | None = field(
        "Only versions that began at this time or later.",
        None,
        "--from",
    ),
    began_until: Moment | None = field(
        "Only versions that began before this time.",
        None,
        "--until",
    ),
    level: int = field(
        "0: what was said; 1 to 3: daily, weekly, monthly summaries.",
        0,
        ge=0,
        le=3,
    ),
    depth: int = field(
        "Also follow this many edges.",
        0,
        "--related",
        ge=0,
        le=5,
    ),
    **when: Any,
) -> dict[str, Any]:
    """Search memory by words and meaning: each topic once, as it is now, nearest first."""
    mask = Mask(**when)
    if began_from or began_until:
        window = (began_from, began_until)
    else:
        window = None

    matches = context.memory.search(
        query,
        window,
        limit=limit,
        mask=mask,
        levels=(level,),
    )
    context.memory.log_accesses([match.state.id for match in matches])
    document = {
        "query": query,
        "results": plain(matches),
        "count": len(matches),
    }

    if not depth:
        return document

    return {
        **document,
        **plain(context.memory.enhance(matches, depth, mask=mask)),
    }


@capability(
    "memory.context",
    Cli("query"),
    Rest(
        "POST",
        "/memory/context",
        "A context within a number of tokens",
    ),
    also=AtMoment,
)
def write_context(
    context: CallContext,
    *,
    query: MemoryQuestion = field(examples=["why was approach X rejected?"]),
    max_tokens: int = field(
        "Maximum tokens; a tenth is kept free.",
        MAX_TOKENS,
        ge=1,
        le=1_000_000,
    ),
    focus: tuple[Id, ...] = field(
        "Topic or summary to show in detail; may be repeated.",
        (),
        max_length=16,
    ),
    **when: Any,
) -> dict[str, Any]:
    """Write a context for a question within a number of tokens: what holds now, its reasons,
    summaries, details.
    """
    return context.memory.retrieve_within_budget(
        query,
        max_tokens,
        focus=focus,
        mask=Mask(**when),
    ).as_dict()


@capability(
    "memory.working",
    Cli("topic"),
    Rest(
        "GET",
        "/memory/{topic:path}/working",
        "Working set of a topic",
    ),
)
def working(
    context: CallContext,
    *,
    topic: Topic,
    question: Question | None = field(
        "A question to the working set.",
        None,
        "--ask",
    ),
    limit: int = field(
        "Maximum number of results.",
        10,
        ge=1,
        le=100,
    ),
) -> dict[str, Any]:
    """Open the working set of a topic: its last and important versions, and what it is joined
    to.
    """
    working_set = context.memory.working(topic)
    report = working_set.report()

    if question is not None:
        return {
            "report": report,
            "results": plain(working_set.query(question, limit=limit)),
        }

    related = [
        {
            "relation": edge.relationship_type,
            "state": plain(state),
        }
        for edge, state in working_set.related(topic)
    ]
    return {
        "report": report,
        "history": plain(working_set.history(topic)),
        "related": related,
    }


@capability(
    "memory.consolidate",
    "rw",
    Cli(who="--who"),
    Rest(
        "POST",
        "/memory/consolidate",
        "Summarise past periods",
    ),
    task="consolidate memory",
)
def consolidate(
    context: CallContext,
    *,
    level: int = field(
        "1: days; 2: also weeks; 3: also months.",
        1,
        ge=1,
        le=3,
    ),
    as_of: Moment | None = field("The time that counts as now.", None),
) -> dict[str, Any]:
    """Summarise past days, weeks and months. Idempotent; the originals are kept."""
    return {
        "levels": context.memory.consolidate(
            level,
            as_of=as_of,
            who=context.who,
        )
    }


@capability(
    "memory.drill_down",
    Cli("summary"),
    Rest(
        "GET",
        "/memory/{summary:path}/drill-down",
        "What a summary was made from",
    ),
)
def drill_down(
    context: CallContext,
    *,
    summary: PlainTopic = field(
        "A topic under summary/, or the id of a version.",
        metavar="SUMMARY",
    ),
    originals: bool = field("Follow summaries down to the original versions.", False),
) -> dict[str, Any]:
    """List what a summary was made from."""
    memory = context.memory
    state = memory.latest(summary) or memory.state(summary)

    if state is None:
        raise UnknownMemory(
            f"memory holds no summary {summary!r}; `hades memory topics summary/` lists them"
        )

    sources = memory.drill_down(state.id, to_originals=originals)
    return {
        "summary": plain(state),
        "made_of": plain(sources),
    }


@capability(
    "memory.rate",
    "rw",
    Cli("name", who="--who"),
    Rest(
        "POST",
        "/memory/rate",
        "Rate a state",
        examples=(
            {
                "name": "design/approach_x",
                "importance": 0.9,
            },
        ),
    ),
    Mcp(
        "memory_rate",
        "Rate a memory",
        replies.MemoryStateReply,
        is_idempotent=False,
    ),
)
def rate(
    context: CallContext,
    *,
    name: TopicOrState,
    importance: Share | None = field("Importance, 0 to 1.", None),
    useful: bool | None = field(
        "Whether it helped: moves the importance by a quarter of the way.",
        None,
    ),
    why: Why = "",
) -> dict[str, Any]:
    """Say how important a state is, or whether it was useful; search and context rank by it. Undo
    restores it.
    """
    state = rate_state(
        context.memory,
        name,
        importance=importance,
        is_useful=useful,
        who=context.who,
        why=why,
    )
    return {
        "topic": state.topic,
        "state": plain(state),
    }


@capability(
    "memory.trust",
    "rw",
    Cli("source trust", who="--who"),
    Rest(
        "POST",
        "/memory/trust",
        "Trust a source",
        examples=({"source": "wiki", "trust": 0.8},),
    ),
    Mcp(
        "memory_trust",
        "Trust a source",
        replies.MemoryStateReply,
    ),
)
def trust(
    context: CallContext,
    *,
    source: Id = field("Name of the source, as facts name it.", metavar="SOURCE"),
    trust: Share = field(
        "Trust, 0 to 1; 0.5 where nobody said so.",
        metavar="TRUST",
    ),
    why: Why = "",
) -> dict[str, Any]:
    """Say how far a source is trusted; of two facts that exclude each other the more trusted one is
    kept.
    """
    state = trust_source(
        context.memory,
        source,
        trust,
        who=context.who,
        why=why,
    )
    return {
        "topic": state.topic,
        "state": plain(state),
    }


@capability(
    "memory.learn",
    "rw",
    Cli(who="--who"),
    Rest(
        "POST",
        "/memory/learn",
        "Count readings and discover edges",
    ),
    task="learn from the use of memory",
)
def learn(
    context: CallContext,
    *,
    limit: int = field(
        "Maximum number of changed topics to look at.",
        1000,
        ge=1,
        le=100_000,
    ),
) -> dict[str, Any]:
    """Count what was read, and join related topics by edges with a confidence; the flow
    consolidate_memory does so.
    """
    access_counts = count_accesses(context.memory)
    edges, topics, remaining = discover_edges(
        context.memory,
        limit=limit,
        who=context.who,
    )
    return {
        "accesses": access_counts,
        "topics": topics,
        "left": remaining,
        "edges": edge_documents(context.memory, edges),
    }


@capability(
    "memory.groups",
    Cli(),
    Rest(
        "GET",
        "/memory/groups",
        "Groups of related topics",
    ),
    also=AtMoment,
)
def groups(
    context: CallContext,
    *,
    limit: int = field(
        "Maximum number of groups.",
        50,
        ge=1,
        le=1000,
    ),
    **when: Any,
) -> dict[str, Any]:
    """Group the topics that edges join, each group named by the words that its topics share."""
    all_groups = agent.group_topics(context.memory, mask=Mask(**when))
    return {
        "groups": all_groups[:limit],
        "total": len(all_groups),
    }


@capability(
    "memory.recall",
    Cli("query"),
    Rest(
        "POST",
        "/memory/recall",
        "Recall in planned steps",
    ),
    Mcp(
        "memory_recall",
        "Recall in planned steps",
        replies.MemoryRecallReply,
        text="text",
    ),
    also=AtMoment,
)
def recall(
    context: CallContext,
    *,
    query: MemoryQuestion = field(examples=["why was X rejected?"]),
    max_tokens: int = field(
        "Maximum tokens of the first pass.",
        MAX_TOKENS,
        ge=1,
        le=1_000_000,
    ),
    **when: Any,
) -> dict[str, Any]:
    """Plan what a question needs, retrieve it in up to three passes, and say which steps found
    nothing.
    """
    outcome = agent.process_query(
        context.memory,
        query,
        max_tokens,
        mask=Mask(**when),
    )
    text = "\n\n".join(part["text"] for part in outcome["contexts"])
    return {
        "query": query,
        "text": text,
        **outcome,
    }


@capability(
    "memory.reconsolidate",
    "rw",
    Cli("topic", who="--who"),
    Rest(
        "POST",
        "/memory/{topic:path}/reconsolidate",
        "Renew a topic whose neighbours changed",
    ),
)
def reconsolidate(context: CallContext, *, topic: Topic) -> dict[str, Any]:
    """Make the next version of a topic if a topic it is joined to has changed since; else change
    nothing.
    """
    if context.memory.latest(topic) is None:
        raise unknown_topic(topic)

    promotion = agent.reconsolidate(
        context.memory,
        topic,
        who=context.who,
    )
    return {
        "topic": topic,
        "state": None if promotion is None else plain(promotion.state),
    }
