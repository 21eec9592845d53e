"""Tools that ask the published graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import Field

from hades.ports.clock import utc_now
from hades.ports.store import Direction, Mode
from hades.retrieval.functions import get_best_paths
from hades.retrieval.turn.answers import Answers
from hades.retrieval.turn.metered_view import MeteredView
from hades.retrieval.turn.plan import caps_of
from hades.surfaces.access.callers import Caller
from hades.surfaces.capabilities.query import QueryRequest
from hades.surfaces.mcp.asking import paths_of
from hades.surfaces.mcp.calls import Reply, answer, required
from hades.surfaces.mcp.service import Service
from hades.surfaces.mcp.shapes import Citation, Edited, Passages, Paths, PathString, PathStrings, RetrievalResult
from hades.telemetry.turn import Turn
from schemas.edges import MentionType
from schemas.retrieval import CitedPassage, Retrieval

READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
EDITS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
NAMES_OF_PASSAGE = 12

Question = Annotated[
    str,
    Field(
        max_length=4000,
        description="The question, in plain words.",
        examples=["How does the event loop run a coroutine?", "Which papers extend the attention mechanism?"],
    ),
]
HippoMode = Literal["single", "multi_hop"]
_RECIPES: dict[str, str] = {"single": "hipporag", "multi_hop": "hipporag_multihop"}


def add_graph_tools(server: MCPServer[Any], service: Service) -> None:
    """Register the tools that read the graph, and in a service that may write the one that corrects it."""
    _add_pathrag(server, service)
    _add_hipporag(server, service)
    _add_query_paths(server, service)
    if service.writable is not None:
        _add_entity_update(server, service)


def _add_pathrag(server: MCPServer[Any], service: Service) -> None:
    @server.tool(title="Cited paths for a question", annotations=READS)
    async def pathrag_retrieve(
        query: Question,
        context: Context[Any, Any],
        max_paths: Annotated[int, Field(ge=1, le=50, description="Give back at most so many paths.")] = 5,
        domain_filter: Annotated[
            str | None,
            Field(max_length=200, description="Only paths whose every entity is of this domain.", examples=["physics"]),
        ] = None,
        as_of_version: Annotated[
            str | None,
            Field(
                max_length=64,
                description="A snapshot id, which then answers, or a time at which the edges were true.",
                examples=["2026-01-31T12:00Z", "g0123456789abcdef01234567"],
            ),
        ] = None,
        format_for_llm: Annotated[bool, Field(description="Give back one prompt with the evidence instead.")] = False,
    ) -> Annotated[CallToolResult, Paths]:
        """Answer a question with short relational paths through the knowledge graph, each edge with its source.

        Use it for questions about how things are connected. No path at all is a success with count 0.
        """

        def work(_: Caller) -> Reply:
            return paths_of(service, required(query), max_paths, domain_filter, as_of_version, format_for_llm)

        return await answer(service, context, work)


def _add_hipporag(server: MCPServer[Any], service: Service) -> None:
    @server.tool(title="Passages for a question", annotations=READS)
    async def hipporag_retrieve(
        query: Question,
        context: Context[Any, Any],
        limit: Annotated[int, Field(ge=1, le=50, description="Give back at most so many passages.")] = 10,
        mode: Annotated[
            HippoMode, Field(description="single: one walk from what the question names; multi_hop: walks that go on.")
        ] = "single",
    ) -> Annotated[CallToolResult, Passages]:
        """Find the passages that answer a question, by a walk over the graph from the entities it names.

        Use it for questions whose answer is spread over several documents. Each result names its document.
        """

        def work(_: Caller) -> Reply:
            asked = QueryRequest(query=required(query), recipe=_RECIPES[mode])
            found = Retrieval.model_validate_json(service.questions.ask(asked).text)
            shown = found.passages[:limit]
            outcome = Passages(
                success=True,
                query=found.query,
                results=[
                    _result(passage, names)
                    for passage, names in zip(shown, _names(service.answers, shown), strict=True)
                ],
                count=len(shown),
                reasons=[str(reason) for reason in found.reasons],
                query_id=found.query_id,
                snapshot=found.snapshot,
            )
            return Reply(outcome, query_id=found.query_id)

        return await answer(service, context, work)


def _add_query_paths(server: MCPServer[Any], service: Service) -> None:
    @server.tool(title="Best paths as text with citations", annotations=READS)
    async def graph_query_paths(
        query: Question,
        context: Context[Any, Any],
        k: Annotated[int, Field(ge=1, le=20, description="Give back at most so many paths.")] = 6,
        L: Annotated[int, Field(ge=1, le=5, description="Edges that a path may have at most.")] = 5,
    ) -> Annotated[CallToolResult, PathStrings]:
        """The k cheapest paths of at most L edges between what the question names, as text with citations.

        Use it while planning an answer: it gives no passages and reads less than `pathrag_retrieve`.
        """

        def work(_: Caller) -> Reply:
            asked = required(query)
            with service.answers.lease() as view:
                pinned = Answers(lambda: view, lambda: view.info.snapshot, service.answers.tools, service.answers.plan)
                found = get_best_paths(pinned, asked, M=k, L=L)
                snapshot = view.info.snapshot
            outcome = PathStrings(
                success=True,
                query=asked,
                paths=[_path_string(path) for path in found["paths"]],
                count=len(found["paths"]),
                reasons=[str(reason) for reason in found["reasons"]],
                snapshot=snapshot,
            )
            return Reply(outcome)

        return await answer(service, context, work)


def _add_entity_update(server: MCPServer[Any], service: Service) -> None:
    @server.tool(title="Correct an entity", annotations=EDITS)
    async def graph_entity_update(
        entity_id: Annotated[
            str,
            Field(
                max_length=300, description="Id of the entity, as paths show it.", examples=["entities/ada_lovelace"]
            ),
        ],
        fields: Annotated[
            dict[str, Any],
            Field(
                description="What to change: name, aliases (replaces the list), summary, type (concept, method or "
                "person), domain.",
                examples=[{"summary": "a British mathematician"}, {"name": "Ada King", "aliases": ["Ada Lovelace"]}],
            ),
        ],
        context: Context[Any, Any],
    ) -> Annotated[CallToolResult, Edited]:
        """Correct what the graph says about one entity; it survives rebuilds and can be undone.

        The same edit twice is one. A change of identity of a much connected entity, or against somebody else's edit,
        waits until a second party agrees. Questions see it after the next publish.
        """

        def work(caller: Caller) -> Reply:
            from hades.curation.apply import update_entity

            assert service.writable is not None
            report = update_entity(
                service.writable,
                entity_id,
                fields,
                who=f"mcp:{caller.name}",
                why="by an agent's tool",
                at=utc_now(),
                embedder=service.embedder,
            )
            return Reply(Edited(success=True, **report.as_dict()))

        return await answer(service, context, work, needs=Mode.READ_WRITE)


def _names(answers: Answers, passages: Sequence[CitedPassage]) -> list[list[str]]:
    """Names of the entities each passage mentions, heaviest mention first; read through a meter of its own."""
    with answers.lease() as view:
        turn = Turn(caps_of(answers.plan), answers.tools.clock)
        metered = MeteredView(view, turn)
        with turn.stage("entities") as stage:
            numbers = metered.number([passage.id for passage in passages])
            known = numbers[numbers >= 0]
            found = metered.expand(
                known, direction=Direction.OUT, types=[str(MentionType.MENTIONS)], fanout=NAMES_OF_PASSAGE
            )
            targets = list(dict.fromkeys(found.target.tolist()))
            facts = metered.nodes(np.array(targets, np.int64))
            stage.given = len(facts)
    name_of = {target: fact.name for target, fact in zip(targets, facts, strict=False)}
    mentioned: dict[int, list[str]] = {}
    for row, target in zip(found.row.tolist(), found.target.tolist(), strict=True):
        if target in name_of:
            mentioned.setdefault(int(known[row]), []).append(name_of[target])
    return [mentioned.get(number, []) for number in numbers.tolist()]


def _result(passage: CitedPassage, names: list[str]) -> RetrievalResult:
    return RetrievalResult(
        chunk_id=passage.id,
        text=passage.text,
        score=passage.score,
        rank=passage.rank,
        entities=names,
        metadata={
            "document": passage.document,
            "title": passage.title,
            "span": list(passage.span),
            "from": list(passage.origins),
        },
    )


def _path_string(path: dict[str, Any]) -> PathString:
    return PathString(
        rank=path["rank"],
        score=path["score"],
        text=path["text"],
        nodes=[node["id"] for node in path["nodes"]],
        citations=[
            Citation(edge=edge["id"], doc=edge["provenance"]["doc"], span=edge["provenance"]["span"])
            for edge in path["edges"]
        ],
    )
