"""What the routes work with: the open graph, threads that answer, metrics, and one connection."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import h11
import uvicorn
from fastapi import Depends, Request
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from uvicorn.protocols.http.h11_impl import H11Protocol

from hades.errors import HadesError
from hades.ingest.sources.remote.ledger import sync_states
from hades.ports.services import utc_now
from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.snapshot.pointer import snapshots
from hades.surfaces.access.contexts import Service, ServiceContext
from hades.surfaces.access.limits import (
    BACKLOG,
    LIMITED_NEXT,
    Caller,
    CallerRefused,
    Door,
    Limits,
    require,
)
from hades.surfaces.access.uploads import Uploads
from hades.telemetry.logs import CallMode
from schemas.answer import Retrieval

T = TypeVar("T")
_WRITERS = 4
# where the guard puts a call and its caller into a request's scope
CALL = "hades.call"
CALLER = "hades.caller"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_READS = (0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Exposition:
    """Counts requests and turns of one process; each service has its own registry.

    Names and labels are promises to whoever watches the service: dashboards and alerts ask for
    them.
    """

    def __init__(self) -> None:
        # a second series for each, which no dashboard asks for
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "hades_requests_total",
            "Requests answered, by boundary, route and status.",
            ("mode", "route", "status"),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "hades_request_seconds",
            "Seconds a request took.",
            ("mode", "route"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._turn_seconds = Histogram(
            "hades_turn_seconds",
            "Seconds a stage of a turn took; stage `turn` is the whole.",
            ("recipe", "stage"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._turn_reads = Histogram(
            "hades_turn_reads",
            "Documents and edges that a turn read.",
            ("recipe",),
            buckets=_READS,
            registry=registry,
        )
        self._reasons = Counter(
            "hades_reasons_total",
            "Trims and early stops of turns, by reason code.",
            ("reason",),
            registry=registry,
        )
        self._age = Gauge(
            "hades_snapshot_age_seconds",
            "Seconds since the snapshot that serves was published.",
            registry=registry,
        )
        self._snapshot = Gauge(
            "hades_snapshot_info",
            "1 for the snapshot that serves.",
            ("snapshot",),
            registry=registry,
        )
        self._source_documents = Gauge(
            "hades_source_documents",
            "Documents of a remote source.",
            ("source",),
            registry=registry,
        )
        self._source_age = Gauge(
            "hades_source_age_seconds",
            "Seconds since a remote source was last in step.",
            ("source",),
            registry=registry,
        )
        self._source_failures = Gauge(
            "hades_source_failures",
            "Syncs of a remote source that failed since it was last in step.",
            ("source",),
            registry=registry,
        )
        self.hits = Counter(
            "hades_cache_hits_total",
            "Lookups a cache tier answered.",
            ("tier",),
            registry=registry,
        )
        self.bytes = Gauge(
            "hades_cache_bytes",
            "Bytes a cache tier holds.",
            ("tier",),
            registry=registry,
        )

    def request(
        self,
        mode: str,
        route: str,
        status: int,
        seconds: float,
    ) -> None:
        """Count a request that was answered."""
        self._requests.labels(mode, route, str(status)).inc()
        self._request_seconds.labels(mode, route).observe(seconds)

    def turn(self, answer: Retrieval) -> None:
        """Count a turn that was worked out."""
        for stage in answer.telemetry.stages:
            self._turn_seconds.labels(answer.recipe, stage.name).observe(stage.ms / 1000)

        self._turn_seconds.labels(answer.recipe, "turn").observe(answer.telemetry.ms / 1000)
        self._turn_reads.labels(answer.recipe).observe(answer.telemetry.reads)
        for reason in answer.reasons:
            self._reasons.labels(str(reason)).inc()

    def text(self, home: Path) -> bytes:
        """Everything, as a scrape reads it, with the snapshot that serves and how old it is."""
        self._snapshot.clear()
        serving = next((snapshot for snapshot in snapshots(home) if snapshot.serves), None)

        if serving is not None:
            self._snapshot.labels(serving.snapshot).set(1)
            if serving.created_at is not None:
                age = utc_now() - datetime.fromisoformat(serving.created_at)
                self._age.set(max(0.0, age.total_seconds()))

        self._measure_sources(home)
        return generate_latest(self.registry)

    def _measure_sources(self, home: Path) -> None:
        """Size and age of each remote source."""
        for gauge in (self._source_documents, self._source_age, self._source_failures):
            gauge.clear()

        for state in sync_states(home, {}):
            self._source_documents.labels(state.name).set(state.documents)
            self._source_failures.labels(state.name).set(state.failures)
            if state.last_success is not None:
                age = utc_now() - state.last_success
                self._source_age.labels(state.name).set(max(0.0, age.total_seconds()))


class TooBusy(HadesError):
    """More is being asked than the service can answer."""

    http_status = 503


@dataclass
class Call:
    """What a route notes about its call for the audit: reading or writing, and which turn."""

    mode: CallMode = "RO"
    query_id: str = ""


class Services(Service):
    """Everything behind the routes of one door."""

    def __init__(
        self,
        settings: Settings,
        door: Door,
        limits: Limits = Limits(),
    ) -> None:
        self.exposition = Exposition()
        super().__init__(
            settings,
            door,
            limits,
            self.exposition.turn,
        )
        memory = self.cached.memory_manager
        cache_bytes = self.exposition.bytes.labels("answers")
        cache_bytes.set_function(lambda: 0 if memory is None else memory.ram_cache.current_bytes)
        self.threads = ThreadPoolExecutor(
            limits.answering,
            thread_name_prefix="hades-answers",
        )
        self.writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="hades-writes")
        self.uploads = Uploads(settings, door.folders)
        self._waiting = 0

    def context(self, caller: Caller, mode: Mode) -> ServiceContext:
        """The context of one call that needs this mode."""
        return ServiceContext(
            self,
            caller.name,
            mode,
            caller.limit,
            caller.asker,
        )

    async def work(self, call: Callable[..., T], *arguments: object, writes: bool = False) -> T:
        """Run a blocking call in one of the threads that answer; refused when too many calls are
        waiting.

        A call that writes has threads of its own: a build may hold the store for long.
        """
        if self._waiting >= self.limits.waiting:
            raise TooBusy(f"Server busy: {self._waiting} calls are waiting; retry in 1 s.")

        self._waiting += 1
        try:
            pool = self.writers if writes else self.threads
            return await asyncio.wrap_future(pool.submit(call, *arguments))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish running calls and close everything."""
        self.threads.shutdown(cancel_futures=True)
        self.writers.shutdown(cancel_futures=True)
        self.uploads.close()
        super().close()


