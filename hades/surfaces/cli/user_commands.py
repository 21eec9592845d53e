"""Commands for daily use: watch. Names and flags; bodies are imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with

_KINDS = ("auto", "documents", "workspace")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("watch")(watch)


def watch(
    path: Annotated[Path, typer.Argument(help="Folder of documents or code.")],
    kind: Annotated[str, typer.Option(help="documents, workspace, or auto: workspace where there is code.")] = "auto",
    quiet_seconds: Annotated[
        float, typer.Option(min=0.1, max=600, help="Update when nothing has changed for this long.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Update once and stop.")] = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Keep a folder up to date: read it, build and publish now and after each change, until Ctrl-C."""
    if kind not in _KINDS:
        raise typer.BadParameter(f"{kind!r} is not a kind; use one of {', '.join(_KINDS)}")

    def body() -> Answer:
        from hades.surfaces.cli.watch_views import run_watch

        return run_watch(path, kind, quiet_seconds, once=once)

    answer_with(body, as_json=as_json, debug=debug)
