"""`hades serve`, `hades mcp` and `hades token`."""

from __future__ import annotations

import socket
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from hades.ports.clock import utc_now
from hades.ports.store import Mode
from hades.settings import Settings, load_settings
from hades.settings.activation import socket_activation
from hades.settings.quiet import keep_libraries_quiet
from hades.surfaces.access.callers import Door
from hades.surfaces.access.limits import Limits
from hades.surfaces.access.sockets import hand_over, tcp_door, tcp_socket, unix_socket
from hades.surfaces.access.tokens import Token, Tokens
from hades.surfaces.capabilities.capability import AccessMode
from hades.surfaces.cli.output import Answer


def run_serve(
    uds: Path | None, host: str, port: int | None, mode: AccessMode, no_token: bool, workers: int = 1
) -> Answer:
    """Listen on a Unix socket or on TCP, and answer until the process is stopped."""
    import_module("uvicorn")  # a missing extra is named before anything listens
    from hades.surfaces.rest.worker_processes import serve_with_workers

    settings, wanted = load_settings(), Mode(mode)
    keep_libraries_quiet()
    given = socket_activation()
    if uds is not None:
        door = Door(wanted, tenant=settings.tenant)
        listening = hand_over(uds.absolute(), wanted, given) or unix_socket(uds.absolute(), wanted)
        address = str(uds)
    else:
        door = tcp_door(wanted, host, needs_token=not no_token, tenant=settings.tenant)
        listening = tcp_socket(host, settings.serve_port if port is None else port)
        address = address_of(host, listening)
    _announce(settings, door, f"hades serves {mode} on {address}; stop it with Ctrl-C")
    try:
        serve_with_workers(settings, door, listening, limits_of(settings), workers)
    finally:
        listening.close()
        if uds is not None and not given:
            uds.unlink(missing_ok=True)
    return _report_stop(address, mode)


def run_mcp(mode: Literal["ro", "rw", "admin"], port: int | None, host: str, no_token: bool) -> Answer:
    """Offer the tools over stdio, or over HTTP when a port is given."""
    from hades.surfaces.mcp.run import PATH, serve_http, serve_stdio

    settings = load_settings()
    keep_libraries_quiet()
    if port is None:
        serve_stdio(settings, Door(Mode(mode), tenant=settings.tenant))
        return Answer(None, ())  # stdout belongs to the protocol
    door = tcp_door(Mode(mode), host, needs_token=not no_token, tenant=settings.tenant)
    listening = tcp_socket(host, port)
    address = f"{address_of(host, listening)}{PATH}"
    _announce(settings, door, f"hades offers its tools ({mode}) on {address}; stop it with Ctrl-C")
    try:
        serve_http(settings, door, listening, limits_of(settings))
    finally:
        listening.close()
    return _report_stop(address, mode)


def _announce(settings: Settings, door: Door, text: str) -> None:
    typer.echo(text, err=True)
    if door.needs_token and not Tokens(settings.home).all():
        typer.echo("no token exists yet; create one with `hades token add NAME`", err=True)


def _report_stop(address: str, mode: str) -> Answer:
    return Answer({"served": address, "mode": mode}, (Text(f"stopped serving {address}"),))


def address_of(host: str, listening: socket.socket) -> str:
    """The address for a browser."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listening.getsockname()[1]}"


def limits_of(settings: Settings) -> Limits:
    """The limits of a request, a client and the process, from the settings."""
    return Limits(
        body_bytes=settings.serve_body_kib * 1024,
        request_seconds=settings.serve_seconds,
        per_second=settings.serve_rate,
        burst=settings.serve_burst,
        threads=settings.serve_threads,
        cache_bytes=settings.serve_kept_mib * 1024 * 1024,
    )


def add_token(name: str, mode: AccessMode) -> Answer:
    """Create a token of this home."""
    settings = load_settings()
    text, token = Tokens(settings.home).add(name, Mode(mode), utc_now(), settings.tenant)
    note = Text("Save it now: only its hash is stored, so it cannot be shown again.", style="dim")
    return Answer({**_show(token), "token": text}, (Text(text), note))


def list_tokens() -> Answer:
    """Every token of this home."""
    tokens = Tokens(load_settings().home).all()
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "mode", "tenant", "id", "created"):
        table.add_column(heading)
    for token in tokens:
        table.add_row(token.name, token.mode, token.tenant or "", token.id, token.created_at)
    empty = Text("there is no token; create one with `hades token add NAME`")
    return Answer({"tokens": [_show(token) for token in tokens]}, (table if tokens else empty,))


def revoke_token(name: str) -> Answer:
    """Revoke a token."""
    token = Tokens(load_settings().home).revoke(name)
    return Answer({"revoked": _show(token)}, (Text(f"{token.name} ({token.id}) is revoked"),))


def _show(token: Token) -> dict[str, Any]:
    """A token without its hash."""
    return {name: value for name, value in asdict(token).items() if name != "sha256"}
