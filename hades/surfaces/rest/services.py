"""What the routes work with, opened once for the life of the process, and the threads that answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar, cast

from fastapi import Depends, Request

from hades.errors import HadesError
from hades.ports.store import GraphStore, Mode
from hades.retrieval.turn.answers import Answers
from hades.retrieval.turn.turn_log import TurnLog
from hades.settings import Settings
from hades.surfaces.access.callers import Caller, require
from hades.surfaces.access.limits import Limits
from hades.surfaces.access.metrics import Exposition
from hades.surfaces.access.questions import Questions, open_questions
from hades.surfaces.access.service_context import ServiceContext
from hades.surfaces.access.tokens import Tokens
from hades.telemetry.audit import Audit, CallMode
from hades.wiring import open_answers, open_store, open_written_store

T = TypeVar("T")
_WRITERS = 4
CALL, CALLER = "hades.call", "hades.caller"  # where the guard puts them into a request's scope


class TooBusy(HadesError):
    """More is being asked than the service can answer."""

    http_status = 503


@dataclass
class Call:
    """What a route notes about its call for the audit: reading or writing, and which turn."""

    mode: CallMode = "RO"
    query_id: str = ""


@dataclass
class Services:
    """Everything behind the routes. `writable` is None in a service that only reads."""

    settings: Settings
    limits: Limits
    answers: Answers
    readable: GraphStore
    writable: GraphStore | None
    questions: Questions
    tokens: Tokens
    audit: Audit
    exposition: Exposition
    threads: ThreadPoolExecutor
    writers: ThreadPoolExecutor
    _waiting: int = field(default=0, init=False)

    @property
    def home(self) -> Path:
        """The folder of this graph."""
        return self.settings.home

    def context(self, caller: Caller, mode: Mode) -> ServiceContext:
        """The context of one call that needs this mode."""
        return ServiceContext(
            self.settings, caller.name, mode, self.answers, self.readable, self.writable, self.questions
        )

    async def work(self, call: Callable[..., T], *arguments: object, **named: object) -> T:
        """Run a blocking call in one of the threads that answer; refused when too many calls are waiting."""
        return await self._run(self.threads, call, arguments, named)

    async def change(self, call: Callable[..., T], *arguments: object, **named: object) -> T:
        """Run a call that writes, in threads of its own: a build may hold the store for long."""
        return await self._run(self.writers, call, arguments, named)

    async def _run(
        self, pool: ThreadPoolExecutor, call: Callable[..., T], arguments: Sequence[object], named: Mapping[str, object]
    ) -> T:
        if self._waiting >= self.limits.waiting:
            raise TooBusy(f"Server busy: {self._waiting} calls are waiting; retry in 1 s.")
        self._waiting += 1
        try:
            return await asyncio.wrap_future(pool.submit(partial(call, *arguments, **named)))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish running calls and close everything."""
        self.threads.shutdown(cancel_futures=True)
        self.writers.shutdown(cancel_futures=True)
        self.questions.close()
        self.answers.close()
        self.readable.close()
        if self.writable is not None:
            self.writable.close()


def open_services(settings: Settings, mode: Mode, limits: Limits = Limits()) -> Services:
    """Open what a service of this mode needs: one that only reads never holds a handle that could write."""
    writable = None if mode is Mode.READ_ONLY else open_written_store(settings, mode)
    readable = open_store(settings, Mode.READ_ONLY)
    answers = open_answers(settings)
    exposition = Exposition()
    turns = TurnLog(readable, writable)
    questions = open_questions(settings, mode, answers, turns, limits.cache_bytes, exposition.turn)
    memory = questions.cached.memory_manager
    exposition.follow_bytes("answers", lambda: 0 if memory is None else memory.ram_cache.current_bytes)
    return Services(
        settings=settings,
        limits=limits,
        answers=answers,
        readable=readable,
        writable=writable,
        questions=questions,
        tokens=Tokens(settings.home),
        audit=Audit(settings.home / "logs"),
        exposition=exposition,
        threads=ThreadPoolExecutor(limits.answering, thread_name_prefix="hades-answers"),
        writers=ThreadPoolExecutor(_WRITERS, thread_name_prefix="hades-writes"),
    )


# Dependencies are coroutines on purpose: a plain function would be sent through another pool of threads.
async def services_of(request: Request) -> Services:
    """The services of the app that a request came to."""
    return cast(Services, request.app.state.services)


async def call_of(request: Request) -> Call:
    """What the guard keeps about this call."""
    return cast(Call, request.scope[CALL])


async def caller_of(request: Request) -> Caller:
    """Who calls."""
    return cast(Caller, request.scope[CALLER])


def needing(mode: Mode) -> Callable[[Request], Awaitable[None]]:
    """A dependency of routes: the caller may do this much, and the audit knows whether it wrote."""

    async def check(request: Request) -> None:
        if mode is not Mode.READ_ONLY:
            (await call_of(request)).mode = "RW"
        require(await caller_of(request), mode)

    return check


Served = Annotated[Services, Depends(services_of)]
Noted = Annotated[Call, Depends(call_of)]
CalledBy = Annotated[Caller, Depends(caller_of)]
