"""Memory, read: what is known of a topic now, what was known when, and why."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from hades.memory.history.audit import acts_on
from hades.memory.history.names import MAX_TOPIC, UnknownMemory
from hades.memory.history.reader import Reader
from hades.memory.recall.search import Found, Window, search_memories
from hades.memory.service import Memory
from hades.ports.clock import utc_now
from hades.ports.store import Direction
from hades.surfaces.rest.plain import plain, shown
from hades.surfaces.rest.services import Served, Services
from hades.surfaces.rest.shapes import TEXT_CHARACTERS, AsOf, Id, KnownAt, Moment
from schemas.intervals import Mask
from schemas.memory import MemoryAudit, MemoryState

reading = APIRouter(prefix="/memory", tags=["memory"])

Topic = Annotated[
    str, Path(min_length=1, max_length=MAX_TOPIC, description="may hold slashes", examples=["design/approach_x"])
]


@reading.get("/topics", summary="Topics")
async def topics(
    services: Served,
    prefix: Annotated[str, Query(max_length=MAX_TOPIC)] = "",
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> dict[str, Any]:
    """Names that begin so, sorted."""
    found = await services.work(_memory(services).topics, prefix)
    return {"topics": found[:limit], "total": len(found)}


@reading.get("/search", summary="What memory holds that is near to a text")
async def search(
    services: Served,
    query: Annotated[str, Query(min_length=1, max_length=TEXT_CHARACTERS, examples=["when is the project due?"])],
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    began_from: Annotated[Moment | None, Query(description="the version began to hold then or later")] = None,
    began_until: Annotated[Moment | None, Query(description="and before then")] = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
) -> dict[str, Any]:
    """Each topic once, as it is now or as it was then, nearest first."""
    window = (began_from, began_until) if began_from or began_until else None
    found = await services.work(_found, services, query, window, Mask(as_of, known_at))
    return {"query": query, "results": [one.as_dict() for one in found[:limit]], "count": len(found[:limit])}


@reading.get("/conflicts", summary="Facts that excluded each other")
async def conflicts(services: Served, open_only: bool = False) -> dict[str, Any]:
    """What was decided and why, oldest first; or only those that wait for a person."""
    found = await services.work(_memory(services).conflicts, open_only=open_only)
    return {"conflicts": plain(found)}


@reading.get("/{topic:path}/latest", summary="What is known of a topic now")
async def latest(topic: Topic, services: Served) -> dict[str, Any]:
    """The newest version."""
    return _one(topic, await services.work(_memory(services).latest, topic))


@reading.get("/{topic:path}/history", summary="Versions of a topic")
async def history(
    topic: Topic,
    services: Served,
    limit: Annotated[int, Query(ge=1, le=1000, description="of more, the newest")] = 100,
    as_of: AsOf = None,
    known_at: KnownAt = None,
) -> dict[str, Any]:
    """Oldest first."""
    states = await services.work(_memory(services).history, topic, limit=limit, mask=Mask(as_of, known_at))
    return {"topic": topic, "states": plain(states)}


@reading.get("/{topic:path}/at", summary="What was true of a topic then")
async def at(
    topic: Topic,
    services: Served,
    moment: Annotated[Moment, Query(description="UTC without a zone", examples=["2026-01-31T12:00:00Z"])],
    known_at: KnownAt = None,
) -> dict[str, Any]:
    """As known now, or as known then."""
    return _one(topic, await services.work(_memory(services).at, topic, moment, known_at=known_at))


@reading.get("/{topic:path}/edges", summary="What a topic is joined to")
async def edges(
    topic: Topic,
    services: Served,
    direction: Direction = Direction.ANY,
    types: Annotated[list[Id] | None, Query(max_length=32)] = None,
    everything: Annotated[bool, Query(description="also edges that ended or are yet to begin")] = False,
    as_of: AsOf = None,
    known_at: KnownAt = None,
) -> dict[str, Any]:
    """Edges true now, or as the two moments say."""
    found = await services.work(
        _memory(services).edges,
        topic,
        mask=Mask(as_of, known_at),
        direction=direction,
        types=types,
        everything=everything,
    )
    return {"topic": topic, "edges": plain(found)}


@reading.get("/{topic:path}/trace", summary="The whole life of a topic")
async def trace(topic: Topic, services: Served) -> dict[str, Any]:
    """All versions by id, oldest first."""
    return shown(await services.work(_memory(services).trace, topic))


@reading.get("/{topic:path}/audit", summary="Who did what to a topic")
async def audit(topic: Topic, services: Served) -> dict[str, Any]:
    """Acts on its versions, oldest first."""
    found = await services.work(_acts, services, topic)
    return {"subject": topic, "acts": plain(found)}


@reading.get("/{topic:path}/why", summary="What holds of a topic, and why")
async def why(topic: Topic, services: Served, as_of: AsOf = None, known_at: KnownAt = None) -> dict[str, Any]:
    """The current answer, the edges it rests on, and those that no longer hold."""
    account = await services.work(_memory(services).why, topic, mask=Mask(as_of, known_at))
    return account.as_dict()


def _found(services: Services, query: str, window: Window | None, mask: Mask) -> list[Found]:
    return search_memories(Reader(services.readable, services.answers.tools.embedder, utc_now(), mask), query, window)


def _acts(services: Services, topic: str) -> list[MemoryAudit]:
    return acts_on(services.readable, _memory(services).trace(topic).states)


def _memory(services: Services) -> Memory:
    return Memory(services.readable, services.answers.tools.embedder)


def _one(topic: str, state: MemoryState | None) -> dict[str, Any]:
    if state is None:
        raise UnknownMemory(f"nothing was known of {topic!r} then; GET /v1/memory/topics lists what there is")
    return shown(state)
