"""Tools over an agent's memory: say something of a topic, ask what is known, what was known when, what is near."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import AwareDatetime, Field

from hades.ports.store import Mode
from hades.surfaces.access.callers import Caller
from hades.surfaces.mcp.calls import Reply, answer, required
from hades.surfaces.mcp.graph_tools import READS
from hades.surfaces.mcp.service import Service
from hades.surfaces.mcp.shapes import FoundState, Recalled, Remembered, State
from schemas.memory import MemoryState

ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
Topic = Annotated[
    str, Field(max_length=500, description="What it is about.", examples=["project/deadline", "user/preferences"])
]
Moment = Annotated[AwareDatetime, Field(description="A time with its zone.", examples=["2026-01-31T12:00:00Z"])]


def add_memory_tools(server: MCPServer[Any], service: Service) -> None:
    """Register the tools that read memory, and in a service that may write the one that adds to it."""
    _add_latest(server, service)
    _add_at(server, service)
    _add_search(server, service)
    if service.writable is not None:
        _add_add(server, service)


def _add_add(server: MCPServer[Any], service: Service) -> None:
    @server.tool(title="Remember something", annotations=ADDS)
    async def memory_add(
        topic: Topic,
        content: Annotated[
            str, Field(max_length=20_000, description="What is now known, whole.", examples=["The deadline is May 2."])
        ],
        context: Context[Any, Any],
        tags: Annotated[list[str], Field(max_length=32, description="Words to find it by.")] = [],  # noqa: B006
        confidence: Annotated[float, Field(ge=0, le=1, description="How sure it is.")] = 1.0,
        metadata: Annotated[dict[str, Any], Field(description="Anything else worth keeping.")] = {},  # noqa: B006
        valid_from: Annotated[
            AwareDatetime | None, Field(description="Since when it holds; left out: from now on.")
        ] = None,
    ) -> Annotated[CallToolResult, Remembered]:
        """Say something new about a topic: its next version. Earlier versions stay and can be asked for."""

        def work(caller: Caller) -> Reply:
            state = service.memory.add(
                topic,
                content,
                tags=tags,
                confidence=confidence,
                metadata=metadata,
                valid_from=valid_from,
                who=f"mcp:{caller.name}",
                why="by an agent's tool",
            )
            return Reply(Remembered(success=True, topic=state.topic, state=shown(state)))

        return await answer(service, context, work, needs=Mode.READ_WRITE)


def _add_latest(server: MCPServer[Any], service: Service) -> None:
    @server.tool(title="What is known now", annotations=READS)
    async def memory_latest(topic: Topic, context: Context[Any, Any]) -> Annotated[CallToolResult, Remembered]:
        """The newest version of what is known about a topic; `state` is null when nothing is."""

        def work(_: Caller) -> Reply:
            return _remembered(topic, service.memory.latest(topic))

        return await answer(service, context, work)


def _add_at(server: MCPServer[Any], service: Service) -> None:
    @server.tool(title="What was true at a moment", annotations=READS)
    async def memory_at(
        topic: Topic,
        moment: Moment,
        context: Context[Any, Any],
        known_at: Annotated[
            AwareDatetime | None, Field(description="As far as was known then; left out: as known now.")
        ] = None,
    ) -> Annotated[CallToolResult, Remembered]:
        """What was true of a topic at a moment; `state` is null before the first version."""

        def work(_: Caller) -> Reply:
            return _remembered(topic, service.memory.at(topic, moment, known_at=known_at))

        return await answer(service, context, work)


def _add_search(server: MCPServer[Any], service: Service) -> None:
    @server.tool(title="Search the memory", annotations=READS)
    async def memory_search(
        query: Annotated[
            str, Field(max_length=4000, description="What to look for.", examples=["when is the project due?"])
        ],
        context: Context[Any, Any],
        limit: Annotated[int, Field(ge=1, le=50, description="Give back at most so many topics.")] = 10,
    ) -> Annotated[CallToolResult, Recalled]:
        """What is known that is nearest in meaning to a text: the newest version of each topic."""

        def work(_: Caller) -> Reply:
            found = service.memory.search(required(query), limit=limit)
            results = [FoundState(score=one.similarity, state=shown(one.state)) for one in found]
            return Reply(Recalled(success=True, query=query, results=results, count=len(results)))

        return await answer(service, context, work)


def shown(state: MemoryState) -> State:
    """A state as tools show it: without its vector and its bookkeeping."""
    return State(
        id=f"memory_states/{state.key}",
        topic=state.topic,
        content=state.content,
        version=state.version,
        timestamp=state.timestamp,
        valid_from=state.valid_from,
        valid_until=state.valid_until,
        tags=list(state.tags),
        confidence=state.confidence,
        metadata=dict(state.metadata),
    )


def _remembered(topic: str, state: MemoryState | None) -> Reply:
    return Reply(Remembered(success=True, topic=topic, state=None if state is None else shown(state)))
