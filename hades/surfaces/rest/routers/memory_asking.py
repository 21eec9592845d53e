"""Memory, asked with a body: searches, walks along edges, contexts in a budget; and, for writers, consolidation."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from hades.memory import functions
from hades.memory.recall.context import MAX_TOKENS
from hades.memory.service import Memory
from hades.surfaces.rest.services import CalledBy, Served, Services
from hades.surfaces.rest.shapes import TEXT_CHARACTERS, Id, Moment, Sent
from hades.wiring import open_language_model
from schemas.intervals import Mask

asking = APIRouter(prefix="/memory", tags=["memory"])
keeping = APIRouter(prefix="/memory", tags=["memory"])

Question = Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS, examples=["why was approach X rejected?"])]


class SearchBody(Sent):
    """A question to memory, with a window of time and a place to stand in it."""

    query: Question
    limit: int = Field(10, ge=1, le=100)
    time_window: tuple[Moment | None, Moment | None] | None = Field(
        None, description="when the nearest version began to hold: from, and before; null is open"
    )
    depth: int = Field(0, ge=0, le=4, description="also follow so many edges")
    as_of: Moment | None = None
    known_at: Moment | None = None


class ContextBody(Sent):
    """A question and how many tokens its context may take."""

    query: Question
    max_tokens: int = Field(MAX_TOKENS, ge=1, le=1_000_000)
    focus: tuple[Id, ...] = Field((), max_length=16, description="topics or summaries to show in detail")
    as_of: Moment | None = None
    known_at: Moment | None = None


class ConsolidateBody(Sent):
    """Which summaries to make."""

    level: int = Field(1, ge=1, le=3, description="1 days, 2 also weeks, 3 also months")
    as_of: Moment | None = Field(None, description="the moment that counts as now")


@asking.post("/search", summary="Search memory, and follow its edges")
async def search(body: SearchBody, services: Served) -> dict[str, Any]:
    """Each topic once, nearest first; with a depth also what true edges join to it, strongest first."""
    return await services.work(_search, _memory(services), body)


@asking.post("/context", summary="A context for a question in a number of tokens")
async def context(body: ContextBody, services: Served) -> dict[str, Any]:
    """What holds now, what it hangs on, summaries, details; never more than asked for, a tenth kept free."""
    made = await services.work(
        _memory(services).retrieve_within_budget, body.query, body.max_tokens, focus=body.focus, mask=_mask(body)
    )
    return made.as_dict()


@keeping.post("/consolidate", summary="Summarise what is over")
async def consolidate(body: ConsolidateBody, services: Served, caller: CalledBy) -> dict[str, Any]:
    """Days, weeks, months; twice is once, and the originals stay."""
    assert services.writable is not None
    memory = _memory(services, writes=True)
    made = await services.change(memory.consolidate, body.level, as_of=body.as_of, who=caller.name)
    return {"levels": [one.as_dict() for one in made]}


def _search(memory: Memory, body: SearchBody) -> dict[str, Any]:
    found = memory.search(body.query, body.time_window, limit=body.limit, mask=_mask(body))
    if not body.depth:
        return functions.found_as_dict(body.query, found)
    walked = memory.enhance(found, body.depth, mask=_mask(body))
    return {"query": body.query, **walked.as_dict(), "count": len(found)}


def _mask(body: SearchBody | ContextBody) -> Mask:
    return Mask(as_of=body.as_of, known_at=body.known_at)


def _memory(services: Services, *, writes: bool = False) -> Memory:
    tools = services.answers.tools
    store = services.writable if writes and services.writable is not None else services.readable
    model = open_language_model(services.settings) if writes else None
    return Memory(store, tools.embedder, language_model=model, tokenizer=tools.tokenizer)
