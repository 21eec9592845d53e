"""One call of a tool: who calls, what it may do, stages told as they end, stopped when the caller lets go, audited."""

from __future__ import annotations

import asyncio
import getpass
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent

from hades.errors import HadesError
from hades.ports.store import Mode
from hades.surfaces.access.callers import Caller, Door, require
from hades.surfaces.mcp.notes import noted
from hades.surfaces.mcp.service import Service
from hades.surfaces.mcp.shapes import Outcome
from hades.telemetry.turn import Stage, watched

NOT_AUTHENTICATED = "Not authenticated"
QUERY_REQUIRED = "Query is required"


class CallRefused(HadesError):
    """A call that is answered with `success: false` and this text."""


class CallStopped(Exception):
    """The caller has let go; raised in the thread that answers, between two stages."""


@dataclass(frozen=True)
class Reply:
    """What a tool found: the document, the text a model reads in its place where there is one, and the turn's id."""

    outcome: Outcome
    text: str | None = None
    query_id: str = ""


async def answer(
    service: Service, context: Context[Any, Any], work: Callable[[Caller], Reply], *, needs: Mode = Mode.READ_ONLY
) -> CallToolResult:
    """Do the work of a tool in a thread and give its reply the form of the protocol; failures are replies too."""
    note = noted()
    try:
        caller = caller_of(service, context)
        require(caller, needs)
        reply = await _in_thread(service, context, lambda: work(caller), may_stop=needs is Mode.READ_ONLY)
        note.status, note.query_id = "ok", reply.query_id
        return _result(reply)
    except HadesError as error:
        note.status = type(error).__name__
        return _result(Reply(Outcome(success=False, error=str(error))))


def caller_of(service: Service, context: Context[Any, Any]) -> Caller:
    """Who calls: whoever started this process over stdio, the owner of the token over HTTP."""
    headers = context.headers
    if headers is None and not service.door.needs_token:
        caller = _at_the_pipe(service.door)
    else:
        caller = _at_the_port(service, headers or {})
    noted().who = caller.name
    return caller


def _at_the_pipe(door: Door) -> Caller:
    return Caller(getpass.getuser(), door.mode, door.tenant)


def _at_the_port(service: Service, headers: Mapping[str, str]) -> Caller:
    door = service.door
    kind, _, text = headers.get("authorization", "").partition(" ")
    caller = service.tokens.caller(text.strip()) if kind.lower() == "bearer" else None
    if caller is None and not door.needs_token:
        caller = Caller("loopback", door.mode, door.tenant)
    if caller is None or caller.tenant not in (None, door.tenant):
        raise CallRefused(NOT_AUTHENTICATED)
    if service.rates.wait(caller.name) > 0:
        raise CallRefused("this caller comes too often; come again in a second")
    return caller


def required(query: str) -> str:
    """The question without the space around it, or the refusal of requirement A75."""
    if not query.strip():
        raise CallRefused(QUERY_REQUIRED)
    return query.strip()


async def _in_thread(
    service: Service, context: Context[Any, Any], work: Callable[[], Reply], *, may_stop: bool
) -> Reply:
    """Work in a thread while stages are reported. A read that is let go ends with its stage, a write is finished."""
    loop, ended = asyncio.get_running_loop(), asyncio.Queue[Stage | None]()
    stopped = threading.Event()

    def watch(stage: Stage) -> None:
        if stopped.is_set():
            raise CallStopped
        loop.call_soon_threadsafe(ended.put_nowait, stage)

    def watched_work() -> Reply:
        with watched(watch):
            return work()

    async def report() -> None:
        number = 0
        while (stage := await ended.get()) is not None:
            number += 1
            await context.report_progress(number, None, f"{stage.name}: {stage.given} found in {stage.ms:.0f} ms")

    reporter = asyncio.create_task(report())
    try:
        reply = await anyio.to_thread.run_sync(watched_work, abandon_on_cancel=may_stop, limiter=service.limiter)
        ended.put_nowait(None)
        await reporter
    finally:
        stopped.set()
        reporter.cancel()
    return reply


def _result(reply: Reply) -> CallToolResult:
    document = reply.outcome.model_dump(mode="json", exclude_unset=True)
    text = reply.text if reply.text is not None else reply.outcome.model_dump_json(exclude_unset=True)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=document,
        is_error=not reply.outcome.success,
        _meta={"query_id": reply.query_id} if reply.query_id else None,
    )
