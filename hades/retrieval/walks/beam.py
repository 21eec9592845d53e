"""Budgeted beam and its score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Expansion, Numbers
from hades.ports.store import Direction
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import CandidateGraph, FoundPath, Question, Seed, StepResult
from hades.retrieval.core.words import ANY, PATH_TYPES, Floats, Relevance
from hades.settings.tree import BeamTerms
from schemas.plan import Reason


@dataclass(frozen=True)
class Walk:
    """A path while it grows: n nodes, n - 1 edges with their weights, and the score of its seed."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    outbound: tuple[bool, ...]
    weights: tuple[float, ...]
    matches: tuple[float, ...]
    seed_score: float

    @property
    def depth(self) -> int:
        """Edges."""
        return len(self.edges)


def score_terms(terms: Floats, weights: BeamTerms) -> Floats:
    """(n,) the sum of the terms by their weights (requirements B10 to B12); depth counts against."""
    signed = np.array([weights.seed_sim, weights.edge_weight, weights.lex_match, -weights.depth_penalty])
    return np.asarray(terms @ signed)


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
    return np.clip(np.array(rows, np.float64).reshape(len(rows), 4), 0.0, 1.0)


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


def choose(
    scores: Floats, overlap: Overlap | NDArray[np.float32], capacity: int, redundancy: float
) -> tuple[Numbers, Floats, Floats]:
    """Places of at most `capacity`, one after the other, each the best given those before it (MMR, Carbonell 1998).

    Row i of `overlap` says how alike i and each are. Returns the places, their scores after the penalty, and the
    overlap that was held against each. Ties fall to the first place.
    """
    worst, left = np.zeros(len(scores)), np.ones(len(scores), np.bool_)
    chosen: list[tuple[int, float, float]] = []
    while left.any() and len(chosen) < capacity:
        penalised = np.where(left, scores - redundancy * worst, -np.inf)
        best = int(np.argmax(penalised))
        chosen.append((best, float(penalised[best]), float(worst[best])))
        left[best] = False
        worst = np.maximum(worst, overlap[best])
    places, kept, against = np.array(chosen, np.float64).reshape(-1, 3).T
    return places.astype(np.int64), kept, against


def sentence(terms: NDArray[np.float64], overlap: float, weights: BeamTerms) -> str:
    """Why a walk was kept, in the terms of its score."""
    seed, weight, match, depth = terms.tolist()
    return (
        f"seed {weights.seed_sim:g}*{seed:.2f} + weight {weights.edge_weight:g}*{weight:.2f} + "
        f"match {weights.lex_match:g}*{match:.2f} - depth {weights.depth_penalty:g}*{depth:.2f} - "
        f"overlap {weights.redundancy:g}*{overlap:.2f}"
    )


# The budgeted beam: from seeds outwards, a few neighbours a path, and never more than B paths in the whole turn. A
# node costs nothing to look at here: weights, words and vectors come from the read index. What is kept is read
# later, by whoever shows it.


@dataclass(frozen=True)
class BeamRules:
    """The caps of the beam (B5) and what it follows.

    `look` is how many edges of a node are compared, heaviest first, before `fanout` of them are followed; over a
    network, where each would be a read, no more than `fanout` are. `coverage` is the share of the seeds' score that
    must lie on a kept path with another seed for the beam to stop before its last hop.
    """

    hops: int = 1
    fanout: int = 2
    beam: int = 8
    look: int = 32
    coverage: float = 1.0
    weights: BeamTerms = field(default_factory=BeamTerms)
    direction: Direction = ANY


@dataclass
class KeptPaths:
    """The paths of one turn, all depths together: at most `capacity` at any moment (X-31)."""

    capacity: int
    walks: list[Walk] = field(default_factory=list)
    told: list[tuple[float, str]] = field(default_factory=list)  # the score of each, and why it was kept
    repeats: int = 0

    def offer(self, walks: Sequence[Walk], rules: BeamRules) -> int:
        """Choose again among the kept and the new; how many did not find room."""
        pool = self._distinct([*self.walks, *walks])
        if not pool:
            return 0
        terms = terms_of(pool, rules.hops)
        scores = score_terms(terms, rules.weights)
        places, final, against = choose(scores, Overlap(pool), self.capacity, rules.weights.redundancy)
        self.walks = [pool[place] for place in places.tolist()]
        chosen = zip(terms[places], final.tolist(), against.tolist(), strict=True)
        self.told = [(score, sentence(own, overlap, rules.weights)) for own, score, overlap in chosen]
        return len(pool) - len(places)

    def _distinct(self, walks: list[Walk]) -> list[Walk]:
        """Walks by their edges, whichever end they began at; of two the one with the better seed stays."""
        best: dict[frozenset[int], Walk] = {}
        for walk in walks:
            edges = frozenset(walk.edges)
            held = best.get(edges)
            if held is None or (-walk.seed_score, walk.nodes) < (-held.seed_score, held.nodes):
                best[edges] = walk
        self.repeats += len(walks) - len(best)
        return list(best.values())


