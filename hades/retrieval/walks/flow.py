"""Resource flow from seeds, pruned where it runs thin, and the paths it takes between them (PathRAG, arXiv 2502.14902).

Each seed gives out one unit. A node passes on alpha times what it received, split by weight over its edges; a walk that
carries less than theta ends. The reliability of a path is the mean flow on its edges. What arrives at a node by all
walks together is its resource, the paper's S(v); pruning looks at each walk by itself, which is stricter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hades.ports.graph import Numbers
from hades.retrieval.ranking.path_score import DECAY_RATE, PRUNING_THRESHOLD
from hades.retrieval.ranking.relevance import ANY, Floats, distinct, gains, moments
from hades.retrieval.turn.types import FoundPath, Question, Seed
from schemas.plan import Reason

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.channels.narrow_topics import CandidateGraph
    from hades.retrieval.turn.metered_view import MeteredView
    from hades.retrieval.walks.flow_kernel import Spread

ScorePath = Callable[[float, int, int], float]  # (reliability, first node, last node)

SLICE_WORK = 200_000  # entries between two looks at the clock: about a millisecond


@dataclass(frozen=True)
class FlowRules:
    """How flow spreads. `boosts` are factors by relation type, all 1 when absent.

    `scoring` "flow" splits by out-degree as the paper does; "v0" is the formula of specification 000, kept for
    comparison: it does not split, and decays hop n by alpha ** (0 + 1 + ... + n).
    """

    hops: int = 3
    alpha: float = DECAY_RATE
    theta: float = PRUNING_THRESHOLD
    max_paths: int = 6
    scoring: Literal["flow", "v0"] = "flow"
    direction: Direction = ANY
    boosts: Mapping[str, float] | None = None


@dataclass(frozen=True)
class FlowAnswer:
    """Paths between seeds, best first, and the flow that arrived at each node reached, by number.

    `pruned_from` is how many paths there were before `max_paths` cut them.
    """

    paths: tuple[FoundPath, ...]
    reached: Numbers
    resource: Floats
    pruned_from: int


def flow_paths(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    rules: FlowRules = FlowRules(),
    *,
    within: CandidateGraph | None = None,
) -> FlowAnswer:
    """Spread flow from the seeds, strongest first, and return the most reliable paths that join two of them.

    Work is bounded by what is left of the turn's, and by about hops / theta a seed whatever the graph.
    """
    ordered = sorted({seed.node: seed for seed in seeds}.values(), key=lambda seed: (-seed.score, seed.node))
    found = _spreads(view, question, ordered, rules, within)
    scores = {seed.node: seed.score for seed in ordered}
    best: dict[frozenset[int], FoundPath] = {}
    for one in found:
        for path in _paths_of(one, lambda reliable, first, last: reliable * (scores[first] + scores[last]) / 2):
            edges = frozenset(path.edges)
            if edges not in best or _rank(path) < _rank(best[edges]):
                best[edges] = path
    paths = sorted(best.values(), key=_rank)
    if len(paths) > rules.max_paths:
        view.turn.trimmed(Reason.CAP_EXCEEDED)
    reached, place = np.unique(
        np.concatenate([np.empty(0, np.int64), *(one.reached for one in found)]), return_inverse=True
    )
    resource = np.bincount(place, np.concatenate([np.empty(0), *(one.resource for one in found)]), len(reached))
    return FlowAnswer(tuple(paths[: rules.max_paths]), reached, resource.astype(np.float64), len(paths))


def spread_flow(
    view: MeteredView, question: Question, seeds: Sequence[Seed], targets: Numbers, rules: FlowRules
) -> list[FoundPath]:
    """Spread flow from the seeds and return the paths that end in one of the targets.

    The score of a path is its reliability by the score of the seed that it starts from; best first.
    """
    ordered = sorted({seed.node: seed for seed in seeds}.values(), key=lambda seed: (-seed.score, seed.node))
    found = _spreads(view, question, ordered, rules, None, distinct(targets))
    scores = {seed.node: seed.score for seed in ordered}
    paths = {
        path.edges: path
        for one in found
        for path in _paths_of(one, lambda reliable, first, _: reliable * scores[first])
    }
    return sorted(paths.values(), key=_rank)


def _spreads(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    rules: FlowRules,
    within: CandidateGraph | None,
    targets: Numbers | None = None,
) -> list[Spread]:
    """The flow from each seed, in slices so that the clock is looked at in between."""
    sources = np.array([seed.node for seed in seeds], np.int64)
    shares = np.array([seed.score for seed in seeds], np.float64)
    targets = distinct(sources) if targets is None else targets
    allowed = None if within is None else np.union1d(within.nodes, targets)
    by_type, splits = gains(view.type_names, rules.boosts), rules.scoring == "flow"
    adjacency = view.adjacency()
    if adjacency is None:
        from hades.retrieval.walks.flow_remote import spread_by_expand

        return [
            spread_by_expand(
                view, sources, shares, targets, gains=by_type, direction=rules.direction, within=allowed,
                mask=question.mask, alpha=rules.alpha, theta=rules.theta, max_hops=rules.hops, splits=splits,
            )
        ]  # fmt: skip
    from hades.retrieval.walks.flow_kernel import BOTH_WAYS, INWARDS, OUTWARDS, spread

    ways = {"any": BOTH_WAYS, "outbound": OUTWARDS, "inbound": INWARDS}[rules.direction]
    found: list[Spread] = []
    while len(sources) and not view.turn.expired():
        with view.walking():
            one = spread(
                adjacency, sources, shares, targets, gains=by_type, ways=ways, within=allowed,
                moments=moments(question.mask), alpha=rules.alpha, theta=rules.theta, max_hops=rules.hops,
                splits=splits, max_work=max(0, view.turn.work_left), slice_work=SLICE_WORK,
            )  # fmt: skip
        view.turn.worked(one.work, capped=one.capped)
        found.append(one)
        if one.capped:
            break
        sources, shares = sources[one.done :], shares[one.done :]
    return found


def _paths_of(found: Spread, score: ScorePath) -> list[FoundPath]:
    paths = []
    columns = (found.length, found.nodes, found.edges, found.outbound, found.flows)
    for length, nodes, edges, outbound, flows in zip(*(column.tolist() for column in columns), strict=True):
        reliability = sum(flows[:length]) / length
        paths.append(
            FoundPath(
                tuple(nodes[: length + 1]),
                tuple(edges[:length]),
                tuple(outbound[:length]),
                score(reliability, nodes[0], nodes[length]),
                reliability,
                "flow",
                "flow " + " > ".join([f"{flow:.4f}" for flow in flows[:length]]),
            )
        )
    return paths


def _rank(path: FoundPath) -> tuple[float, int, tuple[int, ...]]:
    """Highest score first, then fewest edges, then by edge."""
    return -round(path.score, 12), len(path.edges), path.edges
