"""The stages that read: sources into nodes and chunks, vectors of chunks, and what is derived from all of them."""

from __future__ import annotations

from typing import Any

from hades.build.context import BuildContext
from hades.build.contracts.check import CHUNK_VECTORS
from hades.build.stage import EDGES, TEXTS, Night, Report, Stage, Table
from hades.ingest.ingest import Ingest
from hades.ingest.phases import Phase
from hades.memory.upkeep.maintain import reembed_states


def _read_sources(context: BuildContext, ingest: Ingest, night: Night) -> dict[str, Any]:
    return {"sources": ingest.again(night.sources, (Phase.NODES, Phase.CHUNKS))}


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
)
