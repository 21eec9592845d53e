"""`hades mcp`: the graph and the memory as tools of an agent."""

from __future__ import annotations

from typing import Annotated

import typer

from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("mcp")(mcp)


def mcp(
    mode: Annotated[str, typer.Option(help="ro: the tools that write do not exist; rw: they do.")] = "ro",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Streamable HTTP on this port; default: stdin and stdout.")
    ] = None,
    host: Annotated[str, typer.Option(help="With --port: the address to listen on.")] = "127.0.0.1",
    no_token: Annotated[
        bool, typer.Option("--no-token", help="With --port, on this machine only: let callers in without a token.")
    ] = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Serve the tools of the Model Context Protocol, over stdio or streamable HTTP at /mcp; read-only by default."""
    if mode not in ("ro", "rw"):
        raise typer.BadParameter(f"{mode!r} is no mode; use ro or rw")
    if port is None:
        answer_with(lambda: _over_stdio(mode), as_json=False, debug=debug)  # stdout belongs to the protocol
    else:
        answer_with(lambda: _over_http(mode, host, port, no_token), as_json=as_json, debug=debug)


def _over_stdio(mode: str) -> Answer:
    from hades.ports.store import Mode
    from hades.settings import load_settings
    from hades.settings.quiet import keep_libraries_quiet
    from hades.surfaces.access.callers import Door
    from hades.surfaces.mcp.run import serve_stdio

    settings = load_settings()
    keep_libraries_quiet()
    serve_stdio(settings, Door(Mode(mode), tenant=settings.tenant))
    return Answer({}, ())


def _over_http(mode: str, host: str, port: int, no_token: bool) -> Answer:
    from rich.text import Text

    from hades.ports.store import Mode
    from hades.settings import load_settings
    from hades.settings.quiet import keep_libraries_quiet
    from hades.surfaces.access.sockets import tcp_door, tcp_socket
    from hades.surfaces.access.tokens import Tokens
    from hades.surfaces.cli.serve_views import address_of, limits_of
    from hades.surfaces.mcp.run import PATH, serve_http

    settings = load_settings()
    keep_libraries_quiet()
    door = tcp_door(Mode(mode), host, needs_token=not no_token, tenant=settings.tenant)
    listening = tcp_socket(host, port)
    where = f"{address_of(host, listening)}{PATH}"
    typer.echo(f"hades offers its tools ({mode}) on {where}; stop it with Ctrl-C", err=True)
    if door.needs_token and not Tokens(settings.home).all():
        typer.echo("no token can open it yet; make one with `hades token add NAME`", err=True)
    try:
        serve_http(settings, door, listening, limits_of(settings))
    finally:
        listening.close()
    return Answer({"served": where, "mode": mode}, (Text(f"stopped serving {where}"),))
