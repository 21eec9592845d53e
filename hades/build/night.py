"""The night: one ordered list of stages, read by the flow, the library, the forecast and the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from hades.build.bridges import stage as bridges
from hades.build.context import BuildContext
from hades.build.contracts.check import CONTRACT_NAMES, check_contracts
from hades.build.exam import stage as exam
from hades.build.ingest_stages import DERIVED_EDGES, EMBEDDINGS, SOURCES
from hades.build.ranker import stage as ranker
from hades.build.release import publish
from hades.build.stage import Night, Stage
from hades.build.topics import stage as topics
from hades.build.weights import stage as weights
from hades.ingest.ingest import Ingest
from hades.ports.services import utc_now
from hades.telemetry.logs import StageRun, span

NIGHT: tuple[Stage, ...] = (
    SOURCES,
    EMBEDDINGS,
    DERIVED_EDGES,
    topics.STAGE,
    weights.STAGE,
    bridges.STAGE,
    exam.STAGE,
    ranker.NIGHT_STAGE,
    publish.STAGE,
)
STAGE_NAMES: tuple[str, ...] = tuple(stage.name for stage in NIGHT)
STORE_CONTRACTS: tuple[str, ...] = CONTRACT_NAMES[:-1]  # all but that of the snapshot


def stage_named(name: str) -> Stage:
    """The stage of this name; raises ValueError when there is none."""
    for stage in NIGHT:
        if stage.name == name:
            return stage
    raise ValueError(f"there is no stage {name!r}; there are {', '.join(STAGE_NAMES)}")


def run_night(
    night: Night, run: Callable[[Stage], dict[str, Any]], check: Callable[[Sequence[str]], dict[str, Any]]
) -> dict[str, Any]:
    """Run the stages in order, each followed by its contracts; what each reported. `check` raises for a broken rule.

    `began` says when each stage began, in seconds since 1970.
    """
    report: dict[str, Any] = {"as_of": night.as_of.isoformat(), "began": {}, "contracts": []}
    for stage in NIGHT[STAGE_NAMES.index(night.from_stage) :]:
        report["began"][stage.name] = time.time()
        report[stage.name] = run(stage)
        if stage.contracts:
            report["contracts"].append({"stage": stage.name, **check(stage.contracts)})
    return report


def run_here(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    """The whole night in one call, for a notebook, a script or an installation without Prefect."""

    def run(stage: Stage) -> dict[str, Any]:
        with span(f"hades.build.{stage.name}"):
            return _time(lambda: run_stage(stage, context, ingest, night))

    def check(contracts: Sequence[str]) -> dict[str, Any]:
        with span("hades.build.contracts", contracts=tuple(contracts)):
            return _time(lambda: check_contracts(context, contracts).require().as_dict())

    return run_night(night, run, check)


def _time(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    began = time.perf_counter()
    report = work()
    return {**report, "took": round(time.perf_counter() - began, 3)}


def run_stage(stage: Stage, context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    """Run one stage; lineage is told when it starts and how it ends."""
    run = _lineage_of(stage, context, night)
    context.emit_lineage(run.event("START", utc_now()))
    try:
        report = stage.run(context, ingest, night)
    except BaseException as error:
        context.emit_lineage(run.event("FAIL", utc_now(), f"{type(error).__name__}: {error}"))
        raise
    context.emit_lineage(run.event("COMPLETE", utc_now()))
    return report


def emit_lineage(stage: Stage, context: BuildContext, night: Night) -> None:
    """The lineage of a stage that ran as several tasks, when it is done."""
    run = _lineage_of(stage, context, night)
    for kind in ("START", "COMPLETE"):
        context.emit_lineage(run.event(kind, utc_now()))


def _lineage_of(stage: Stage, context: BuildContext, night: Night) -> StageRun:
    return StageRun(f"hades:{context.home.resolve()}", night.name, stage.name, stage.reads, stage.writes)
