"""One stage of a build with its lineage: what a flow's task and a build without a server both call."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hades.ingest.ingest_api import Ingest
from hades.ports.clock import utc_now
from hades.stages.build_context import BuildContext
from hades.stages.build_report import build_name
from hades.stages.night import Night, Stage
from hades.telemetry.lineage import StageRun

_TEXTS = ("documents", "papers_raw", "files", "funcs", "doc_chunks")
_EDGES = ("entities", "mentions", "relations", "references", "contains", "imports", "chunk_code_edges")
_TOPICS = ("clusters", "cluster_edges", "cluster_membership_journal")
DATASETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sources": (("sources",), (*_TEXTS, "ingest_manifest", "quarantine")),
    "embeddings": (("doc_chunks",), ("doc_chunks",)),
    "edges": (_TEXTS, _EDGES),
    "topics": (("doc_chunks", *_EDGES), _TOPICS),
    "weights": ((*_EDGES, "query_logs"), ("mentions", "relations", "weight_config")),
    "bridges": ((*_TOPICS, *_EDGES), ("bridge_cache",)),
    "ranker": (("query_logs", *_EDGES), ("ranker",)),
    "released": ((*_TEXTS, *_EDGES, *_TOPICS, "bridge_cache"), ("snapshot",)),
}


def run_stage(stage: Stage, context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    """Run the stage; lineage is told when it starts and how it ends."""
    run = lineage_of(stage.name, context, night)
    context.emit_lineage(run.event("START", utc_now()))
    try:
        report = stage.run(context, ingest, night)
    except BaseException as error:
        context.emit_lineage(run.event("FAIL", utc_now(), f"{type(error).__name__}: {error}"))
        raise
    context.emit_lineage(run.event("COMPLETE", utc_now()))
    return report


def lineage_of(name: str, context: BuildContext, night: Night) -> StageRun:
    """The run of a stage as lineage names it."""
    inputs, outputs = DATASETS[name]
    began = datetime.fromtimestamp(night.began, UTC)
    return StageRun(f"hades:{context.home.resolve()}", build_name(began), name, inputs, outputs)


def tell_stage(name: str, context: BuildContext, night: Night) -> None:
    """Tell lineage of a stage that ran as several tasks, when it is done."""
    run = lineage_of(name, context, night)
    for kind in ("START", "COMPLETE"):
        context.emit_lineage(run.event(kind, utc_now()))
