"""The best loopless paths to one target over a small graph: best first, exact, bounded by work and time.

`least[j][v]` is the least cost of a walk of exactly j edges from v to the target. It never exceeds the cost of a path,
so that partial paths taken in order of what they could still become give complete ones in order of what they are (A*;
Hart, Nilsson and Raphael 1968). Keeping j apart lets the order depend on cost and length together.

Plain Python on purpose: a few hundred nodes take less than a millisecond, and loading a compiler takes a second of the
first question.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from hades.retrieval.ranking.relevance import Floats
from hades.retrieval.walks.local_graph import LocalGraph

TINY = 1e-9  # costs closer than this are equal: ties are settled by length and edges
LOOKS_AT_CLOCK = 1024  # entries between two looks


@dataclass(frozen=True)
class Value:
    """What is minimised: the cost; or, with a penalty, the mean cost plus so much for each edge after the first."""

    penalty: float | None = None

    def of(self, cost: float, hops: int) -> float:
        """The value of a path."""
        if self.penalty is None:
            return cost
        return cost / hops + self.penalty * (hops - 1) if hops else 0.0


@dataclass(frozen=True)
class SearchResult:
    """Paths as entries of the graph with their costs, best first; `capped` when work or time ended the search."""

    paths: tuple[tuple[tuple[int, ...], float], ...]
    work: int
    capped: bool = False


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
    value: Value,
    max_work: int,
    stop: Callable[[], bool],
) -> SearchResult:
    """The k best paths from any source to the target, and all that tie with the last."""
    if not np.isfinite(least[1:, [source for source in sources if source != target]]).any():
        return SearchResult((), 0)
    bounds: list[list[float]] = least.tolist()
    starts, heads, costs = graph.starts.tolist(), graph.heads.tolist(), graph.costs.tolist()
    queue: list[tuple[float, int, int, tuple[int, ...], tuple[int, ...], float]] = []
    for number, source in enumerate(sources):
        could = _could_be(0.0, 0, source, bounds, value)
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
                return SearchResult(tuple(found), work, capped=True)
            work += 1
            head = heads[entry]
            if head in nodes:
                continue
            so_far = cost + costs[entry]
            could = value.of(so_far, depth + 1) if head == target else _could_be(so_far, depth + 1, head, bounds, value)
            if could < math.inf:
                heappush(queue, (could, depth + 1, pushed, (*nodes, head), (*entries, entry), so_far))
                pushed += 1
        if work >= next_look:
            next_look = work + LOOKS_AT_CLOCK
            if stop():
                return SearchResult(tuple(found), work, capped=True)
    return SearchResult(tuple(found), work)


def _could_be(cost: float, hops: int, node: int, bounds: Sequence[Sequence[float]], value: Value) -> float:
    """The best value that any completion of a partial path can have."""
    best = math.inf
    for more in range(len(bounds) - hops):
        remaining = bounds[more][node]
        if remaining < math.inf and hops + more:
            best = min(best, value.of(cost + remaining, hops + more))
    return best
