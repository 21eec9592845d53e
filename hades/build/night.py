"""The night: one ordered list of stages, read by the flow, the library, the forecast and the report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hades.build.bridges import stage as bridges
from hades.build.context import BuildContext
from hades.build.contracts.check import CHUNK_VECTORS, CONTRACT_NAMES, check_contracts
from hades.build.exam import stage as exam
from hades.build.ranker import stage as ranker
from hades.build.release import publish
from hades.build.stage import EDGES, TEXTS, Night, Report, Stage, Table
from hades.build.topics import stage as topics
from hades.build.weights import stage as weights
from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.memory.upkeep.maintain import reembed_states
from hades.ports.services import utc_now
from hades.telemetry.logs import StageRun, span

# The stages that read: sources into nodes and chunks, vectors of chunks, and what is derived from all of them.


def _read_sources(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    read = ingest.again(night.sources, (Phase.NODES, Phase.CHUNKS))
    documents: Counter[str] = Counter()
    for one in read:
        documents.update(one["documents"])
    return {"sources": read, "documents": dict(documents), "chunks": sum(one["chunks"] for one in read)}


def _describe_sources(report: Report) -> str:
    counts = [f"{one['documents']['new']} new, {one['documents']['changed']} changed" for one in report["sources"]]
    return "; ".join(counts) or "no source is known"


def _list_sources(report: Report) -> Table:
    rows = [
        {"source": one["source"], "path": one["path"], "note": one.get("note", ""), **one["documents"]}
        for one in report["sources"]
    ]
    return rows, "documents read from each source"


SOURCES = Stage(
    "sources",
    "read sources",
    _read_sources,
    _describe_sources,
    _list_sources,
    reads=("sources",),
    writes=(*TEXTS, "ingest_manifest", "quarantine"),
    contracts=("nodes", "chunks"),
    figures=("documents", "chunks"),
)


def _embed(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    report = ingest.run_from_store([Phase.EMBEDDINGS]).as_dict()
    return {**report, "memory": reembed_states(context.store, ingest.embedder)}


EMBEDDINGS = Stage(
    "embeddings",
    "embed chunks",
    _embed,
    lambda report: f"{report['embedded']:,} chunks embedded",
    lambda report: ([{"embedded": report["embedded"]}], "chunks embedded"),
    reads=("doc_chunks",),
    writes=("doc_chunks",),
    contracts=(CHUNK_VECTORS,),
    figures=("embedded", "memory", "shards"),
)


def _derive(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return ingest.run_from_store([Phase.EDGES]).as_dict()


def _describe_edges(report: Report) -> str:
    changed = {kind: sum(change.values()) for kind, change in report["derived"].items()}
    return ", ".join(f"{count:,} {kind}" for kind, count in changed.items() if count) or "nothing changed"


def _list_edges(report: Report) -> Table:
    rows = [{"collection": name, **change} for name, change in report["derived"].items()]
    return rows, "rows that were added, changed and removed"


DERIVED_EDGES = Stage(
    "edges",
    "derive edges",
    _derive,
    _describe_edges,
    _list_edges,
    reads=TEXTS,
    writes=EDGES,
    needs=("embeddings",),
    contracts=("nodes", "embeddings", "edges"),
    figures=("derived",),
)


# The night.


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
