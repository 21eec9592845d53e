"""The app and serving it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI
from starlette.staticfiles import StaticFiles
from uvicorn.supervisors import Multiprocess

from hades.ports.store import Mode
from hades.settings.tree import Settings
from hades.surfaces.access.limits import Door, Limits, covers
from hades.surfaces.rest import guard, openai, routes
from hades.surfaces.rest.guard import Guard, Problem
from hades.surfaces.rest.routes import capability_routers
from hades.surfaces.rest.services import ServiceConfig, Services, needing
from hades.telemetry.logs import configure_logs

# The app of one mode: a route that the mode does not cover is not there.
WEB = Path(__file__).parents[1] / "web"
API = "/v1"
_START_SECONDS = 120  # a worker loads everything before it first answers its supervisor
_ABOUT = """A knowledge graph that answers with short, cited paths inside a hard budget.

Time travel is a parameter everywhere: `as_of` (what was true then) and `known_at`
(what was known then).
Every answer says which snapshot it comes from; a request never mixes two.
Errors are `application/problem+json`.
"""
_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "model": Problem,
        "description": "The request cannot be answered as it is; `next` says what to do.",
    },
    "5XX": {
        "model": Problem,
        "description": "The service is busy or broken.",
    },
}


def routers_of(mode: Mode) -> Sequence[tuple[Mode, APIRouter]]:
    """The routers of a service of this mode, each with what its routes need of a caller."""
    own_routers = (
        (Mode.READ_ONLY, routes.reading),
        (Mode.READ_ONLY, openai.reading),
        (Mode.READ_WRITE, routes.writing),
    )
    return [
        (needed, router)
        for needed, router in (*own_routers, *capability_routers())
        if covers(mode, needed)
    ]


def build_app(services: Services) -> FastAPI:
    """The app behind one door, with its guard in front."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        services.close()

    app = add_routes(services.door.mode, lifespan)
    app.state.services = services
    guard.register(app)

    if WEB.is_dir():
        app.mount(
            "/",
            StaticFiles(directory=WEB, html=True),
            name="web",
        )

    app.add_middleware(Guard, services=services)  # the last one added is the first one asked
    return app


def add_routes(
    mode: Mode,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """An app with the routes of this mode; nothing is opened for it."""
    app = FastAPI(
        title=f"HADES ({mode.value})",
        version=version("hades-graphrag"),
        description=_ABOUT,
        openapi_url=f"{API}/openapi.json",
        # they would load scripts from elsewhere; docs/reference/rest.md is the same, offline
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    for needed, router in routers_of(mode):
        app.include_router(
            router,
            prefix=API,
            dependencies=[Depends(needing(needed))],
            responses=_ERRORS,
        )

    app.include_router(routes.read_health)
    return app


# Running the app of a door on a socket that is open already. Several processes behind one socket
# are uvicorn's: the kernel hands each connection to one, and all map the same snapshot.


def serve_with_workers(
    settings: Settings,
    door: Door,
    listening: socket.socket,
    limits: Limits = Limits(),
    workers: int = 1,
) -> None:
    """Answer on the socket with this number of processes until this one gets a signal to stop;
    requests that have begun are finished.
    """
    if workers == 1:
        running = server(settings, door, limits)

        def stop(*_: object) -> None:
            running.should_exit = True

        # Before uvicorn listens to these signals, and when it has stopped and raises them again.
        for stop_signal in (signal.SIGTERM, signal.SIGINT):
            signal.signal(stop_signal, stop)

        running.run(sockets=[listening])
        return

    config = ServiceConfig(
        partial(
            make_app,
            settings,
            door,
            share_of(limits, workers),
        ),
        limits,
        factory=True,
        workers=workers,
        timeout_worker_healthcheck=_START_SECONDS,
    )
    Multiprocess(config, sockets=[listening]).run()


def server(
    settings: Settings,
    door: Door,
    limits: Limits = Limits(),
) -> uvicorn.Server:
    """The server, for whoever wants to start and stop it by hand."""
    return uvicorn.Server(ServiceConfig(make_app(settings, door, limits), limits))


def run_app(
    app: Any,
    listening: socket.socket,
    limits: Limits,
) -> None:
    """Serve any app on the socket, with the limits that hold for a connection."""
    uvicorn.Server(ServiceConfig(app, limits)).run(sockets=[listening])


def make_app(
    settings: Settings,
    door: Door,
    limits: Limits,
) -> FastAPI:
    """The app over services of its own; in a worker this is the first thing that runs."""
    configure_logs(
        settings.log_format,
        settings.log_level,
        settings.secrets(),
    )
    return build_app(Services(settings, door, limits))


def share_of(limits: Limits, workers: int) -> Limits:
    """The limits of one of several workers: rates, waiting calls and the memory for answers are
    divided.
    """
    return replace(
        limits,
        per_second=limits.per_second / workers,
        burst=max(1.0, limits.burst / workers),
        threads=limits.threads or max(1, (os.cpu_count() or 1) // workers),
        waiting=max(1, limits.waiting // workers),
        cache_bytes=limits.cache_bytes // workers,
    )
