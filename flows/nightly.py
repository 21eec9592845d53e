"""The build of every night: the stages of `hades/build/night.py` in order, each followed by its contracts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from flows.embed import embed_shards
from hades.build.night import run_night
from hades.build.stage import Night, begin
from schemas.sources import SourceSpec
from tasks.artifacts import pay_or_ask
from tasks.build import STAGE_TASKS, build_if_past, check_or_ask, tell_lineage, write_report
from tasks.unit import build_flow, run_flow


def embed_in_shards(night: Night) -> dict[str, Any]:
    """Shards of chunks side by side, on the task runner of the settings."""
    report = run_flow(embed_shards)
    tell_lineage(night, "embeddings")
    return report


RUNS: dict[str, Callable[[Night], dict[str, Any]]] = {
    **STAGE_TASKS,
    "embeddings": embed_in_shards,
    "topics": partial(pay_or_ask, STAGE_TASKS["topics"]),
}


@build_flow("nightly")
def nightly(
    sources: list[SourceSpec] | None = None,
    as_of: datetime | None = None,
    mode: Literal["auto", "full", "incremental"] = "auto",
    keep: Annotated[int, Field(ge=1)] = 7,
    time_box_minutes: Annotated[float | None, Field(gt=0)] = None,
    from_stage: Literal["sources", "embeddings", "edges", "topics"] = "sources",
) -> dict[str, Any]:
    """Bring the graph up to date and publish it; after a failure the next run continues from the last completed stage.

    Args:
        sources: corpora to read; empty: all that were ingested before
        as_of: the moment the build stands at; before that of the newest graph, its night is rebuilt and kept aside;
            empty: the beginning of today, UTC
        mode: topics: auto builds them when their inputs changed, full always
        keep: how many of the newest snapshots and weights to keep
        time_box_minutes: publish what is complete after this many minutes
        from_stage: first stage to run; earlier ones are left out
    """
    night = begin(as_of, time_box_minutes, sources=sources, mode=mode, keep=keep, from_stage=from_stage)
    return build_if_past(night) or write_report(
        night, run_night(night, lambda stage, night: RUNS[stage.name](night), lambda names: check_or_ask(names, night))
    )
