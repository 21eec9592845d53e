"""Drop the paths that carry little flow: an option of every recipe that finds paths.

The first node of a path gives out one unit. Each edge passes on what its tail received, times its weight, divided by
the number of edges that a walk could take from the tail (both directions), times the decay. The mean over the edges
must reach the threshold. The score and the reliability of a path stay those of the walk that found it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hades.retrieval.ranking.path_score import DECAY_RATE, PRUNING_THRESHOLD
from hades.retrieval.ranking.relevance import ANY, PATH_TYPES
from hades.retrieval.turn.metered_view import MeteredView
from hades.retrieval.turn.types import FoundPath


@dataclass(frozen=True)
class FlowPruning:
    """How much flow each hop passes on, and how much a path must carry."""

    decay_rate: float = DECAY_RATE
    threshold: float = PRUNING_THRESHOLD


def prune_by_flow(view: MeteredView, paths: Sequence[FoundPath], rule: FlowPruning) -> tuple[FoundPath, ...]:
    """The paths whose mean flow reaches the threshold, in their order; one that may not be read is kept."""
    return tuple(path for path in paths if _mean_flow(view, path, rule.decay_rate) >= rule.threshold)


def _mean_flow(view: MeteredView, path: FoundPath, decay_rate: float) -> float:
    edges = view.edges(np.array(path.edges, np.int64))
    if not path.edges or len(edges) < len(path.edges):
        return 1.0
    tails = np.array(path.nodes[:-1], np.int64)
    degrees = view.degree(tails, direction=ANY, types=PATH_TYPES)
    flow, total = 1.0, 0.0
    for edge, degree in zip(edges, degrees.tolist(), strict=True):
        weight = 1.0 if edge.weight is None else min(max(edge.weight, 0.0), 1.0)
        flow *= weight / max(1, degree) * decay_rate
        total += flow
    return total / len(edges)
