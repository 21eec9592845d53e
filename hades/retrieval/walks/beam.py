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
from schemas.ids import Mask
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
    """(n,) the sum of the terms by their weights (requirements B10 to B12); depth counts
    against.
    """
    signed = np.array(
        [weights.seed_sim, weights.edge_weight, weights.lex_match, -weights.depth_penalty]
    )
    return np.asarray(terms @ signed)


def terms_of(walks: Sequence[Walk], max_hops: int) -> Floats:
    """The terms of walks that have an edge: seed score, mean weight, mean match beyond the seed,
    share of the hops.
    """
    rows = []
    for walk in walks:
        rows.append(
            (
                walk.seed_score,
                sum(walk.weights) / walk.depth,
                sum(walk.matches[1:]) / walk.depth,
                walk.depth / max(1, max_hops),
            )
        )

    return np.clip(
        np.array(rows, np.float64).reshape(len(rows), 4),
        0.0,
        1.0,
    )


class Overlap:
    """What share of their nodes and edges walks have in common (Jaccard); 1 for a repeat."""

    def __init__(self, walks: Sequence[Walk]) -> None:
        codes: dict[tuple[str, int], int] = {}
        parts: list[int] = []

        sizes: list[int] = []
        for walk in walks:
            names = [("n", node) for node in walk.nodes] + [("e", edge) for edge in walk.edges]
            parts += [codes.setdefault(name, len(codes)) for name in names]
            sizes.append(len(names))

        self._sizes = np.array(sizes, np.int64)
        self._walk_of_part = np.repeat(np.arange(len(sizes)), self._sizes)
        self._parts = np.array(parts, np.int64)
        self._is_common = np.zeros(len(codes))

    def __getitem__(self, row: int) -> Floats:
        """The overlap of one walk with each."""
        parts = self._parts[self._walk_of_part == row]
        self._is_common[parts] = 1.0
        common = np.bincount(
            self._walk_of_part,
            self._is_common[self._parts],
            len(self._sizes),
        )
        self._is_common[parts] = 0.0
        shares: Floats = common / np.maximum(self._sizes[row] + self._sizes - common, 1.0)
        return shares


def choose(
    scores: Floats,
    overlap: Overlap | NDArray[np.float32],
    capacity: int,
    redundancy: float,
) -> tuple[Numbers, Floats, Floats]:
    """Places of at most `capacity`, one after the other, each the best given those before it (MMR,
    Carbonell 1998).

    Row i of `overlap` says how alike i and each are. Returns the places, their scores after the
    penalty, and the overlap that was held against each. Ties fall to the first place.
    """
    worst = np.zeros(len(scores))
    available = np.ones(len(scores), np.bool_)
    chosen: list[tuple[int, float, float]] = []

    while available.any() and len(chosen) < capacity:
        penalised = np.where(
            available,
            scores - redundancy * worst,
            -np.inf,
        )
        best = int(np.argmax(penalised))
        chosen.append((best, float(penalised[best]), float(worst[best])))
        available[best] = False
        worst = np.maximum(worst, overlap[best])

    places, penalised_scores, against = np.array(chosen, np.float64).reshape(-1, 3).T
    return places.astype(np.int64), penalised_scores, against


def sentence(
    terms: NDArray[np.float64],
    overlap: float,
    weights: BeamTerms,
) -> str:
    """Why a walk was kept, in the terms of its score."""
    seed, weight, match, depth = terms.tolist()
    return (
        f"seed {weights.seed_sim:g}*{seed:.2f} + weight {weights.edge_weight:g}*{weight:.2f} + "
        f"match {weights.lex_match:g}*{match:.2f} - depth {weights.depth_penalty:g}*{depth:.2f} - "
        f"overlap {weights.redundancy:g}*{overlap:.2f}"
    )


# The budgeted beam: from seeds outwards, a few neighbours a path, and never more than B paths in
# the whole turn. A node costs nothing to look at here: weights, words and vectors come from the
# read index. What is kept is read later, by whoever shows it.


