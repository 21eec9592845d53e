"""Commands that build, go back and repair: names and flags; bodies are imported when they run."""

from __future__ import annotations

from typing import Annotated

import typer

from hades.surfaces.cli.output import Answer, DebugFlag, JsonFlag, answer_with

FLOWS = (
    "nightly",
    "ingest",
    "embed",
    "build_hierarchy",
    "weigh_edges",
    "build_bridges",
    "train_ranker",
    "publish",
    "check_contracts",
    "consolidate_memory",
    "evaluate",
    "rollback",
    "reembed",
    "provision",
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("run")(run)
    app.command("snapshots")(snapshots)
    app.command("rollback")(rollback)
    app.command("repair")(repair)


def run(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help=f"One of {', '.join(FLOWS)}.")],
    parameters: Annotated[
        list[str] | None, typer.Option("-p", "--param", metavar="KEY=VALUE", help="A parameter; JSON or plain text.")
    ] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Run a flow here: without a server, or recorded on the Prefect server of PREFECT_API_URL."""
    if flow not in FLOWS:
        raise typer.BadParameter(f"{flow!r} is not a flow; use one of {', '.join(FLOWS)}")
    given = [_split(pair) for pair in parameters or []]

    def body() -> Answer:
        from hades.surfaces.cli.build_views import run_flow_here

        return run_flow_here(flow, dict(given))

    answer_with(body, as_json=as_json, debug=debug)


def snapshots(as_json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """List the published graphs, which one serves, and the weights in the registry."""

    def body() -> Answer:
        from hades.surfaces.cli.build_views import list_snapshots

        return list_snapshots()

    answer_with(body, as_json=as_json, debug=debug)


def rollback(
    what: Annotated[str, typer.Argument(metavar="[weights|ranker|graph]", help="What goes back.")] = "graph",
    to: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="Snapshot id, or version (of a ranker also `none`); default: before."),
    ] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Let an older graph serve again at once, and give the store the weights that belong to it."""
    if what not in ("graph", "weights", "ranker"):
        raise typer.BadParameter(f"{what!r} cannot go back; use graph, weights or ranker")

    def body() -> Answer:
        from hades.surfaces.cli.build_views import go_back

        return go_back(what, to)

    answer_with(body, as_json=as_json, debug=debug)


def repair(
    contracts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CONTRACT]...", help="Contracts to recompute; default: those that are broken."),
    ] = None,
    as_json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Recompute what a contract names as damaged, check every contract, and publish."""

    def body() -> Answer:
        from hades.surfaces.cli.build_views import repair_contracts

        return repair_contracts(contracts or [])

    answer_with(body, as_json=as_json, debug=debug)


def _split(pair: str) -> tuple[str, str]:
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{pair!r} is no parameter; write it as key=value")
    return name, value
