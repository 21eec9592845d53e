"""All boundaries in the order of the build."""

from __future__ import annotations

from schemas.contracts import bridges, chunks, edges, embeddings, hierarchy, nodes, ranker, snapshot, weights
from schemas.contracts.rule import Rule, Suite

SUITES: tuple[Suite, ...] = (
    nodes.SUITE,
    chunks.SUITE,
    embeddings.SUITE,
    edges.SUITE,
    hierarchy.SUITE,
    weights.SUITE,
    bridges.SUITE,
    snapshot.SUITE,
)
EXPORTS: tuple[Suite, ...] = (ranker.SUITE,)  # of files that are written to be learned from, not of the store
BOUNDARIES: tuple[str, ...] = tuple(suite.boundary for suite in SUITES)
RULES: tuple[Rule, ...] = tuple(rule for suite in SUITES for rule in suite.rules)


def suite_of(boundary: str) -> Suite:
    """The suite of a boundary; raises ValueError when there is no boundary of that name."""
    for suite in (*SUITES, *EXPORTS):
        if suite.boundary == boundary:
            return suite
    raise ValueError(f"there is no boundary {boundary!r}; there are {', '.join(BOUNDARIES)}")
