"""Threads, workers, streaming."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TypeVar, cast

import h11
from fastapi import Depends, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from hades.errors import HadesError
from hades.ports.store import GraphStore, Mode
from hades.retrieval.answers import Answers
from hades.retrieval.turn_result import TurnLog
from hades.settings.load import child_environment
from hades.settings.tree import Settings
from hades.surfaces.access.contexts import Exposition, Questions, ServiceContext, open_questions
from hades.surfaces.access.limits import Caller, Door, Limits, Tokens, require
from hades.telemetry.logs import Audit, CallMode, configure_logs
from hades.wiring import open_answers, open_store, open_written_store

# What the routes work with, opened once for the life of the process, and the threads that answer.


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
# Several processes behind one socket: the kernel hands each connection to one, and all map the same snapshot. Each
# is a new interpreter that is given the socket. A fork would copy locks and thread pools as they happen to be, so
# that a worker could wait for a thread that its process does not have. One that dies is started again. A client's
# rate limit is divided among them, because each counts by itself.
_SHORT_LIFE = 2.0  # seconds; a worker that ends sooner has not started
_FAILED_STARTS = 3  # in a row, after which the service gives up


class WorkersFailed(HadesError):
    """Workers that end as soon as they are started."""


def serve_with_workers(
    settings: Settings, door: Door, listening: socket.socket, limits: Limits = Limits(), workers: int = 1
) -> None:
    """Answer on the socket with this number of processes until this one is told to stop."""
    share = share_of(limits, workers)
    if workers == 1:
        work(settings, door, listening, share)
        return
    os.set_inheritable(listening.fileno(), True)
    given = pickle.dumps((settings, door, share, listening.fileno()))
    supervise(lambda: _start(given), workers)


def work(settings: Settings, door: Door, listening: socket.socket, limits: Limits) -> None:
    """Answer on the socket in this process."""
    from hades.surfaces.rest.app import serve

    serve(settings, door, listening, limits)


def share_of(limits: Limits, workers: int) -> Limits:
    """The limits of one of several workers: rates, waiting calls and the memory for answers are divided."""
    return replace(
        limits,
        per_second=limits.per_second / workers,
        burst=max(1.0, limits.burst / workers),
        threads=limits.threads or max(1, (os.cpu_count() or 1) // workers),
        waiting=max(1, limits.waiting // workers),
        cache_bytes=limits.cache_bytes // workers,
    )


def supervise(start: Callable[[], int], workers: int) -> None:
    """Keep child processes running, which `start` starts; stop all when this process is told to stop."""
    running: dict[int, float] = {}
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        _tell(running, signal.SIGTERM)

    before = {one: signal.signal(one, stop) for one in (signal.SIGTERM, signal.SIGINT)}
    failed = 0
    try:
        while not stopping and len(running) < workers:
            running[start()] = time.monotonic()
        while running:
            process, _ = os.wait()
            lived = time.monotonic() - running.pop(process, 0.0)
            if stopping:
                continue
            failed = failed + 1 if lived < _SHORT_LIFE else 0
            if failed >= _FAILED_STARTS:
                stop(signal.SIGTERM, None)
                _wait_for(running)
                raise WorkersFailed(
                    f"{failed} workers ended within {_SHORT_LIFE:.0f} s of their start; "
                    "run `hades serve` without --workers to see why"
                )
            running[start()] = time.monotonic()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _start(given: bytes) -> int:
    """Start an interpreter that works; it reads what it is given from its standard input, and inherits the socket."""
    reading, writing = os.pipe()
    try:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(given)  # a few kilobytes, which a pipe holds
        environment = {**child_environment("PYTHONPATH"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        program = [sys.executable, "-c", f"from {__name__} import work_as_given; work_as_given()"]
        at_start = [(os.POSIX_SPAWN_DUP2, reading, 0)]
        return os.posix_spawn(sys.executable, program, environment, file_actions=at_start)
    finally:
        os.close(reading)


def work_as_given() -> None:
    """What a worker does: answer until it is told to stop."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends a worker that has not begun to answer
    settings, door, limits, handle = pickle.loads(sys.stdin.buffer.read())
    configure_logs(settings.log_format, settings.log_level, settings.secrets())
    work(settings, door, socket.socket(fileno=handle), limits)


def _tell(running: dict[int, float], signal_number: int) -> None:
    for process in running:
        try:
            os.kill(process, signal_number)
        except ProcessLookupError:
            continue


def _wait_for(running: dict[int, float]) -> None:
    for process in list(running):
        os.waitpid(process, 0)
        running.pop(process)


# One connection: a request must arrive in time however slowly its bytes drip, and a Unix peer has a name.


def protocol_of(arrive_seconds: float) -> type[H11Protocol]:
    """The protocol class with this deadline; uvicorn itself waits for a slow request without limit."""

    class Connection(H11Protocol):
        """Closes a connection on which a request begins and does not end in time."""

        arriving: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.client = self.client or _peer(transport)
            self._expect()

        def data_received(self, data: bytes) -> None:
            self._expect()
            super().data_received(data)
            if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR, h11.SWITCHED_PROTOCOL):
                self._note_arrival()

        def connection_lost(self, exc: Exception | None) -> None:
            self._note_arrival()
            super().connection_lost(exc)

        def _expect(self) -> None:
            if self.arriving is None:
                self.arriving = self.loop.call_later(arrive_seconds, self._give_up)

        def _note_arrival(self) -> None:
            if self.arriving is not None:
                self.arriving.cancel()
                self.arriving = None

        def _give_up(self) -> None:
            self.arriving = None
            self.transport.abort()

    return Connection


def _peer(transport: asyncio.BaseTransport) -> tuple[str, int] | None:
    """The user and the process at the other end of a Unix socket."""
    peer: Any = transport.get_extra_info("socket")
    if peer is None or peer.family != socket.AF_UNIX:
        return None
    pid, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return f"uid:{uid}", pid
