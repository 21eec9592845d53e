"""Learning from choices: what was preferred to what else was shown moves the edges of both, a little and not far.

A result (a path, a passage) is scored by the mean logit of its edges. For a pair of results the chance that the first
is preferred is modelled as sigma(score - score), as Bradley and Terry (1952) do; the surprise of what was really
preferred, 1 - that chance, lifts the edges that only the preferred result has and lowers those that only the other has.
Edges of both stay. A turn is one update: it moves an edge by rate * pull / sqrt(CALM + squares of its pulls so far),
which is less than `rate` and falls as the edge is judged more often (AdaGrad: Duchi, Hazan and Singer, 2011), within
[-radius, radius], the trust region around the prior. The offset of an edge is the mean of where it stood after each
update, later ones counting more (Shamir and Zhang, 2013): single judgements do not shake it.

An edge gains only through a result that somebody preferred, so being shown, however often, lifts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.weights.components import Longs

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Results:
    """What was shown, by its edges: those of result i are `edges[starts[i]:starts[i + 1]]`, each once."""

    starts: Longs
    edges: Longs

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Pairs:
    """Choices, (n,) each: of turn `turn` (never falling) somebody held result `preferred` above result `other`.

    `weight` is how much the pair counts within its turn. Where `lifts` is False the first result was merely not
    rejected: it does not gain, the rejected one loses.
    """

    turn: Longs
    preferred: Longs
    other: Longs
    weight: Doubles
    lifts: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.turn)

    def where(self, chosen: NDArray[np.bool_]) -> Pairs:
        """Some of them."""
        kept = np.flatnonzero(chosen)
        return Pairs(self.turn[kept], self.preferred[kept], self.other[kept], self.weight[kept], self.lifts[kept])


def learn_offsets(prior: Doubles, results: Results, pairs: Pairs, *, rate: float, radius: float) -> Doubles:
    """(n_edges,) float64: what to add to the prior logit of each edge, turns taken in the order they stand in.

    `prior` is finite. Every result that a pair names has an edge.
    """
    if not 0.0 < rate <= radius:
        raise ValueError(f"rate {rate} and radius {radius}: a turn must move an edge by something within the radius")
    from models.weights.replay import replay  # loads the compiler, which reading pairs does not need

    offsets = np.zeros(len(prior))
    kernel: Any = replay
    arrays = (results.starts, results.edges, pairs.turn, pairs.preferred, pairs.other, pairs.weight, pairs.lifts)
    kernel(prior, *arrays, rate, radius, offsets)
    return offsets


def scores_of(logits: Doubles, results: Results) -> Doubles:
    """The mean logit of each result's edges, (n_results,); NaN for one without edges."""
    sizes = np.diff(results.starts)
    owner = np.repeat(np.arange(len(results)), sizes)
    total = np.bincount(owner, weights=logits[results.edges], minlength=len(results))
    with np.errstate(invalid="ignore"):
        means: Doubles = total / sizes
    return means
