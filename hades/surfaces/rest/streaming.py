"""A turn as server-sent events: each stage when it ends, then the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict

import orjson

from hades.errors import HadesError
from hades.surfaces.access.questions import Answered, Asked
from hades.surfaces.rest.problems import of_error
from hades.surfaces.rest.services import Call, Services
from hades.telemetry.turn import Stage, watched

_NAMES = {"taken": "in", "given": "out"}  # as an answer's telemetry calls them


async def events_of(services: Services, call: Call, asked: Asked) -> AsyncIterator[bytes]:
    """The events of one turn. An answer that was kept from before has no stages to show."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Queue[Stage | None] = asyncio.Queue()

    def told(stage: Stage) -> None:
        loop.call_soon_threadsafe(ended.put_nowait, stage)

    def answer() -> Answered:
        with watched(told):
            return services.questions.ask(asked)

    turn = asyncio.ensure_future(services.work(answer))
    turn.add_done_callback(lambda _: ended.put_nowait(None))
    while (stage := await ended.get()) is not None:
        shown = {_NAMES.get(name, name): value for name, value in asdict(stage).items()}
        yield event("stage", orjson.dumps(shown))
    try:
        answered = await turn
    except HadesError as error:
        yield event("problem", bytes(of_error(error).body))
        return
    call.query_id = answered.query_id
    yield event("answer", answered.text)


def event(name: str, data: bytes) -> bytes:
    """One event; its data is JSON on one line."""
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
