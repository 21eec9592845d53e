"""The build of every night: the stages of `hades/stages/night.py` in order, each followed by its contracts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from prefect import flow
from pydantic import Field

from flows.embed import embed_shards
from hades.stages.night import NIGHT, Night, begin
from schemas.sources import SourceSpec
from tasks import policies
from tasks.contracts import check
from tasks.reports import write_report
from tasks.stages import STAGE_TASKS
from tasks.unit import run_flow


def embed_in_shards(night: Night) -> dict[str, Any]:
    """Shards of chunks side by side, on the task runner of the settings."""
    return run_flow(embed_shards)


RUNS: dict[str, Callable[[Night], dict[str, Any]]] = {**STAGE_TASKS, "embeddings": embed_in_shards}


@flow(name="nightly", **policies.BUILD)
def nightly(
    sources: Annotated[
        list[SourceSpec] | None, Field(description="corpora to read; empty: all that were ingested before")
    ] = None,
    as_of: Annotated[
        datetime | None, Field(description="the moment the build stands at; empty: the beginning of today, UTC")
    ] = None,
    mode: Annotated[
        Literal["auto", "full", "incremental"], Field(description="topics: rebuild them, or place what changed")
    ] = "auto",
    keep: Annotated[int, Field(ge=1, description="how many of the newest snapshots and weights to keep")] = 7,
    time_box_minutes: Annotated[
        float | None, Field(gt=0, description="publish what is complete after this many minutes")
    ] = None,
) -> dict[str, Any]:
    """Bring the graph up to date and publish it; after a failure the next run continues from the last completed stage.

    Args:
        sources: corpora to read; empty: all that were ingested before
        as_of: the moment the build stands at; empty: the beginning of today, UTC
        mode: topics: rebuild them, or place what changed
        keep: how many of the newest snapshots and weights to keep
        time_box_minutes: publish what is complete after this many minutes
    """
    night = begin(as_of, time_box_minutes, sources=sources, mode=mode, keep=keep)
    report: dict[str, Any] = {"as_of": night.as_of.isoformat(), "contracts": []}
    for stage in NIGHT:
        report[stage.name] = RUNS[stage.name](night)
        report["contracts"] += check.over([stage.contracts] if stage.contracts else [])
    return write_report(night, report)
