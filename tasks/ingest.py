"""Ingestion as tasks: one phase each, so that the Prefect UI shows where the time goes; only reports come back."""

from __future__ import annotations

from typing import Any

from hades.ingest.phases import Phase
from hades.wiring import open_hades
from schemas.sources import SourceSpec
from tasks import artifacts, policies
from tasks.artifacts import progress_of
from tasks.unit import unit

READING = (Phase.NODES, Phase.CHUNKS)


@unit("ingest", policies.HEAVY, task_run_name="ingest {phase}")
def run_phase(phase: str, spec: SourceSpec) -> dict[str, Any]:
    """One phase over one source; safe to repeat."""
    with open_hades(progress=progress_of("ingest")) as hades:
        return hades.ingest.spec(spec, [Phase(phase)]).as_dict()


@unit("read sources", policies.HEAVY)
def read_sources(specs: list[SourceSpec] | None) -> dict[str, Any]:
    """What is new, changed or gone in these sources, or in all that were ingested before, as nodes and chunks."""
    with open_hades(progress=progress_of("sources")) as hades:
        reports = hades.ingest.again(specs, READING)
    artifacts.table("sources", [_row(report) for report in reports], "what each source had to say")
    return {"sources": reports}


@unit("derive edges", policies.HEAVY)
def derive() -> dict[str, Any]:
    """Entities, mentions and relations that follow from all documents together."""
    with open_hades(progress=progress_of("edges")) as hades:
        report = hades.derive().as_dict()
    rows = [{"collection": name, **change} for name, change in report["derived"].items()]
    artifacts.table("derived", rows, "rows that were added, changed and removed")
    return report


@unit("embed again", policies.HEAVY)
def embed_again() -> dict[str, Any]:
    """Every vector by the model the settings name, swapped in at once, and what is derived from them."""
    with open_hades(progress=progress_of("embeddings")) as hades:
        return hades.embed_again().as_dict()


def _row(report: dict[str, Any]) -> dict[str, Any]:
    said = {"source": report["source"], "path": report["path"], "note": report.get("note", "")}
    return {**said, **report["documents"]}
