"""Ingestion as tasks: one phase each, so that the Prefect UI shows where the time goes; only reports come back."""

from __future__ import annotations

from typing import Any

from hades.ingest.phases import Phase
from hades.wiring import open_hades
from schemas.sources import SourceSpec
from tasks import policies
from tasks.artifacts import progress_of
from tasks.unit import unit


@unit("ingest", policies.HEAVY, task_run_name="ingest {phase}")
def run_phase(phase: str, spec: SourceSpec) -> dict[str, Any]:
    """One phase over one source; safe to repeat."""
    with open_hades(progress=progress_of("ingest")) as hades:
        return hades.ingest.spec(spec, [Phase(phase)]).as_dict()


@unit("embed again", policies.HEAVY)
def embed_again() -> dict[str, Any]:
    """Every vector by the model the settings name, swapped in at once, and what is derived from them."""
    with open_hades(progress=progress_of("embeddings")) as hades:
        return hades.embed_again().as_dict()
