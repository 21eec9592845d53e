"""Commands that keep a graph safe: backup, restore. Names and flags; bodies are imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("backup")(backup)
    app.command("restore")(restore)


def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Folder to write; it must not hold anything yet.")],
    rows: Annotated[
        bool, typer.Option("--rows", help="Keep rows as Parquet, which any store can take; ArangoDB always does.")
    ] = False,
    logs: Annotated[bool, typer.Option("--logs", help="Also the audit and alert logs.")] = False,
    dated: Annotated[bool, typer.Option("--dated", help="Write to a folder inside TARGET named by the time.")] = False,
    keep: Annotated[int | None, typer.Option(min=1, help="With --dated: keep only this number of the newest.")] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Write the store, the snapshots, the registry and the reports to a folder, each file with its hash.

    A service may go on asking and writing meanwhile. Caches are left out: they are made again from content.
    """
    if keep is not None and not dated:
        raise typer.BadParameter("--keep counts dated backups; add --dated")

    def body() -> Answer:
        from hades.surfaces.cli.backup_views import run_backup

        return run_backup(target, as_rows=rows, logs=logs, is_dated=dated, keep=keep)

    answer_with(body, as_json=as_json, debug=debug)


def restore(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Folder that `hades backup` wrote.")],
    force: Annotated[
        bool, typer.Option("--force", help="Also where a graph is: its parts are set aside, not removed.")
    ] = False,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Make HADES_HOME and the store what they were; every file is checked before anything is touched.

    Stop the services of this home first.
    """

    def body() -> Answer:
        from hades.surfaces.cli.backup_views import run_restore

        return run_restore(source, force=force)

    answer_with(body, as_json=as_json, debug=debug)
