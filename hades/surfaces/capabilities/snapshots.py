"""Published snapshots: list them, roll back to one, list the builds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hades.surfaces.capabilities.capability import Capability, Cli, OmittedSurface, Request, Rest, Shell
from hades.surfaces.capabilities.context import CallContext


class SnapshotsRequest(Request):
    """List the published graphs and which one serves, newest first."""


class RollbackRequest(Request):
    """Let an older graph serve again at once, and restore the weights that belong to it."""

    what: Annotated[Literal["graph", "weights", "ranker"], Shell(metavar="[weights|ranker|graph]")] = Field(
        "graph", description="What to roll back."
    )
    to: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]+$"), Shell(metavar="VERSION")] | None = Field(
        None, description="Snapshot id, or version (of a ranker also `none`); by default the previous one."
    )


class RunsRequest(Request):
    """List the newest builds with their stages and contracts, what each stage last completed, alerts and a forecast."""

    limit: int = Field(20, ge=1, le=100, description="Maximum number of builds.")


def list_snapshots(request: SnapshotsRequest, context: CallContext) -> dict[str, Any]:
    """The snapshots of this home."""
    from dataclasses import asdict

    from hades.snapshot.retention import snapshots

    return {"snapshots": [asdict(held) for held in snapshots(context.settings.home)]}


def roll_back(request: RollbackRequest, context: CallContext) -> dict[str, Any]:
    """Move the pointer, then restore the store."""
    from hades.stages.release.rollback import roll_back as go_back
    from hades.wiring import open_build_context

    with open_build_context(context.settings) as build:
        return go_back(build, request.what, request.to).as_dict()


def list_runs(request: RunsRequest, context: CallContext) -> dict[str, Any]:
    """The builds, the records of their stages, the newest alerts, and what the next build would take and cost."""
    from dataclasses import asdict

    import orjson

    from hades.stages.forecast import forecast_build, last_runs
    from hades.stages.release.alerts import last_alerts
    from hades.wiring import paid_models
    from schemas.parts import ALL

    home = context.settings.home
    rows = [row for batch in context.readable.scan("build_stages") for row in batch.to_pylist()]
    is_whole = context.readable.describe().get("holds", ALL) == ALL  # a smaller database is not built
    stages = [{**row, "report": orjson.loads(row["report"])} for row in rows]
    return {
        "runs": [asdict(run) for run in last_runs(home, request.limit)],
        "stages": stages,
        "alerts": last_alerts(home),
        "next": forecast_build(context.readable, home, paid_models(context.settings)).as_dict() if is_whole else {},
    }


_NOT_FOR_AGENTS = OmittedSurface("operations of the service are for people and schedulers")
SNAPSHOT_CAPABILITIES = (
    Capability(
        "snapshots", "ro", SnapshotsRequest, list_snapshots,
        cli=Cli(("snapshots",), view="hades.surfaces.cli.build_views:show_snapshots"),
        rest=Rest("GET", "/snapshots", "snapshots", "Published graphs"), mcp=_NOT_FOR_AGENTS,
        task=OmittedSurface("a flow publishes; `hades snapshots` lists"),
    ),
    Capability(
        "rollback", "rw", RollbackRequest, roll_back,
        cli=Cli(("rollback",), ("what",), "hades.surfaces.cli.build_views:show_rollback"),
        rest=Rest("POST", "/snapshots/rollback", "snapshots", "Let an older graph serve",
                  examples=({"what": "graph"},)),
        mcp=_NOT_FOR_AGENTS,
        task=OmittedSurface("the task `roll back` of tasks/snapshot.py is a step of the flow rollback"),
    ),
    Capability(
        "runs", "ro", RunsRequest, list_runs, cli=OmittedSurface("`hades status` prints the last runs"),
        rest=Rest("GET", "/runs", "runs", "Nightly builds"), mcp=_NOT_FOR_AGENTS,
        task=OmittedSurface("Prefect lists its own runs"),
    ),
)  # fmt: skip
