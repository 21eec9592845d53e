"""Read a corpus into the graph, phase by phase."""

from __future__ import annotations

from typing import Any

from hades.ingest.phases import Phase
from schemas.sources import SourceKind, SourceSpec
from tasks.build import run_phase
from tasks.unit import build_flow

PHASES = tuple(phase.value for phase in Phase)


@build_flow("ingest")
def ingest(
    source: SourceKind,
    path: str,
    citations: str | None = None,
    code_links: str | None = None,
    triples: str | None = None,
    history: bool = True,
    domain: str | None = None,
    exclude: list[str] | None = None,
    edges: bool = True,
) -> dict[str, Any]:
    """Nodes, chunks, embeddings, edges; each phase continues where it was stopped.

    Args:
        source: what kind of corpus it is
        path: folder or file, as the worker sees it
        citations: arxiv only: who cites whom
        code_links: arxiv only: which repository belongs to which paper
        triples: passages only: ready-made triples
        history: workspace only: read the commits of a git repository
        domain: a domain of every document of the corpus
        exclude: workspace only: patterns of paths to leave out
        edges: also derive entities and edges
    """
    phases = PHASES if edges else PHASES[:-1]
    spec = SourceSpec(
        source=source,
        path=path,
        citations=citations,
        code_links=code_links,
        triples=triples,
        history=history,
        domain=domain,
        exclude=tuple(exclude or ()),
    )
    return {phase: run_phase(phase, spec) for phase in phases}