def search_beam(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    rules: BeamRules,
    *,
    within: CandidateGraph | None = None,
) -> StepResult:
    """Grow paths from the seeds for `rules.hops` edges at most, keeping `rules.beam` of them."""
    kept = KeptPaths(rules.beam)
    relevance = Relevance(view, question)
    frontier = _starts(seeds, relevance)
    candidates = 0
    for _ in range(rules.hops):
        if not frontier or view.turn.expired():
            break
        grown = _grow(view, question, frontier, rules, relevance, within)
        candidates += len(grown)
        if kept.offer(grown, rules):
            view.turn.trimmed(Reason.CAP_EXCEEDED)
        survivors = set(map(id, kept.walks))
        frontier = [walk for walk in grown if id(walk) in survivors]
        if len(seeds) > 1 and join(kept.walks, seeds) >= rules.coverage:
            view.turn.note_early_end(Reason.COVERAGE_REACHED)
            break
    paths = tuple(
        FoundPath(walk.nodes, walk.edges, walk.outbound, score, origin="beam", why=why)
        for walk, (score, why) in zip(kept.walks, kept.told, strict=True)
    )
    return StepResult(paths, candidates=candidates, repeats=kept.repeats)


def join(walks: Sequence[Walk | FoundPath], seeds: Sequence[Seed]) -> float:
    """The share of the seeds' score whose seeds lie on a path together with another seed; 0 for a single one."""
    scores = {seed.node: seed.score for seed in seeds}
    total = sum(scores.values())
    met: set[int] = set()
    for walk in walks:
        on_it = scores.keys() & set(walk.nodes)
        if len(on_it) > 1:
            met |= on_it
    return sum(scores[node] for node in sorted(met)) / total if total > 0 else 0.0


def _starts(seeds: Sequence[Seed], relevance: Relevance) -> list[Walk]:
    ordered = sorted(seeds, key=lambda seed: (-seed.score, seed.node))
    matches = relevance.of(np.array([seed.node for seed in ordered], np.int64))
    return [
        Walk((seed.node,), (), (), (), (match,), seed.score)
        for seed, match in zip(ordered, matches.tolist(), strict=True)
    ]


def _grow(
    view: MeteredView,
    question: Question,
    frontier: Sequence[Walk],
    rules: BeamRules,
    relevance: Relevance,
    within: CandidateGraph | None,
) -> list[Walk]:
    """Each walk continued to its `fanout` best neighbours that it has not been to."""
    ends = np.array([walk.nodes[-1] for walk in frontier], np.int64)
    asked, row_of = np.unique(ends, return_inverse=True)
    look = max(rules.look, rules.fanout)
    found = view.expand(asked, direction=rules.direction, types=PATH_TYPES, fanout=look, mask=question.mask)
    may_have_more = np.bincount(found.row, minlength=len(asked)) >= look
    matches = relevance.of(found.target)
    promise = rules.weights.edge_weight * found.weight + rules.weights.lex_match * matches
    order = np.lexsort((-promise, found.row))  # stable, so equal promise keeps the order of the view
    if within is not None:
        order = order[within.holds(found.target[order])]
    starts = np.searchsorted(found.row[order], np.arange(len(asked) + 1)).tolist()
    places, targets = order.tolist(), found.target[order].tolist()
    grown: list[Walk] = []
    for walk, row in zip(frontier, row_of.tolist(), strict=True):
        been, left = set(walk.nodes), rules.fanout
        for at in range(starts[row], starts[row + 1]):
            if targets[at] in been:
                continue
            if not left:
                view.turn.trimmed(Reason.CAP_EXCEEDED)
                break
            been.add(targets[at])
            left -= 1
            grown.append(_extend_walk(walk, found, matches, places[at]))
        else:
            if may_have_more[row]:  # beyond what was looked at
                view.turn.trimmed(Reason.CAP_EXCEEDED)
    return grown


def _extend_walk(walk: Walk, found: Expansion, matches: Floats, place: int) -> Walk:
    """A walk with one of the edges found at its end."""
    return Walk(
        (*walk.nodes, int(found.target[place])),
        (*walk.edges, int(found.edge[place])),
        (*walk.outbound, bool(found.outbound[place])),
        (*walk.weights, float(found.weight[place])),
        (*walk.matches, float(matches[place])),
        walk.seed_score,
    )
