"""Commands that build the graph on this machine: run a flow, build, repair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hades.surfaces.capabilities.capability import WRITES_HOME, LocalCommand, Request, Shell
from hades.surfaces.capabilities.fields import Moment

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
FirstStageName = Literal["sources", "embeddings", "edges", "topics"]  # hades.stages.night, which is not light


def read_parameters(pairs: Sequence[str]) -> dict[str, str]:
    """KEY=VALUE pairs; the flow reads the values."""
    return dict(_pair(pair) for pair in pairs)


def _pair(pair: str) -> tuple[str, str]:
    import typer

    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{pair!r} is not KEY=VALUE")
    return name, value


class RunRequest(Request):
    """Run a flow here: without a server, or recorded on the Prefect server of PREFECT_API_URL."""

    flow: Annotated[Literal[FLOWS], Shell(metavar="FLOW")] = Field(  # type: ignore[valid-type]
        description=f"One of {', '.join(FLOWS)}."
    )
    parameters: Annotated[
        dict[str, Any],
        Shell(flags=("-p", "--param"), metavar="KEY=VALUE", read=read_parameters, is_list=True,
              help="A parameter of the flow, as JSON or plain text; may be repeated."),
    ] = Field(default_factory=dict, description="Parameters of the flow.")  # fmt: skip


class BuildRequest(Request):
    """Bring the graph up to date and publish it: the nightly build, here and now, without a server.

    Work that is done is not repeated: an unchanged stage is skipped. With --until one build is made for each day, each
    with its own snapshot.
    """

    from_stage: Annotated[FirstStageName, Shell(flags=("--from",))] = Field(
        "sources", description="First stage to run; earlier ones are left out."
    )
    as_of: Moment | None = Field(None, description="The moment the build stands at; by default the beginning of today.")
    until: Moment | None = Field(None, description="Backfill: one build a day from --as-of to this day.")
    mode: Literal["auto", "full", "incremental"] = Field(
        "auto", description="Topics: rebuild them, or place what changed."
    )
    keep: Annotated[int, Field(ge=1)] = Field(7, description="Number of newest snapshots to keep.")
    dry_run: bool = Field(False, description="Only say which stages would run, and how long they took last time.")

    @model_validator(mode="after")
    def until_follows_as_of(self) -> Self:
        """A range has two ends in order."""
        if self.until is not None and (self.as_of is None or self.until < self.as_of):
            raise ValueError("--until needs an earlier --as-of, for example --as-of 2026-01-01 --until 2026-01-03")
        return self


class RepairRequest(Request):
    """Recompute what a contract names as damaged: broken rows are removed and rebuilt, then published."""

    names: Annotated[tuple[str, ...], Shell(metavar="[CONTRACT]...")] = Field(
        (), description="Contracts to repair; by default every contract."
    )


BUILD_COMMANDS = (
    LocalCommand(("run",), RunRequest, "hades.surfaces.cli.build_views:run_flow_here", WRITES_HOME, ("flow",)),
    LocalCommand(("build",), BuildRequest, "hades.surfaces.cli.build_command:run_build", WRITES_HOME),
    LocalCommand(("repair",), RepairRequest, "hades.surfaces.cli.build_views:repair_contracts", WRITES_HOME,
                 ("names",)),
)  # fmt: skip
