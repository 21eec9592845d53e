"""A written answer sentence by sentence. The whole answer is a route made from the capability."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from hades.errors import HadesError
from hades.ports.store import Mode
from hades.surfaces.access.callers import Caller
from hades.surfaces.capabilities.written_answer import ANSWER, AnswerRequest, stream_events
from hades.surfaces.rest.problems import of_error
from hades.surfaces.rest.routes import body_of
from hades.surfaces.rest.services import Call, CalledBy, Noted, Served, Services
from hades.surfaces.rest.streaming import event

if TYPE_CHECKING:
    from hades.retrieval.answer.write_answer import AnswerEvent

reading = APIRouter(tags=["questions"])

if TYPE_CHECKING:
    AnswerBody = AnswerRequest
else:
    AnswerBody = body_of(ANSWER)
_EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `sources`, `cost`, `sentence` as each is checked, then `answer` or `problem`.",
        "content": _EVENTS,
    }
}


@reading.post("/answer/stream", responses=_STREAM, response_class=StreamingResponse, summary="Answer, by sentences")
async def stream(body: AnswerBody, services: Served, call: Noted, caller: CalledBy) -> StreamingResponse:
    """Server-sent events: the sources, the cost, each sentence when it is checked, then the whole answer."""
    request = ANSWER.check(body.arguments())
    assert isinstance(request, AnswerRequest)
    return StreamingResponse(_events(services, call, caller, request), media_type="text/event-stream")


async def _events(services: Services, call: Call, caller: Caller, request: AnswerRequest) -> AsyncIterator[bytes]:
    try:
        async for one in answer_events(services, caller, request):
            if one.name == "answer":
                call.query_id = one.value.query_id
            yield event(one.name, orjson.dumps(_plain(one.value)))
    except HadesError as error:
        yield event("problem", bytes(of_error(error).body))


async def answer_events(services: Services, caller: Caller, request: AnswerRequest) -> AsyncIterator[AnswerEvent]:
    """The events as they are made in a thread that answers; a caller that leaves ends the work at the next sentence."""
    loop = asyncio.get_running_loop()
    made: asyncio.Queue[AnswerEvent | None] = asyncio.Queue()
    context = services.context(caller, Mode.READ_ONLY)
    gone = False

    def work() -> None:
        for one in stream_events(request, context):
            if gone:
                return
            loop.call_soon_threadsafe(made.put_nowait, one)

    turn = asyncio.ensure_future(services.work(work))
    turn.add_done_callback(lambda _: made.put_nowait(None))
    try:
        while (one := await made.get()) is not None:
            yield one
        await turn
    finally:
        gone = True


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
