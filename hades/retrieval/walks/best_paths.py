"""K cheapest loopless paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Flags, Numbers
from hades.retrieval.core.metered_view import MeteredView, keep_targets
from hades.retrieval.core.types import OPEN, CandidateGraph, FoundPath, Seed, StepResult
from hades.retrieval.core.words import ANY, PATH_TYPES, Floats, gains
from hades.retrieval.walks.flow import distinct_paths
from hades.settings.tree import PathSettings
from models.bridges import Edges, best_ways, value_of
from schemas.ids import Mask

EPS = 1e-6  # the least that a weight counts
LOOK = 256  # edges of one candidate that are compared, heaviest first; an edge is found from either end


@dataclass(frozen=True)
class LocalGraph:
    """Rows of edges by local number: those of node i stand at `starts[i]:starts[i + 1]`; `numbers[i]` is its own."""

    numbers: Numbers
    starts: Numbers
    heads: Numbers
    edges: Numbers
    outbound: Flags
    costs: Floats

    def local(self, number: int) -> int | None:
        """The local number of a node, None where it is not here."""
        place = int(np.searchsorted(self.numbers, number))
        return place if place < len(self.numbers) and int(self.numbers[place]) == number else None


def among(
    view: MeteredView,
    nodes: Numbers,
    boosts: Mapping[str, float] | None,
    eps: float,
    *,
    mask: Mask,
    fanout: int | None = LOOK,
) -> LocalGraph:
    """The edges that join these nodes to each other; of a node the `fanout` heaviest, found from either end.

    An edge costs -ln(max(weight x boost, eps)), never below 0 (X-49).
    """
    numbers = np.unique(nodes)
    found = view.expand(numbers, direction=ANY, types=PATH_TYPES, fanout=fanout, mask=mask)
    local = np.full(1 + max(numbers.max(initial=-1), found.target.max(initial=-1)), -1, np.int64)
    local[numbers] = np.arange(len(numbers))
    kept = keep_targets(found, local[found.target] >= 0, None)
    boosted = np.clip(kept.weight.astype(np.float64), 0.0, 1.0) * gains(view.type_names, boosts)[kept.type]
    costs = -np.log(np.clip(boosted, eps, 1.0))
    order: NDArray[np.int64] = np.lexsort((kept.edge, costs, kept.row))
    starts = np.searchsorted(kept.row[order], np.arange(len(numbers) + 1))
    heads = local[kept.target[order]]
    return LocalGraph(numbers, starts, heads, kept.edge[order], kept.outbound[order], costs[order])


def _ball(view: MeteredView, centre: int, radius: int, mask: Mask) -> Numbers:
    """The nodes up to a number of steps from a node."""
    seen = frontier = np.array([centre], np.int64)
    for _ in range(radius):
        if not len(frontier) or view.turn.expired():
            break
        found = view.expand(frontier, direction=ANY, types=PATH_TYPES, mask=mask)
        frontier = np.setdiff1d(found.target, seen)
        seen = np.union1d(seen, frontier)
    return seen


# The k cheapest loopless paths between two nodes, and the M best among the seeds of a candidate graph. Cost and
# score both come from -ln(weight x boost), so a strong edge is a short one. The score of a path is the mean
# log weight less a penalty for each edge after the first; dividing a sum of logs by length instead would reward
# long paths. Lengths are 1 to L: a direct edge is a path.
ENDS = 8  # candidates that paths are searched between when no seeds are given
MAX_WORK = 200_000  # entries one search looks at, whatever is left of the turn's


def cheapest_paths(
    view: MeteredView,
    source: int,
    target: int,
    *,
    k: int,
    max_hops: int,
    boosts: Mapping[str, float] | None = None,
    mask: Mask = OPEN,
) -> tuple[FoundPath, ...]:
    """At most k paths of 1 to `max_hops` edges, cheapest first, then fewest edges, then by edge; `score` is -cost."""
    if source == target:
        return ()
    # Half the hops are taken from each side: two small balls instead of one large one.
    near = _ball(view, source, (max_hops + 1) // 2, mask)
    far = _ball(view, target, max_hops // 2, mask)
    graph = among(view, np.concatenate([near, far]), boosts, EPS, mask=mask, fanout=None)
    return tuple(_rank(list(_search(view, graph, [source], target, k, max_hops, None)))[:k])


def get_best_paths(
    view: MeteredView,
    candidate_graph: CandidateGraph,
    M: int,
    L: int,
    relation_boosts: Mapping[str, float] | None = None,
    *,
    seeds: Sequence[Seed] = (),
    mask: Mask = OPEN,
    rules: PathSettings = PathSettings(),
) -> StepResult:
    """The M best paths of 1 to L edges that join two seeds inside the candidate graph (C35, C37, C47).

    Without seeds, the candidates of highest hscore stand in. The bridge cache is asked first; a pair it joins is not
    searched again.
    """
    wanted = sorted(seeds, key=lambda seed: (-seed.score, seed.node))
    ends = np.array([seed.node for seed in wanted] or candidate_graph.nodes[:ENDS].tolist(), np.int64)
    settled = {str(relation): boost for relation, boost in rules.relation_boost.items()}
    boosts = settled if relation_boosts is None else relation_boosts
    # Bridges were computed from the weights as they stand now and with the boosts of the settings.
    usable = mask.is_open and dict(boosts) == settled
    bridged = _bridges(view, ends, M, L, rules.length_penalty) if usable and len(ends) else []
    joined = {frozenset((path.nodes[0], path.nodes[-1])) for path in bridged}
    within = np.concatenate([candidate_graph.nodes, ends]) if L > 1 else ends  # one edge leads past no other node
    graph = among(view, within, boosts, rules.eps, mask=mask)
    found = list(bridged)
    for place, target in enumerate(ends.tolist()):
        if view.turn.expired():
            break
        # Both ways are one path, so each pair is searched once.
        sources = [one for one in ends[:place].tolist() if frozenset((one, target)) not in joined]
        found += _search(view, graph, sources, target, M, L, rules.length_penalty)
    kept = _rank(found)[:M]
    return StepResult(tuple(kept), bridges=sum(path.origin == "bridge" for path in kept))


def _bridges(view: MeteredView, ends: Numbers, limit: int, max_hops: int, length_penalty: float) -> list[FoundPath]:
    """Paths computed ahead between the topics of the ends, where they join two of the ends.

    A bridge is a document, so each is a read: no more are asked for than paths are wanted.
    """
    topics = np.unique(view.clusters_of(ends))
    topics = topics[topics >= 0]
    if not len(topics):
        return []
    known = set(ends.tolist())
    return [
        FoundPath(
            bridge.nodes,
            bridge.edges,
            bridge.outbound,
            -value_of(bridge.cost, len(bridge.edges), length_penalty),
            origin="bridge",
            why=f"bridge between topics, cost {bridge.cost:.3f} over {len(bridge.edges)} edges",
        )
        for bridge in view.bridges(topics, topics, limit=limit)
        if 1 <= len(bridge.edges) <= max_hops and {bridge.nodes[0], bridge.nodes[-1]} <= known
    ]


def _search(
    view: MeteredView,
    graph: LocalGraph,
    sources: Sequence[int],
    target: int,
    k: int,
    max_hops: int,
    length_penalty: float | None,
) -> Iterator[FoundPath]:
    """Paths of a local graph to one target; by cost without a penalty, else by score."""
    end = graph.local(target)
    starts = [place for place in map(graph.local, sources) if place is not None and place != end]
    limit = min(MAX_WORK, view.turn.work_left)
    if end is None or not starts:
        return
    if limit < 2 * len(graph.heads):
        view.turn.worked(0, capped=True)
        return
    found, work, capped = best_ways(
        Edges(graph.starts, graph.heads, graph.costs), starts, np.array([end]),
        k=k, max_hops=max_hops, penalty=length_penalty, max_work=limit, stop=view.turn.expired,
    )  # fmt: skip
    view.turn.worked(work, capped=capped)
    for one in found:
        entries = np.array(one.entries, np.int64)
        yield FoundPath(
            tuple(graph.numbers[list(one.nodes)].tolist()),
            tuple(graph.edges[entries].tolist()),
            tuple(graph.outbound[entries].tolist()),
            -value_of(one.cost, len(entries), length_penalty),
            origin="cheapest",
            why=f"cost {one.cost:.3f} over {len(entries)} edges",
        )


def _rank(paths: Sequence[FoundPath]) -> list[FoundPath]:
    """Best first, then fewest edges, then by edge; a path that came twice stands once."""
    return distinct_paths(sorted(paths, key=lambda path: (-round(path.score, 9), len(path.edges), path.edges)))
