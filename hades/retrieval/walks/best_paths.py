"""K cheapest loopless paths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Flags, Numbers
from hades.retrieval.core.metered_view import MeteredView, keep_targets
from hades.retrieval.core.types import OPEN, CandidateGraph, FoundPath, Seed
from hades.retrieval.core.words import ANY, PATH_TYPES, Floats, gains
from hades.retrieval.walks.flow import distinct_paths
from hades.settings.tree import PathSettings
from schemas.ids import Mask

# A few hundred nodes and the edges among them, cut out of a view and renumbered, with the cost of each edge.


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


# The best loopless paths to one target over a small graph: best first, exact, bounded by work and time.
# `least[j][v]` is the least cost of a walk of exactly j edges from v to the target. It never exceeds the cost of a
# path, so that partial paths taken in order of what they could still become give complete ones in order of what
# they are (A*; Hart, Nilsson and Raphael 1968). Keeping j apart lets the order depend on cost and length together.
# Plain Python on purpose: a few hundred nodes take less than a millisecond, and loading a compiler takes a second
# of the first question.


TINY = 1e-9  # costs closer than this are equal: ties are settled by length and edges
LOOKS_AT_CLOCK = 1024  # entries between two looks


Found = tuple[list[tuple[tuple[int, ...], float]], int, bool]


def value_of(cost: float, hops: int, penalty: float | None) -> float:
    """What is minimised: the cost; or, with a penalty, the mean cost plus so much for each edge after the first."""
    if penalty is None:
        return cost
    return cost / hops + penalty * (hops - 1) if hops else 0.0


def least_costs(graph: LocalGraph, target: int, max_hops: int) -> Floats:
    """(max_hops + 1, n) by number of edges; infinity where the target is out of reach."""
    least = np.full((max_hops + 1, len(graph.numbers)), np.inf)
    least[0, target] = 0.0
    for hops in range(1, max_hops + 1):
        costs = graph.costs + least[hops - 1, graph.heads]
        reaching = np.flatnonzero(costs < np.inf)  # few of the edges, after few hops
        tails = np.searchsorted(graph.starts, reaching, side="right") - 1
        np.minimum.at(least[hops], tails, costs[reaching])
    return least


def best_paths(
    graph: LocalGraph,
    sources: Sequence[int],
    target: int,
    least: Floats,
    k: int,
    penalty: float | None,
    max_work: int,
    stop: Callable[[], bool],
) -> Found:
    """The k best paths from any source to the target, and all that tie with the last.

    Entries of the graph with their cost, best first; the work, and whether work or time ended the search.
    """
    if not np.isfinite(least[1:, [source for source in sources if source != target]]).any():
        return [], 0, False
    bounds: list[list[float]] = least.tolist()
    starts, heads, costs = graph.starts.tolist(), graph.heads.tolist(), graph.costs.tolist()
    queue: list[tuple[float, int, int, tuple[int, ...], tuple[int, ...], float]] = []
    for number, source in enumerate(sources):
        could = _could_be(0.0, 0, source, bounds, penalty)
        if source != target and could < math.inf:
            heappush(queue, (could, 0, number, (source,), (), 0.0))
    found: list[tuple[tuple[int, ...], float]] = []
    last, work, pushed, next_look = math.inf, 0, len(queue), LOOKS_AT_CLOCK
    while queue and (len(found) < k or queue[0][0] <= last + TINY):
        best, depth, _, nodes, entries, cost = heappop(queue)
        if nodes[-1] == target:
            found.append((entries, cost))
            last = best
            continue
        if depth == len(bounds) - 1:
            continue
        for entry in range(starts[nodes[-1]], starts[nodes[-1] + 1]):
            if work >= max_work:
                return found, work, True
            work += 1
            head = heads[entry]
            if head in nodes:
                continue
            so_far = cost + costs[entry]
            could = (
                value_of(so_far, depth + 1, penalty)
                if head == target
                else _could_be(so_far, depth + 1, head, bounds, penalty)
            )
            if could < math.inf:
                heappush(queue, (could, depth + 1, pushed, (*nodes, head), (*entries, entry), so_far))
                pushed += 1
        if work >= next_look:
            next_look = work + LOOKS_AT_CLOCK
            if stop():
                return found, work, True
    return found, work, False


def _could_be(cost: float, hops: int, node: int, bounds: Sequence[Sequence[float]], penalty: float | None) -> float:
    """The best value that any completion of a partial path can have."""
    best = math.inf
    for more in range(len(bounds) - hops):
        remaining = bounds[more][node]
        if remaining < math.inf and hops + more:
            best = min(best, value_of(cost + remaining, hops + more, penalty))
    return best


# The k cheapest loopless paths between two nodes, and the M best among the seeds of a candidate graph. Cost and
# score both come from -ln(weight x boost), so a strong edge is a short one. The score of a path is the mean
# log weight less a penalty for each edge after the first; dividing a sum of logs by length instead would reward
# long paths. Lengths are 1 to L: a direct edge is a path.


ENDS = 8  # candidates that paths are searched between when no seeds are given
MAX_WORK = 200_000  # entries one search looks at, whatever is left of the turn's


@dataclass(frozen=True)
class BestPaths:
    """The best paths, best first, and how many of them the bridge cache gave."""

    paths: tuple[FoundPath, ...]
    bridge_hits: int = 0


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
) -> BestPaths:
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
    return BestPaths(tuple(kept), sum(path.origin == "bridge" for path in kept))


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
            path_score(bridge.cost, len(bridge.edges), length_penalty),
            origin="bridge",
            why=f"bridge between topics, cost {bridge.cost:.3f} over {len(bridge.edges)} edges",
        )
        for bridge in view.bridges(topics, topics, limit=limit)
        if 1 <= len(bridge.edges) <= max_hops and {bridge.nodes[0], bridge.nodes[-1]} <= known
    ]


def path_score(cost: float, edges: int, length_penalty: float) -> float:
    """Mean log weight less the penalty for each edge after the first (X-48)."""
    return -cost / edges - length_penalty * (edges - 1)


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
    starts = [place for place in map(graph.local, sources) if place is not None]
    first_look = max_hops * len(graph.heads)
    limit = min(MAX_WORK, view.turn.work_left) - first_look
    if end is None or not starts:
        return
    if limit <= 0:
        view.turn.worked(0, capped=True)
        return
    least = least_costs(graph, end, max_hops)
    found, work, capped = best_paths(graph, starts, end, least, k, length_penalty, limit, view.turn.expired)
    view.turn.worked(first_look + work, capped=capped)
    for taken, cost in found:
        entries = np.array(taken, np.int64)
        first = int(graph.numbers[np.searchsorted(graph.starts, taken[0], side="right") - 1])  # whose row it is in
        yield FoundPath(
            (first, *graph.numbers[graph.heads[entries]].tolist()),
            tuple(graph.edges[entries].tolist()),
            tuple(graph.outbound[entries].tolist()),
            -cost if length_penalty is None else path_score(cost, len(taken), length_penalty),
            origin="cheapest",
            why=f"cost {cost:.3f} over {len(taken)} edges",
        )


def _rank(paths: Sequence[FoundPath]) -> list[FoundPath]:
    """Best first, then fewest edges, then by edge; a path that came twice stands once."""
    return distinct_paths(sorted(paths, key=lambda path: (-round(path.score, 9), len(path.edges), path.edges)))
