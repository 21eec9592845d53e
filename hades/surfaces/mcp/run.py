"""Running the server: over the streams of this process, or on a socket that is open already."""

from __future__ import annotations

import socket

from mcp.server.transport_security import TransportSecuritySettings

from hades.retrieval.walks.compile_kernel import want_machine_code
from hades.settings import Settings
from hades.surfaces.access.callers import Door
from hades.surfaces.access.garbage import collect_seldom
from hades.surfaces.access.limits import Limits
from hades.surfaces.mcp.server import build_server
from hades.surfaces.mcp.service import open_service

PATH = "/mcp"
SESSIONS = 256
IDLE_SECONDS = 1800.0


def serve_stdio(settings: Settings, door: Door) -> None:
    """Answer on stdin and stdout until the client closes them; everything else of this process goes to stderr."""
    want_machine_code()
    service = open_service(settings, door)
    try:
        made = build_server(service)
        collect_seldom()
        made.run("stdio")
    finally:
        service.close()


def serve_http(settings: Settings, door: Door, listening: socket.socket, limits: Limits = Limits()) -> None:
    """Answer streamable HTTP on the socket until the process is told to stop."""
    from hades.surfaces.rest.serve import server_of

    want_machine_code()
    service = open_service(settings, door, limits)
    try:
        app = build_server(service).streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=limits.body_bytes,
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=SESSIONS,
            transport_security=_security(door),
        )
        collect_seldom()
        server_of(app, limits).run(sockets=[listening])
    finally:
        service.close()


def _security(door: Door) -> TransportSecuritySettings:
    """A door without tokens answers to its own names only, so that no page of another site can talk through it."""
    if door.hosts is None:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    names = sorted(f"[{host}]" if ":" in host else host for host in door.hosts)
    return TransportSecuritySettings(
        allowed_hosts=[f"{name}:*" for name in names], allowed_origins=[f"http://{name}:*" for name in names]
    )
