"""The five terms a walk is scored by, and the choice of the walks that are kept (requirements B10 to B12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers
from hades.retrieval.ranking.relevance import Floats

TERMS = ("seed_sim", "edge_weight", "lex_match", "depth_penalty")


@dataclass(frozen=True)
class BeamWeights:
    """What each term counts: a, b, g, d and r of requirement B10."""

    seed_sim: float = 0.3
    edge_weight: float = 0.2
    lex_match: float = 0.5
    depth_penalty: float = 0.1
    redundancy: float = 0.3


@dataclass(frozen=True)
class Walk:
    """A path while it grows: n nodes, n - 1 edges with their type codes and weights, and the score of its seed."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    outbound: tuple[bool, ...]
    types: tuple[int, ...]
    weights: tuple[float, ...]
    matches: tuple[float, ...]
    seed_score: float

    @property
    def depth(self) -> int:
        """Edges."""
        return len(self.edges)


class Scorer(Protocol):
    """Scores walks before redundancy. A learned ranker takes this place and the beam does not notice (B12)."""

    def __call__(self, walks: Sequence[Walk], terms: Floats) -> Floats:
        """One score a walk; `terms` is (n_walks, 4) in the order of `TERMS`, each in [0, 1]."""
        ...


@dataclass(frozen=True)
class LinearScorer:
    """The sum of the terms by their weights; depth counts against."""

    weights: BeamWeights = BeamWeights()

    def __call__(self, walks: Sequence[Walk], terms: Floats) -> Floats:
        """See `Scorer`."""
        signed = np.array(astuple(self.weights)[: len(TERMS)]) * np.array([1.0, 1.0, 1.0, -1.0])
        scores: Floats = terms @ signed
        return scores


def terms_of(walks: Sequence[Walk], max_hops: int) -> Floats:
    """The terms of walks that have an edge: seed score, mean weight, mean match beyond the seed, share of the hops."""
    rows = [
        (
            walk.seed_score,
            sum(walk.weights) / walk.depth,
            sum(walk.matches[1:]) / walk.depth,
            walk.depth / max(1, max_hops),
        )
        for walk in walks
    ]
    return np.clip(np.array(rows, np.float64).reshape(len(rows), len(TERMS)), 0.0, 1.0)


class Overlap:
    """What share of their nodes and edges walks have in common (Jaccard); 1 for a repeat."""

    def __init__(self, walks: Sequence[Walk]) -> None:
        codes: dict[tuple[str, int], int] = {}
        parts = [[("n", one) for one in walk.nodes] + [("e", one) for one in walk.edges] for walk in walks]
        self._sizes = np.array([len(part) for part in parts], np.float64)
        self._walk = np.repeat(np.arange(len(parts)), self._sizes.astype(np.int64))
        self._part = np.array([codes.setdefault(name, len(codes)) for part in parts for name in part], np.int64)
        self._held = np.zeros(len(codes))

    def __getitem__(self, row: int) -> Floats:
        """The overlap of one walk with each."""
        own = self._part[self._walk == row]
        self._held[own] = 1.0
        common = np.bincount(self._walk, self._held[self._part], len(self._sizes))
        self._held[own] = 0.0
        shares: Floats = common / np.maximum(self._sizes[row] + self._sizes - common, 1.0)
        return shares


def choose(scores: Floats, overlap: Overlap, capacity: int, redundancy: float) -> tuple[Numbers, Floats, Floats]:
    """Places of at most `capacity` walks, one after the other, each the best given those before it (MMR).

    Returns the places, their scores after the penalty, and the overlap that was held against each. Ties fall to the
    first place.
    """
    worst = np.zeros(len(scores))
    left = np.ones(len(scores), np.bool_)
    places: list[int] = []
    kept: list[float] = []
    against: list[float] = []
    while left.any() and len(places) < capacity:
        penalised = np.where(left, scores - redundancy * worst, -np.inf)
        best = int(np.argmax(penalised))
        places.append(best)
        kept.append(float(penalised[best]))
        against.append(float(worst[best]))
        left[best] = False
        worst = np.maximum(worst, overlap[best])
    return np.array(places, np.int64), np.array(kept), np.array(against)


def sentence(terms: NDArray[np.float64], overlap: float, weights: BeamWeights, *, learned: bool) -> str:
    """Why a walk was kept, in the terms of its score."""
    seed, weight, match, depth = terms.tolist()
    if learned:
        return f"ranker; seed {seed:.2f}, weight {weight:.2f}, match {match:.2f}, overlap {overlap:.2f}"
    return (
        f"seed {weights.seed_sim:g}*{seed:.2f} + weight {weights.edge_weight:g}*{weight:.2f} + "
        f"match {weights.lex_match:g}*{match:.2f} - depth {weights.depth_penalty:g}*{depth:.2f} - "
        f"overlap {weights.redundancy:g}*{overlap:.2f}"
    )
