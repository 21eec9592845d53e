"""Running the app of a door on a socket that is open already."""

from __future__ import annotations

import signal
import socket
import sys

import uvicorn
from starlette.types import ASGIApp

from hades.retrieval.walks.compile_kernel import want_machine_code
from hades.settings import Settings
from hades.surfaces.access.callers import Door
from hades.surfaces.access.garbage import collect_seldom
from hades.surfaces.access.limits import Limits
from hades.surfaces.access.sockets import BACKLOG
from hades.surfaces.rest.app import build_app
from hades.surfaces.rest.connections import protocol_of
from hades.surfaces.rest.services import open_services

_SWITCH_SECONDS = 0.001  # a thread that works out an answer must not keep the loop from sending others for long


def serve(settings: Settings, door: Door, listening: socket.socket, limits: Limits = Limits()) -> None:
    """Answer on the socket until the process is told to stop; what was begun is finished."""
    want_machine_code()
    sys.setswitchinterval(_SWITCH_SECONDS)
    made = server(settings, door, limits)
    collect_seldom()

    def stop(*_: object) -> None:
        made.should_exit = True

    # Before uvicorn listens to these signals, and when it has stopped and raises them again.
    for told_to_stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told_to_stop, stop)
    made.run(sockets=[listening])


def server(settings: Settings, door: Door, limits: Limits = Limits()) -> uvicorn.Server:
    """The server, for whoever wants to start and stop it by hand."""
    return server_of(build_app(open_services(settings, door.mode, limits), door), limits)


def server_of(app: ASGIApp, limits: Limits) -> uvicorn.Server:
    """A server of any app, with the limits that hold for a connection."""
    config = uvicorn.Config(
        app,
        http=protocol_of(limits.arrive_seconds),
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
    )
    return uvicorn.Server(config)
