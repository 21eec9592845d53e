"""A question answered stage by stage. All other routes of questions are made from capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from hades.surfaces.capabilities.query import QUERY, QueryRequest
from hades.surfaces.rest.routes import body_of
from hades.surfaces.rest.services import CalledBy, Noted, Served
from hades.surfaces.rest.streaming import events_of

reading = APIRouter(tags=["questions"])

if TYPE_CHECKING:
    QueryBody = QueryRequest
else:
    QueryBody = body_of(QUERY)
_EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events `stage` as they end, then `answer` or `problem`.", "content": _EVENTS}
}


@reading.post("/query/stream", responses=_STREAM, response_class=StreamingResponse, summary="Answer, stage by stage")
async def stream(body: QueryBody, services: Served, call: Noted, caller: CalledBy) -> StreamingResponse:
    """Server-sent events: each stage when it ends, with its cost, then the whole answer."""
    request = QUERY.check(body.arguments())
    return StreamingResponse(events_of(services, call, caller, request), media_type="text/event-stream")
