"""One audit line for every call, also for one that never reached its tool: {mode, path, status, ms} and who."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext

from hades.surfaces.access.tokens import without_tokens
from hades.telemetry.audit import Audit, CallMode

_SHOWN = 120
_PATHS = {"tools/call": ("tool", "name"), "resources/read": ("resource", "uri")}


@dataclass
class Note:
    """What a call says of itself on the way; a tool that is not reached leaves it as it is."""

    mode: CallMode = "RO"
    who: str = ""
    status: str = ""
    query_id: str = ""


_note: ContextVar[Note] = ContextVar("note of a call")


def noted() -> Note:
    """The note of the call that is being answered."""
    found = _note.get(None)
    return Note() if found is None else found


def auditing(audit: Audit, writing: frozenset[str]) -> ServerMiddleware[Any]:
    """Writes the line of each call when it ends, whichever way it ends."""

    async def middleware(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in _PATHS or ctx.request_id is None:
            return await call_next(ctx)
        note = Note("RW" if _name_of(ctx) in writing else "RO")
        token = _note.set(note)
        began, ended = time.perf_counter(), ""
        try:
            result = await call_next(ctx)
            ended = "BadCall" if _is_error(result) else "ok"
            return result
        except BaseException as error:
            ended = "Cancelled" if isinstance(error, anyio.get_cancelled_exc_class()) else type(error).__name__
            raise
        finally:
            _note.reset(token)
            more = {name: said for name, said in (("who", note.who), ("query_id", note.query_id)) if said}
            ms = (time.perf_counter() - began) * 1000
            audit.write(note.mode, _path(ctx), note.status or ended, ms, **more)

    return middleware


def _is_error(result: HandlerResult) -> bool:
    return bool(result.get("isError") if isinstance(result, dict) else getattr(result, "is_error", False))


def _name_of(context: ServerRequestContext[Any, Any]) -> str:
    return str((context.params or {}).get(_PATHS[context.method][1], ""))


def _path(context: ServerRequestContext[Any, Any]) -> str:
    named = "".join(one if one.isprintable() else "?" for one in _name_of(context)[:_SHOWN])
    return f"mcp/{_PATHS[context.method][0]}/{without_tokens(named)}"
