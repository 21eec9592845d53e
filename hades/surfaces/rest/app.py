"""The app of one mode: a route that the mode does not cover is not there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from starlette.staticfiles import StaticFiles

from hades import surfaces
from hades.ports.store import Mode
from hades.surfaces.access.callers import Door, covers
from hades.surfaces.rest import problems
from hades.surfaces.rest.guard import Guard
from hades.surfaces.rest.problems import Problem
from hades.surfaces.rest.routers import answer, health, openai, query
from hades.surfaces.rest.routes import capability_routers
from hades.surfaces.rest.services import Services, needing

WEB = Path(surfaces.__file__).parent / "web"
API = "/v1"
_ABOUT = """A knowledge graph that answers with short, cited paths inside a hard budget.

Time travel is a parameter everywhere: `as_of` (what was true then) and `known_at` (what was known then). Every answer
says which snapshot it comes from; a request never mixes two. Errors are `application/problem+json`.
"""
_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Problem, "description": "The request cannot be answered as it is; `next` says what to do."},
    "5XX": {"model": Problem, "description": "The service is busy or broken."},
}


def routers_of(mode: Mode) -> Sequence[tuple[Mode, APIRouter]]:
    """The routers of a service of this mode, each with what its routes need of a caller."""
    every = (
        (Mode.READ_ONLY, query.reading),
        (Mode.READ_ONLY, answer.reading),
        (Mode.READ_ONLY, openai.reading),
        *capability_routers(),
    )
    return [(needed, router) for needed, router in every if covers(mode, needed)]


def build_app(services: Services, door: Door) -> FastAPI:
    """The app behind one door, with its guard in front."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        services.close()

    app = _add_routes(door.mode, lifespan)
    app.state.services, app.state.door = services, door
    problems.register(app)
    if WEB.is_dir():
        app.mount("/", StaticFiles(directory=WEB, html=True), name="web")
    app.add_middleware(Guard, services=services, door=door)  # the last one added is the first one asked
    return app


def describe(mode: Mode) -> dict[str, Any]:
    """The OpenAPI description of a service of this mode; nothing is opened for it."""
    return _add_routes(mode).openapi()


def _add_routes(mode: Mode, lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None) -> FastAPI:
    app = FastAPI(
        title=f"HADES ({mode.value})",
        version=version("hades-graphrag"),
        description=_ABOUT,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # they would load scripts from elsewhere; docs/reference/rest.md is the same, offline
        redoc_url=None,
        lifespan=lifespan,
    )
    for needed, router in routers_of(mode):
        app.include_router(router, prefix=API, dependencies=[Depends(needing(needed))], responses=_ERRORS)
    app.include_router(health.reading)
    return app
