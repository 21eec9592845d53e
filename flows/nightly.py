"""The build of every night: read, embed, derive, group, weigh, bridge, publish; a contract after each."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from prefect import flow
from pydantic import Field

from flows.embed import embed_shards
from schemas.sources import SourceSpec
from tasks import policies
from tasks.bridges import bridges
from tasks.contracts import check
from tasks.hierarchy import topics
from tasks.ingest import derive, read_sources
from tasks.night import begin
from tasks.ranker import ranker
from tasks.reports import write_report
from tasks.snapshot import release
from tasks.unit import run_flow
from tasks.weights import weights


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
        float | None, Field(gt=0, description="publish what is complete when so many minutes have passed")
    ] = None,
) -> dict[str, Any]:
    """Bring the graph up to date and publish it; started again after a failure, it goes on from its last good stage.

    Args:
        sources: corpora to read; empty: all that were ingested before
        as_of: the moment the build stands at; empty: the beginning of today, UTC
        mode: topics: rebuild them, or place what changed
        keep: how many of the newest snapshots and weights to keep
        time_box_minutes: publish what is complete when so many minutes have passed
    """
    night = begin(as_of, time_box_minutes)
    report: dict[str, Any] = {"as_of": night.as_of.isoformat()}
    report["sources"] = read_sources(sources)
    report["embeddings"] = run_flow(embed_shards)
    report["edges"] = derive()
    report["contracts"] = [check(["nodes", "chunks", "embeddings", "edges"])]
    report["topics"] = topics(night, mode)
    report["contracts"].append(check(["hierarchy"]))
    report["weights"] = weights(night)
    report["contracts"].append(check(["weights"]))
    report["bridges"] = bridges(night)
    report["contracts"].append(check(["bridges"]))
    report["ranker"] = ranker(night)
    report["released"] = release(night, keep)
    return write_report(night, report)
