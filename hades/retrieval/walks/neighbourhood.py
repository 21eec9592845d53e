"""The baseline that path search is compared with: everything near the seeds, by summed weight (GraphRAG style)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hades.ports.graph import KINDS, Kind
from hades.retrieval.ranking.relevance import ANY, MENTIONS, PATH_TYPES
from hades.retrieval.turn.types import FoundPassage, Question, Seed
from schemas.plan import Reason

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

_CHUNK = KINDS.index(Kind.CHUNK)


@dataclass(frozen=True)
class NeighbourhoodRules:
    """How far and how wide to look; `decay` is what is left of a weight after each hop."""

    hops: int = 2
    fanout: int = 32
    decay: float = 0.5
    max_nodes: int = 2000


def neighbourhood(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    *,
    limit: int,
    rules: NeighbourhoodRules = NeighbourhoodRules(),
) -> tuple[FoundPassage, ...]:
    """Chunks within `hops` steps of the seeds over relations and mentions, by the weight that leads to them.

    A chunk gets, over every edge that reaches it, the edge's weight times what its near end holds.
    """
    held = {seed.node: seed.score for seed in sorted(seeds, key=lambda seed: seed.node)}
    total = dict(held)
    for _ in range(rules.hops):
        if not held or view.turn.expired():
            break
        nodes = np.array(sorted(held, key=lambda node: (-held[node], node)), np.int64)
        if len(nodes) > rules.max_nodes:
            view.turn.trimmed(Reason.CAP_EXCEEDED)
            nodes = nodes[: rules.max_nodes]
        found = view.expand(
            nodes, direction=ANY, types=(*PATH_TYPES, MENTIONS), fanout=rules.fanout, mask=question.mask
        )
        masses = np.array([held[node] for node in nodes.tolist()], np.float64)
        reached, place = np.unique(found.target, return_inverse=True)
        passed = np.bincount(place, masses[found.row] * found.weight * rules.decay, len(reached))
        held = dict(zip(reached.tolist(), passed.tolist(), strict=True))
        for node, weight in held.items():
            total[node] = total.get(node, 0.0) + weight
    numbers = np.array(sorted(total), np.int64)
    chunks = numbers[view.kinds(numbers) == _CHUNK] if len(numbers) else numbers
    best = sorted(chunks.tolist(), key=lambda node: (-total[node], node))[:limit]
    return tuple(FoundPassage(node, total[node], {"graph": total[node]}) for node in best)
