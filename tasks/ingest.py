"""Ingestion as tasks: one phase each, so that the Prefect UI shows where the time goes; only reports come back."""

from __future__ import annotations

from typing import Any, Literal

from prefect import task

from hades.ingest.phases import Phase
from hades.wiring import open_hades
from schemas.nodes import SourceKind
from tasks import policies

SourceName = Literal["workspace", "documents", "arxiv", "passages"]


@task(name="ingest", task_run_name="ingest {phase}", **policies.HEAVY)
def run_phase(
    phase: str, source: SourceName, path: str, citations: str | None, code_links: str | None, triples: str | None
) -> dict[str, Any]:
    """One phase over one source; safe to repeat."""
    with open_hades() as hades:
        report = hades.ingest.corpus(
            SourceKind(source), path, citations=citations, code_links=code_links, triples=triples, phases=[Phase(phase)]
        )
    return report.as_dict()


@task(name="embed again", **policies.HEAVY)
def embed_again() -> dict[str, Any]:
    """Every vector by the model the settings name, swapped in at once, and what is derived from them."""
    with open_hades() as hades:
        return hades.embed_again().as_dict()
