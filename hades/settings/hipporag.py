"""The section `hipporag:` of hades.yaml: personalized PageRank, where it starts over and when it stops.

Specification 004 gives damping .85, passage mass .05, tolerance 1e-6 and 100 iterations for power iteration. The
defaults here differ where docs/hipporag.md shows a figure for another value.
"""

from __future__ import annotations

from pydantic import Field

from hades.settings.hirag import Section


class HippoSettings(Section):
    """How the walk of `hipporag`, `hipporag_multihop` and the default recipe goes."""

    damping: float = Field(0.5, ge=0.0, lt=1.0, description="chance to walk on instead of starting over, at each step")
    passage_mass: float = Field(
        0.08, ge=0.0, le=1.0, description="share of the restart mass on the passages nearest to the question"
    )
    tolerance: float = Field(
        1e-5, gt=0.0, lt=1.0, description="largest residual of a node, as a share of its weighted degree"
    )
    max_work: int = Field(
        2_000_000, ge=1, description="edges that a walk may look at; takes the place of a number of iterations"
    )
    relaxed_tolerance: float = Field(
        1e-4, gt=0.0, lt=1.0, description="tolerance for the last third of the work, where the first was not reached"
    )
    specificity: float = Field(
        0.5, ge=0.0, le=2.0, description="a named entity counts (passages that name it) ** -specificity"
    )
