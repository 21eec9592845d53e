"""The retrieval tools of agents: cited paths, passages, and bare paths as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from hades.budget import Turn
from hades.compat.functions import get_best_paths
from hades.ports.store import Direction
from hades.retrieval.answers import Answers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import MODES, caps_of
from hades.retrieval.pipeline import BadQuestion
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.capabilities import replies
from hades.surfaces.capabilities.capability import Mcp, Question, capability, field
from hades.surfaces.capabilities.questions import (
    PLAIN_QUESTION,
    DocumentLimits,
    limit_documents,
    require_domain,
)
from schemas.edges import MentionType
from schemas.plan import HARD_CAPS, Profile

_NAMES_PER_PASSAGE = 12
_HIPPO_RECIPES = {
    "single": "hipporag",
    "multi_hop": "hipporag_multihop",
}
_HIPPO_MODES = (*_HIPPO_RECIPES, *MODES)
HippoMode = Literal[_HIPPO_MODES]  # type: ignore[valid-type]


@capability(
    "retrieve_paths",
    Mcp(
        "pathrag_retrieve",
        "Cited paths for a question",
        replies.PathsReply,
        text="formatted_prompt",
    ),
    task="retrieve paths",
    also=DocumentLimits,
)
def retrieve_paths(
    context: CallContext,
    *,
    query: Question = field(
        PLAIN_QUESTION,
        examples=[
            "How does the event loop run a coroutine?",
            "Which papers extend the attention mechanism?",
        ],
    ),
    max_paths: int = field(
        "Maximum number of paths.",
        5,
        ge=1,
        le=50,
    ),
    domain_filter: Annotated[str, Field(max_length=200)] | None = field(
        "Only paths whose every entity belongs to this domain.",
        None,
        examples=["physics"],
    ),
    as_of_version: Annotated[str, Field(max_length=64)] | None = field(
        "The id of a snapshot, which then answers, or a time at which the edges were true.",
        None,
        examples=["2026-01-31T12:00Z", "g0123456789abcdef01234567"],
    ),
    format_for_llm: bool = field("Return one prompt with the evidence instead.", False),
    **limits: Any,
) -> dict[str, Any]:
    """Answer a question with short relational paths through the knowledge graph, each edge with its
    source.

    Use it for questions about how things are connected. No path at all is a success with count 0.
    """
    rag = context.pathrag
    only = context.limited(limit_documents(domain_filter, **limits))
    retrieve = rag.retrieve_and_format if format_for_llm else rag.retrieve_paths
    answer: Any = retrieve(
        query,
        max_paths,
        domain_filter,
        as_of_version,
        only=only,
        asker=context.asker,
    )

    if not answer["success"]:
        raise BadQuestion(answer["error"])
    if domain_filter is not None and context.limit is None and not answer["count"]:
        require_domain(domain_filter, context)

    return {"formatted_prompt": answer["formatted_prompt"]} if format_for_llm else answer


@capability(
    "retrieve_passages",
    Mcp(
        "hipporag_retrieve",
        "Passages for a question",
        replies.PassagesReply,
    ),
)
def retrieve_passages(
    context: CallContext,
    *,
    query: Question = field(
        PLAIN_QUESTION,
        examples=["Who designed the Analytical Engine?"],
    ),
    limit: int = field(
        "Maximum number of passages; at most what the plan's cap allows.",
        10,
        ge=1,
        le=50,
    ),
    mode: HippoMode = field(
        "single: one walk from the entities named; multi_hop: walks that continue from results; "
        "execution, planning, brainstorming: the modes of nexus, with at most 5, 10 and 20 "
        "passages.",
        "single",
    ),
) -> dict[str, Any]:
    """Find the passages that answer a question, by a walk over the graph from the entities that it
    names.

    Use it for questions whose answer is spread over several documents. Each result names its
    document.
    """
    plan = context.answers.plan.model_dump(mode="json", exclude={"reasons"}) | {
        "final_context": limit
    }
    if limit > HARD_CAPS[Profile(context.answers.plan.profile)].final_context:
        plan = {
            "profile": Profile.LONG,
            "final_context": limit,
        }

    if mode in _HIPPO_RECIPES:
        options = {"recipe": _HIPPO_RECIPES[mode]}
    else:
        options = {"recipe": "nexus", "mode": mode}

    reply = context.ask(
        query,
        plan=plan,
        only=context.limited(None),
        **options,
    )
    answer = reply.document
    passages = answer["passages"][:limit]
    names = _entity_names(context, [passage["id"] for passage in passages])

    results = []
    for passage, entities in zip(passages, names, strict=True):
        results.append(_passage_document(passage, entities))

    return {
        "query": answer["query"],
        "results": results,
        "count": len(results),
        "reasons": answer["reasons"],
        "query_id": reply.query_id,
        "snapshot": answer["snapshot"],
    }


def _passage_document(
    passage: Mapping[str, Any],
    entities: Sequence[str],
) -> dict[str, Any]:
    """A passage with where it stands; `file_path` is its file inside the workspace or folder."""
    names = ("document", "title", "headings", "path", "span", "from", "timestamp")
    metadata = {name: passage[name] for name in names}
    metadata["file_path"] = passage["path"] or passage["document"]
    return {
        "chunk_id": passage["id"],
        "text": passage["text"],
        "score": passage["score"],
        "rank": passage["rank"],
        "entities": entities,
        "metadata": metadata,
    }


def _entity_names(context: CallContext, passages: Sequence[str]) -> list[list[str]]:
    """Names of the entities that each passage mentions, heaviest mention first; read through a
    meter of its own.
    """
    answers = context.answers
    with answers.read(passages) as view:
        turn = Turn(caps_of(answers.plan), answers.tools.clock)
        metered = MeteredView(view, turn, context.limited(None))
        with turn.stage("entities") as stage:
            numbers = metered.number(passages)
            chunks = numbers[numbers >= 0]
            mentions = [str(MentionType.MENTIONS)]
            edges = metered.expand(
                chunks,
                direction=Direction.OUT,
                types=mentions,
                fanout=_NAMES_PER_PASSAGE,
            )
            shown = edges.target[metered.may_show(edges.target)]
            targets = list(dict.fromkeys(shown.tolist()))
            facts = metered.nodes(np.array(targets, np.int64))
            stage.given = len(facts)

    name_of = {target: fact.name for target, fact in zip(targets, facts, strict=False)}
    names_by_passage: dict[int, list[str]] = {}
    for row, target in zip(edges.row.tolist(), edges.target.tolist(), strict=True):
        if target in name_of:
            names_by_passage.setdefault(int(chunks[row]), []).append(name_of[target])

    return [names_by_passage.get(number, []) for number in numbers.tolist()]


@capability(
    "query_paths",
    Mcp(
        "graph_query_paths",
        "Best paths as text with citations",
        replies.PathStringsReply,
    ),
)
def query_paths(
    context: CallContext,
    *,
    query: Question = field(
        PLAIN_QUESTION,
        examples=["Ada Lovelace, Charles Babbage"],
    ),
    k: int = field(
        "Maximum number of paths.",
        6,
        ge=1,
        le=20,
    ),
    L: int = field(
        "Maximum number of edges in a path.",
        5,
        ge=1,
        le=5,
    ),
) -> dict[str, Any]:
    """Find the k cheapest paths of at most L edges between the entities of a question, as text with
    citations.

    Use it while planning an answer: it returns no passages and reads less than `pathrag_retrieve`.
    """
    answers = context.answers
    with answers.lease() as view:
        pinned_answers = Answers(
            lambda: view,
            lambda: view.info.snapshot,
            answers.tools,
            answers.plan,
        )
        best = get_best_paths(
            pinned_answers,
            query,
            M=k,
            L=L,
        )
        snapshot = view.info.snapshot

    return {
        "query": query,
        "paths": [_path_string(path) for path in best["paths"]],
        "count": len(best["paths"]),
        "reasons": [str(reason) for reason in best["reasons"]],
        "snapshot": snapshot,
    }


def _path_string(path: Mapping[str, Any]) -> dict[str, Any]:
    citations = []
    for edge in path["edges"]:
        source = edge["provenance"]
        citations.append(
            {
                "edge": edge["id"],
                "doc": source["doc"],
                "span": source["span"],
            }
        )

    return {
        "rank": path["rank"],
        "score": path["score"],
        "text": path["text"],
        "nodes": [node["id"] for node in path["nodes"]],
        "citations": citations,
    }
