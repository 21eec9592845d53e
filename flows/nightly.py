"""The build of every night: the stages of `hades/night/stages.py` in order, each followed by its
contracts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from flows.embed import embed_shards
from hades.night.stage import FirstStage, Night, begin
from hades.night.stages import STAGES, run_night
from schemas.sources import SourceSpec
from tasks.artifacts import pay_or_ask
from tasks.build import (
    STAGE_TASKS,
    build_if_past,
    check_or_ask,
    log_stopped_night,
    summary_of,
    tell_lineage,
    write_report,
)
from tasks.unit import build_flow, run_flow, say


def embed_in_shards(night: Night) -> dict[str, Any]:
    """Shards of chunks side by side, on the task runner of the settings."""
    stage = STAGES["embeddings"]
    say("%s: started, in shards", stage.title)
    began = time.perf_counter()
    report = run_flow(embed_shards)
    report["took"] = round(time.perf_counter() - began, 3)  # of all shards, not of the last task
    say(
        "%s: %s (%.1f s)",
        stage.title,
        stage.describe(report),
        report["took"],
    )
    tell_lineage(night, stage.name)
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
    from_stage: FirstStage = "sources",
) -> dict[str, Any]:
    """Bring the graph up to date and publish it; after a failure the next run continues from the
    last completed stage.

    Args:
        sources: corpora to read; empty: all that were ingested before
        as_of: the moment the build stands at; before that of the newest graph, its night is
            rebuilt and kept aside; empty: the beginning of today, UTC
        mode: topics: auto builds them when their inputs changed, full always
        keep: how many of the newest snapshots and weights to keep
        time_box_minutes: publish what is complete after this many minutes
        from_stage: first stage to run; earlier ones are left out
    """
    night = begin(
        as_of,
        time_box_minutes,
        sources=sources,
        mode=mode,
        keep=keep,
        from_stage=from_stage,
    )
    say(
        "nightly: %s, of %s, from %s on",
        night.name,
        f"{night.as_of:%Y-%m-%d}",
        night.from_stage,
    )

    with summary_of(night) as report:
        past = build_if_past(night)
        if past is not None:
            report |= past
            return past

        run_night(
            night,
            lambda stage, night: RUNS[stage.name](night),
            lambda names: check_or_ask(names, night),
            partial(log_stopped_night, night),
            report,
        )
        report |= write_report(night, report)

    return report
