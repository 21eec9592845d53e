"""A turn as server-sent events: each stage when it ends, then the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict

import orjson

from hades.errors import HadesError
from hades.ports.store import Mode
from hades.surfaces.access.callers import Caller
from hades.surfaces.capabilities.capability import JsonReply, Reply, Request
from hades.surfaces.capabilities.query import QUERY
from hades.surfaces.rest.problems import of_error
from hades.surfaces.rest.services import Call, Services
from hades.telemetry.turn import Stage, watched

_NAMES = {"taken": "in", "given": "out"}  # as an answer's telemetry calls them


async def events_of(services: Services, call: Call, caller: Caller, request: Request) -> AsyncIterator[bytes]:
    """The events of one turn. A cached answer has no stages to show."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Queue[Stage | None] = asyncio.Queue()

    context = services.context(caller, Mode.READ_ONLY)

    def on_stage(stage: Stage) -> None:
        loop.call_soon_threadsafe(ended.put_nowait, stage)

    def answer() -> Reply:
        with watched(on_stage):
            return QUERY.call(request, context)

    turn = asyncio.ensure_future(services.work(answer))
    turn.add_done_callback(lambda _: ended.put_nowait(None))
    while (stage := await ended.get()) is not None:
        shown = {_NAMES.get(name, name): value for name, value in asdict(stage).items()}
        yield event("stage", orjson.dumps(shown))
    try:
        reply = await turn
    except HadesError as error:
        yield event("problem", bytes(of_error(error).body))
        return
    assert isinstance(reply, JsonReply)
    call.query_id = reply.query_id
    yield event("answer", reply.text)


def event(name: str, data: bytes) -> bytes:
    """One event; its data is JSON on one line."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
