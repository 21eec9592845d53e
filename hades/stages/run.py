"""The whole night in one call, for a notebook or a script: the same stages, contracts and release as the flow."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from hades.ingest.ingest_api import Ingest
from hades.ingest.phases import Phase
from hades.stages.build_context import Mode, Site
from hades.stages.build_report import build_name, write_reports
from hades.stages.contracts.check_contracts import check_boundaries
from hades.stages.release.publish_snapshot import release
from hades.stages.stage_calls import bridge, build_topics, train, weigh
from hades.telemetry.traces import span

AFTER_INGEST = ("nodes", "chunks", "embeddings", "edges")


def build(
    site: Site,
    ingest: Ingest,
    as_of: datetime,
    *,
    now: datetime,
    mode: Mode = "auto",
    keep: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Read what is known again, embed, derive, group, weigh, bridge, publish; what each stage said and took.

    `now` names the report; nothing that is built depends on it.
    """
    report: dict[str, Any] = {"as_of": as_of.isoformat(), "contracts": []}

    def stage(name: str, work: Callable[[], dict[str, Any]]) -> None:
        with span(f"hades.build.{name}"):
            report[name] = _timed(work, clock)

    def gate(*boundaries: str) -> None:
        with span("hades.build.contracts", boundaries=boundaries):
            report["contracts"].append(_timed(lambda: check_boundaries(site, boundaries).require().as_dict(), clock))

    stage("sources", lambda: {"sources": ingest.again(None, (Phase.NODES, Phase.CHUNKS))})
    stage("embeddings", lambda: ingest.nothing([Phase.EMBEDDINGS]).as_dict())
    stage("edges", lambda: ingest.nothing([Phase.EDGES]).as_dict())
    gate(*AFTER_INGEST)
    stage("topics", lambda: build_topics(site, as_of, mode))
    gate("hierarchy")
    stage("weights", lambda: weigh(site, as_of))
    gate("weights")
    stage("bridges", lambda: bridge(site, as_of))
    gate("bridges")
    stage("ranker", lambda: train(site, as_of))
    stage("released", lambda: release(site, as_of, keep).as_dict())
    report["report"] = str(write_reports(site, as_of, build_name(now), report))
    return report


def _timed(work: Callable[[], dict[str, Any]], clock: Callable[[], float]) -> dict[str, Any]:
    began = clock()
    report = work()
    return {**report, "took": round(clock() - began, 3)}
