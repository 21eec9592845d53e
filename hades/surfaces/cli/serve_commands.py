"""Commands that let others in: serve, token. Names and flags; bodies are imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with

MODES = ("ro", "rw", "admin")
ModeOption = Annotated[str, typer.Option(help="ro: read; rw: also judge, remember, go back; admin: also erase.")]
token_app = typer.Typer(help="Tokens that open the service on TCP; only their hashes are kept.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("serve")(serve)
    app.add_typer(token_app, name="token", no_args_is_help=True)


def serve(
    uds: Annotated[Path | None, typer.Option(metavar="PATH", help="Listen on a Unix socket, 0660 or 0600.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Listen on TCP; 0 takes a free port.")] = None,
    host: Annotated[str, typer.Option(help="Address for --port; other machines reach it only if you change this.")] = (
        "127.0.0.1"
    ),
    mode: ModeOption = "ro",
    no_token: Annotated[
        bool, typer.Option("--no-token", help="On TCP of this machine only: let every local user in.")
    ] = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Serve REST and the explorer page until stopped; by default read-only on 127.0.0.1, for callers with a token."""
    _check_mode(mode)
    if uds is not None and (port is not None or no_token):
        raise typer.BadParameter("--uds takes neither --port nor --no-token: its file says who may come")

    def body() -> Answer:
        from hades.surfaces.cli.serve_views import run_serve

        return run_serve(uds, host, port, mode, no_token)

    answer_with(body, as_json=as_json, debug=debug)


@token_app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Whose it is; stands in the audit.")],
    mode: ModeOption = "ro",
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Make a token and show it, this once."""
    _check_mode(mode)

    def body() -> Answer:
        from hades.surfaces.cli.serve_views import add_token

        return add_token(name, mode)

    answer_with(body, as_json=as_json, debug=debug)


@token_app.command("list")
def listed(as_json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Show whose tokens there are and what they allow; not their text, which nobody has kept."""

    def body() -> Answer:
        from hades.surfaces.cli.serve_views import list_tokens

        return list_tokens()

    answer_with(body, as_json=as_json, debug=debug)


@token_app.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(help="Name or id of the token.")],
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Let a token open nothing any more; running services notice at the next request."""

    def body() -> Answer:
        from hades.surfaces.cli.serve_views import revoke_token

        return revoke_token(name)

    answer_with(body, as_json=as_json, debug=debug)


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise typer.BadParameter(f"{mode!r} is not a mode; use one of {', '.join(MODES)}")
