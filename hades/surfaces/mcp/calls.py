"""One call of a tool: authentication, progress after each stage, cancellation, audit."""

from __future__ import annotations

import asyncio
import getpass
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent

from hades.errors import HadesError
from hades.ports.store import Mode
from hades.surfaces.access.callers import Caller, Door, require
from hades.surfaces.mcp.notes import noted
from hades.surfaces.mcp.replies import ToolReply
from hades.surfaces.mcp.service import Service
from hades.telemetry.turn import Stage, watched

NOT_AUTHENTICATED = "Not authenticated"
QUERY_REQUIRED = "Query is required"
LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})
REFUSED_CODE = -32001  # of the range that JSON-RPC leaves to servers


class CallRefused(HadesError):
    """A call that fails with `success: false` and this text."""


class CallStopped(Exception):
    """The caller cancelled; raised in the thread of the call, between two stages."""


@dataclass(frozen=True)
class ToolOutcome:
    """The result of a tool: the reply, the text a model reads in its place where there is one, and the query id."""

    reply: ToolReply
    text: str | None = None
    query_id: str = ""


async def answer(
    service: Service, context: Context[Any, Any], work: Callable[[Caller], ToolOutcome], *, needs: Mode = Mode.READ_ONLY
) -> CallToolResult:
    """Run the work of a tool in a thread and return its result for the protocol; failures are results too."""
    note = noted()
    try:
        caller = caller_of(service, context)
        require(caller, needs)
        reply = await _in_thread(service, context, lambda: work(caller), may_stop=needs is Mode.READ_ONLY)
        note.status, note.query_id = "ok", reply.query_id
        return _result(reply)
    except HadesError as error:
        note.status = type(error).__name__
        return _result(ToolOutcome(ToolReply(success=False, error=str(error))))


def caller_of(service: Service, context: Context[Any, Any]) -> Caller:
    """The caller: over stdio the user who started this process, over HTTP the owner of the token."""
    headers = context.headers
    if headers is None and not service.door.needs_token:
        caller = _local_caller(service.door)
    else:
        caller = _remote_caller(service, headers or {})
    noted().who = caller.name
    return caller


def admitting(service: Service) -> ServerMiddleware[Any]:
    """Refuses lists to a caller without a token where one is needed: what a server offers is told to its users only."""

    async def middleware(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method in LISTS and service.door.needs_token:
            try:
                _remote_caller(service, getattr(ctx.request, "headers", None) or {})
            except CallRefused as error:
                raise MCPError(REFUSED_CODE, str(error)) from None
        return await call_next(ctx)

    return middleware


def _local_caller(door: Door) -> Caller:
    return Caller(getpass.getuser(), door.mode, door.tenant)


def _remote_caller(service: Service, headers: Mapping[str, str]) -> Caller:
    door = service.door
    kind, _, text = headers.get("authorization", "").partition(" ")
    caller = service.tokens.caller(text.strip()) if kind.lower() == "bearer" else None
    if caller is None and not door.needs_token:
        caller = Caller("loopback", door.mode, door.tenant)
    if caller is None or caller.tenant not in (None, door.tenant):
        raise CallRefused(NOT_AUTHENTICATED)
    if (seconds := service.rates.wait(caller.name)) > 0:
        raise CallRefused(f"Rate limit exceeded; retry in {max(1, ceil(seconds))} s.")
    return caller


def required(query: str) -> str:
    """The question without surrounding space, or the refusal that clients expect."""
    if not query.strip():
        raise CallRefused(QUERY_REQUIRED)
    return query.strip()


async def _in_thread(
    service: Service, context: Context[Any, Any], work: Callable[[], ToolOutcome], *, may_stop: bool
) -> ToolOutcome:
    """Run in a thread and report stages. A cancelled read stops after its stage; a cancelled write is finished."""
    loop, ended = asyncio.get_running_loop(), asyncio.Queue[Stage | None]()
    stopped = threading.Event()

    def watch(stage: Stage) -> None:
        if stopped.is_set():
            raise CallStopped
        loop.call_soon_threadsafe(ended.put_nowait, stage)

    def watched_work() -> ToolOutcome:
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


def _result(outcome: ToolOutcome) -> CallToolResult:
    reply = outcome.reply
    text = outcome.text if outcome.text is not None else reply.model_dump_json(exclude_unset=True)
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=reply.model_dump(mode="json", exclude_unset=True),
        is_error=not reply.success,
        _meta={"query_id": outcome.query_id} if outcome.query_id else None,
    )
