"""The retrieval tools of agents: cited paths, passages, and bare paths as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from hades.compat.functions import get_best_paths
from hades.ports.store import Direction
from hades.retrieval.answer.prompt import WindowSize
from hades.retrieval.answers import Answers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import caps_of
from hades.surfaces.capabilities.capability import CallContext, Capability, Mcp, OmittedSurface, Request, Task
from hades.surfaces.capabilities.questions import QueryRequest, Question, require_domain
from hades.telemetry.turn import Turn
from schemas.edges import MentionType
from schemas.plan import Reason

if TYPE_CHECKING:
    from hades.retrieval.answers import Answers


QUESTION = "The question, in plain words."
NAMES_PER_PASSAGE = 12
_HIPPO_RECIPES = {"single": "hipporag", "multi_hop": "hipporag_multihop"}


class RetrievePathsRequest(Request):
    """Answer a question with short relational paths through the knowledge graph, each edge with its source.

    Use it for questions about how things are connected. No path at all is a success with count 0.
    """

    query: Question = Field(
        description=QUESTION,
        examples=["How does the event loop run a coroutine?", "Which papers extend the attention mechanism?"],
    )
    max_paths: int = Field(5, ge=1, le=50, description="Maximum number of paths.")
    domain_filter: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="Only paths whose every entity belongs to this domain.", examples=["physics"]
    )
    as_of_version: Annotated[str, Field(max_length=64)] | None = Field(
        None,
        description="The id of a snapshot, which then answers, or a time at which the edges were true.",
        examples=["2026-01-31T12:00Z", "g0123456789abcdef01234567"],
    )
    format_for_llm: bool = Field(False, description="Return one prompt with the evidence instead.")


class RetrievePassagesRequest(Request):
    """Find the passages that answer a question, by a walk over the graph from the entities that it names.

    Use it for questions whose answer is spread over several documents. Each result names its document.
    """

    query: Question = Field(description=QUESTION, examples=["Who designed the Analytical Engine?"])
    limit: int = Field(10, ge=1, le=50, description="Maximum number of passages; at most what the plan's cap allows.")
    mode: Literal["single", "multi_hop"] = Field(
        "single", description="single: one walk from the entities named; multi_hop: walks that continue from results."
    )


class QueryPathsRequest(Request):
    """Find the k cheapest paths of at most L edges between the entities of a question, as text with citations.

    Use it while planning an answer: it returns no passages and reads less than `pathrag_retrieve`.
    """

    query: Question = Field(description=QUESTION, examples=["Ada Lovelace, Charles Babbage"])
    k: int = Field(6, ge=1, le=20, description="Maximum number of paths.")
    L: int = Field(5, ge=1, le=5, description="Maximum number of edges in a path.")


def retrieve_paths(request: RetrievePathsRequest, context: CallContext) -> dict[str, Any]:
    """The paths of the one answer path, or a prompt of them that fits the context window of the settings."""
    rules = context.settings.pathrag
    window = WindowSize(rules.context_window_tokens, rules.reserve_tokens) if request.format_for_llm else None
    asked = QueryRequest(query=request.query, max_paths=request.max_paths, domain=request.domain_filter)
    reply = context.ask(asked, version=request.as_of_version, window=window)
    answer = reply.document
    if request.domain_filter is not None and not answer["paths"]:
        require_domain(request.domain_filter, context)
    if request.format_for_llm:
        return {"formatted_prompt": answer["prompt"]}
    return {
        "query": request.query,
        "paths": answer["paths"],
        "count": len(answer["paths"]),
        "pruned_from": _paths_before_cut(answer),
        "reason": None if answer["paths"] else str(Reason.NO_PATHS),
        "reasons": answer["reasons"],
        "query_id": reply.query_id,
        "snapshot": answer["snapshot"],
        "tier": reply.tier,
    }


def retrieve_passages(request: RetrievePassagesRequest, context: CallContext) -> dict[str, Any]:
    """The passages of a walk, each with the entities that it mentions."""
    plan = context.answers.plan.model_dump(mode="json", exclude={"reasons"}) | {"final_context": request.limit}
    reply = context.ask(QueryRequest(query=request.query, recipe=_HIPPO_RECIPES[request.mode], plan=plan))
    answer = reply.document
    shown = answer["passages"][: request.limit]
    names = _entity_names(context.answers, [passage["id"] for passage in shown])
    return {
        "query": answer["query"],
        "results": [_result(passage, named) for passage, named in zip(shown, names, strict=True)],
        "count": len(shown),
        "reasons": answer["reasons"],
        "query_id": reply.query_id,
        "snapshot": answer["snapshot"],
    }


def query_paths(request: QueryPathsRequest, context: CallContext) -> dict[str, Any]:
    """Paths by best-first search, as text."""
    answers = context.answers
    with answers.lease() as view:
        pinned = Answers(lambda: view, lambda: view.info.snapshot, answers.tools, answers.plan)
        found = get_best_paths(pinned, request.query, M=request.k, L=request.L)
        snapshot = view.info.snapshot
    return {
        "query": request.query,
        "paths": [_path_string(path) for path in found["paths"]],
        "count": len(found["paths"]),
        "reasons": [str(reason) for reason in found["reasons"]],
        "snapshot": snapshot,
    }


def _paths_before_cut(answer: Mapping[str, Any]) -> int:
    stages = {stage["name"]: stage for stage in answer["telemetry"]["stages"]}
    return int(stages["graph"]["out"]) if "graph" in stages else 0


def _entity_names(answers: Answers, passages: Sequence[str]) -> list[list[str]]:
    """Names of the entities that each passage mentions, heaviest mention first; read through a meter of its own."""
    import numpy as np

    with answers.lease() as view:
        turn = Turn(caps_of(answers.plan), answers.tools.clock)
        metered = MeteredView(view, turn)
        with turn.stage("entities") as stage:
            numbers = metered.number(passages)
            known = numbers[numbers >= 0]
            mentions = [str(MentionType.MENTIONS)]
            found = metered.expand(known, direction=Direction.OUT, types=mentions, fanout=NAMES_PER_PASSAGE)
            targets = list(dict.fromkeys(found.target.tolist()))
            facts = metered.nodes(np.array(targets, np.int64))
            stage.given = len(facts)
    name_of = {target: fact.name for target, fact in zip(targets, facts, strict=False)}
    named: dict[int, list[str]] = {}
    for row, target in zip(found.row.tolist(), found.target.tolist(), strict=True):
        if target in name_of:
            named.setdefault(int(known[row]), []).append(name_of[target])
    return [named.get(number, []) for number in numbers.tolist()]


def _result(passage: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    return {
        "chunk_id": passage["id"],
        "text": passage["text"],
        "score": passage["score"],
        "rank": passage["rank"],
        "entities": names,
        "metadata": {name: passage[name] for name in ("document", "title", "span", "from")},
    }


def _path_string(path: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rank": path["rank"],
        "score": path["score"],
        "text": path["text"],
        "nodes": [node["id"] for node in path["nodes"]],
        "citations": [
            {"edge": edge["id"], "doc": edge["provenance"]["doc"], "span": edge["provenance"]["span"]}
            for edge in path["edges"]
        ],
    }


_AS_QUERY = OmittedSurface("`query` offers the same answer with all its options")
_REPLIES = "hades.surfaces.mcp.tools"
RETRIEVE_PATHS = Capability(
    "retrieve_paths", "ro", RetrievePathsRequest, retrieve_paths, cli=_AS_QUERY, rest=_AS_QUERY,
    mcp=Mcp("pathrag_retrieve", "Cited paths for a question", f"{_REPLIES}:PathsReply", text="formatted_prompt"),
    task=Task("retrieve paths", is_snapshot_bound=True),
)  # fmt: skip
RETRIEVE_PASSAGES = Capability(
    "retrieve_passages", "ro", RetrievePassagesRequest, retrieve_passages, cli=_AS_QUERY, rest=_AS_QUERY,
    mcp=Mcp("hipporag_retrieve", "Passages for a question", f"{_REPLIES}:PassagesReply"),
    task=OmittedSurface("`retrieve` with the recipe hipporag is the same"),
)  # fmt: skip
QUERY_PATHS = Capability(
    "query_paths", "ro", QueryPathsRequest, query_paths, cli=_AS_QUERY, rest=_AS_QUERY,
    mcp=Mcp("graph_query_paths", "Best paths as text with citations", f"{_REPLIES}:PathStringsReply"),
    task=OmittedSurface("`get best paths` is the same search with its own options"),
)  # fmt: skip
AGENT_RETRIEVAL = (RETRIEVE_PATHS, RETRIEVE_PASSAGES, QUERY_PATHS)