@dataclass(frozen=True)
class BeamRules:
    """The caps of the beam (B5) and what it follows.

    `look` is how many edges of a node are compared, heaviest first, before `fanout` of them are
    followed; over a network, where each would be a read, no more than `fanout` are. `coverage` is
    the share of the seeds' score that must lie on a kept path with another seed for the beam to
    stop before its last hop.
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
    # The score of each path, and why it was kept.
    explanations: list[tuple[float, str]] = field(default_factory=list)
    repeats: int = 0

    def offer(self, walks: Sequence[Walk], rules: BeamRules) -> int:
        """Choose again among the kept and the new; how many did not find room."""
        pool = self._distinct([*self.walks, *walks])
        if not pool:
            return 0

        terms = terms_of(pool, rules.hops)
        scores = score_terms(terms, rules.weights)
        redundancy = rules.weights.redundancy
        places, final, overlaps = choose(
            scores,
            Overlap(pool),
            self.capacity,
            redundancy,
        )
        self.walks = [pool[place] for place in places.tolist()]
        self.explanations = [
            (score, sentence(walk_terms, overlap, rules.weights))
            for walk_terms, score, overlap in zip(
                terms[places],
                final.tolist(),
                overlaps.tolist(),
                strict=True,
            )
        ]
        return len(pool) - len(places)

    def _distinct(self, walks: list[Walk]) -> list[Walk]:
        """Walks by their edges, whichever end they began at; of two the one with the better seed
        stays.
        """
        best: dict[frozenset[int], Walk] = {}
        for walk in walks:
            edges = frozenset(walk.edges)
            rival = best.setdefault(edges, walk)
            if (-walk.seed_score, walk.nodes) < (-rival.seed_score, rival.nodes):
                best[edges] = walk

        self.repeats += len(walks) - len(best)
        return list(best.values())


def search_beam(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    rules: BeamRules,
    *,
    candidate_graph: CandidateGraph | None = None,
) -> StepResult:
    """Grow paths from the seeds for `rules.hops` edges at most, keeping `rules.beam` of them."""
    kept_paths = KeptPaths(rules.beam)
    relevance = Relevance(view, question)
    frontier = _starts(seeds, relevance)

    candidate_count = 0
    for _ in range(rules.hops):
        if not frontier or view.turn.expired():
            break

        grown = _grow(
            view,
            relevance,
            frontier,
            rules,
            question.mask,
            candidate_graph=candidate_graph,
        )
        candidate_count += len(grown)
        if kept_paths.offer(grown, rules):
            view.turn.trimmed(Reason.CAP_EXCEEDED)

        survivors = set(map(id, kept_paths.walks))
        frontier = []
        for walk in grown:
            if id(walk) in survivors:
                frontier.append(walk)

        if len(seeds) > 1 and join(kept_paths.walks, seeds) >= rules.coverage:
            view.turn.note_early_end(Reason.COVERAGE_REACHED)
            break

    paths = tuple(
        FoundPath(
            walk.nodes,
            walk.edges,
            walk.outbound,
            score,
            origin="beam",
            why=why,
        )
        for walk, (score, why) in zip(kept_paths.walks, kept_paths.explanations, strict=True)
    )
    return StepResult(
        paths,
        candidates=candidate_count,
        repeats=kept_paths.repeats,
    )


def join(walks: Sequence[Walk | FoundPath], seeds: Sequence[Seed]) -> float:
    """The share of the seeds' score whose seeds lie on a path together with another seed; 0 for a
    single one.
    """
    scores = {seed.node: seed.score for seed in seeds}
    total = sum(scores.values())

    joined_nodes: set[int] = set()
    for walk in walks:
        on_it = scores.keys() & set(walk.nodes)
        if len(on_it) > 1:
            joined_nodes |= on_it

    if total > 0:
        return sum(scores[node] for node in sorted(joined_nodes)) / total

    return 0.0


def _starts(seeds: Sequence[Seed], relevance: Relevance) -> list[Walk]:
    ordered = sorted(seeds, key=lambda seed: (-seed.score, seed.node))
    matches = relevance.of(np.array([seed.node for seed in ordered], np.int64))
    return [
        Walk(
            nodes=(seed.node,),
            edges=(),
            outbound=(),
            weights=(),
            matches=(match,),
            seed_score=seed.score,
        )
        for seed, match in zip(ordered, matches.tolist(), strict=True)
    ]


def _grow(
    view: MeteredView,
    relevance: Relevance,
    frontier: Sequence[Walk],
    rules: BeamRules,
    mask: Mask,
    *,
    candidate_graph: CandidateGraph | None,
) -> list[Walk]:
    """Each walk continued to its `fanout` best neighbours that it has not been to."""
    ends = np.array([walk.nodes[-1] for walk in frontier], np.int64)
    distinct_ends, row_of = np.unique(ends, return_inverse=True)
    look = max(rules.look, rules.fanout)
    expansion = view.expand(
        distinct_ends,
        direction=rules.direction,
        types=PATH_TYPES,
        fanout=look,
        mask=mask,
    )
    may_have_more = np.bincount(expansion.row, minlength=len(distinct_ends)) >= look
    matches = relevance.of(expansion.target)
    promise = rules.weights.edge_weight * expansion.weight + rules.weights.lex_match * matches
    # The sort is stable, so equal promise keeps the order of the view.
    order = np.lexsort((-promise, expansion.row))

    if candidate_graph is not None:
        order = order[candidate_graph.holds(expansion.target[order])]

    starts = np.searchsorted(expansion.row[order], np.arange(len(distinct_ends) + 1)).tolist()
    grown: list[Walk] = []
    for walk, row in zip(frontier, row_of.tolist(), strict=True):
        visited = set(walk.nodes)
        room = rules.fanout
        for place in order[starts[row] : starts[row + 1]].tolist():
            target = int(expansion.target[place])
            if target in visited:
                continue

            if not room:
                view.turn.trimmed(Reason.CAP_EXCEEDED)
                break

            visited.add(target)
            room -= 1
            grown.append(_extend_walk(walk, expansion, matches, place))
        else:
            if may_have_more[row]:  # beyond what was looked at
                view.turn.trimmed(Reason.CAP_EXCEEDED)

    return grown


def _extend_walk(
    walk: Walk,
    expansion: Expansion,
    matches: Floats,
    place: int,
) -> Walk:
    """A walk with one of the edges found at its end."""
    return Walk(
        (*walk.nodes, int(expansion.target[place])),
        (*walk.edges, int(expansion.edge[place])),
        (*walk.outbound, bool(expansion.outbound[place])),
        (*walk.weights, float(expansion.weight[place])),
        (*walk.matches, float(matches[place])),
        walk.seed_score,
    )