# Dependencies are coroutines on purpose: a plain function would be sent through another pool of
# threads.
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
        caller = await caller_of(request)
        if mode is not Mode.READ_ONLY:
            (await call_of(request)).mode = "RW"
            if caller.limit is not None:
                raise CallerRefused(f"this call speaks of the whole corpus; {LIMITED_NEXT}")

        require(caller, mode)

    return check


Served = Annotated[Services, Depends(services_of)]
Noted = Annotated[Call, Depends(call_of)]
CalledBy = Annotated[Caller, Depends(caller_of)]

# One connection: a request must arrive in time however slowly its bytes drip, and a Unix peer has a
# name.


class ServiceConfig(uvicorn.Config):
    """uvicorn with the limits that hold for a connection; uvicorn itself waits for a slow request
    without limit.
    """

    def __init__(self, app: Any, limits: Limits, **options: Any) -> None:
        super().__init__(
            app,
            http=Connection,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,  # the audit has every request, without its query string
            server_header=False,
            proxy_headers=False,
            limit_concurrency=limits.connections,
            backlog=BACKLOG,
            timeout_keep_alive=int(limits.idle_seconds),
            timeout_graceful_shutdown=int(limits.request_seconds),
            h11_max_incomplete_event_size=limits.header_bytes,
            **options,
        )
        self.arrive_seconds = limits.arrive_seconds


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
        if self.conn.their_state in (
            h11.DONE,
            h11.MUST_CLOSE,
            h11.CLOSED,
            h11.ERROR,
            h11.SWITCHED_PROTOCOL,
        ):
            self._note_arrival()

    def connection_lost(self, exc: Exception | None) -> None:
        self._note_arrival()
        super().connection_lost(exc)

    def _expect(self) -> None:
        if self.arriving is None:
            seconds = cast(ServiceConfig, self.config).arrive_seconds
            self.arriving = self.loop.call_later(seconds, self._give_up)

    def _note_arrival(self) -> None:
        if self.arriving is not None:
            self.arriving.cancel()
            self.arriving = None

    def _give_up(self) -> None:
        self.arriving = None
        self.transport.abort()


def _peer(transport: asyncio.BaseTransport) -> tuple[str, int] | None:
    """The user and the process at the other end of a Unix socket."""
    peer: Any = transport.get_extra_info("socket")
    if peer is None or peer.family != socket.AF_UNIX:
        return None

    pid, uid, _ = struct.unpack(
        "3i",
        peer.getsockopt(
            socket.SOL_SOCKET,
            socket.SO_PEERCRED,
            struct.calcsize("3i"),
        ),
    )
    return f"uid:{uid}", pid
