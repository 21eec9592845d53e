"""The k cheapest loopless paths of bounded length, exactly, looking at few edges.

First the least cost to the target within 0..max_hops edges is found for every node that can matter, by steps backwards
from the target. Then partial paths grow from the source, best possible total first; because the estimate is never too
high, complete paths come out in order of cost (A* over simple paths; Hart, Nilsson and Raphael 1968).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hades.errors import WorkExceeded
from hades.ports.store import StorePath

_TINY = 1e-12


@dataclass(frozen=True)
class Step:
    """One edge as a search sees it: from a node to a neighbour."""

    node: str
    neighbour: str
    edge: str
    cost: float


Expand = Callable[[Sequence[str]], list[Step]]


def cheapest_paths(
    forward: Expand, backward: Expand, source: str, target: str, *, k: int, max_hops: int, max_work: int
) -> list[StorePath]:
    """The k cheapest simple paths, cheapest first, then fewest edges, then edge keys.

    `forward` and `backward` give every edge of the nodes asked for, along and against the search's direction.
    """
    if source == target:
        return []
    work = _Work(max_work)
    remaining = _least_costs(backward, source, target, max_hops, work)
    return _grow(forward, source, target, k, max_hops, remaining, work)


@dataclass
class _Work:
    """Counts edges looked at against the budget."""

    limit: int
    done: int = 0

    def take(self, edges: int) -> None:
        self.done += edges
        if self.done > self.limit:
            raise WorkExceeded(
                f"the path search looked at {self.done} edges, {self.limit} allowed; raise max_work or lower max_hops"
            )


def _least_costs(backward: Expand, source: str, target: str, max_hops: int, work: _Work) -> list[dict[str, float]]:
    """`result[h][node]`: least cost from node to target over at most h edges; absent means out of reach."""
    layers: list[dict[str, float]] = [{target: 0.0}]
    frontier = {target: 0.0}
    for _ in range(max_hops):
        best = dict(layers[-1])
        improved: dict[str, float] = {}
        steps = backward(sorted(frontier)) if frontier else []
        work.take(len(steps))
        for step in steps:
            cost = frontier[step.node] + step.cost
            if cost < best.get(step.neighbour, float("inf")):
                best[step.neighbour] = improved[step.neighbour] = cost
        layers.append(best)
        # The source ends every useful path, so nothing beyond it needs a cost.
        frontier = {node: cost for node, cost in improved.items() if node != source}
    return layers


def _grow(
    forward: Expand,
    source: str,
    target: str,
    k: int,
    max_hops: int,
    remaining: list[dict[str, float]],
    work: _Work,
) -> list[StorePath]:
    found: list[StorePath] = []
    adjacency: dict[str, list[Step]] = {}
    start = remaining[max_hops].get(source)
    if start is None:
        return found
    queue: list[tuple[float, int, tuple[str, ...], tuple[str, ...], float]] = [(start, 0, (), (source,), 0.0)]
    while queue and (len(found) < k or queue[0][0] <= found[-1].cost + _TINY):
        _, hops, edges, nodes, cost = heapq.heappop(queue)
        here = nodes[-1]
        if here == target:
            found.append(StorePath(nodes, edges, cost))
            continue
        if here not in adjacency:
            adjacency[here] = forward([here])
        work.take(len(adjacency[here]))
        for step in adjacency[here]:
            rest = remaining[max_hops - hops - 1].get(step.neighbour) if hops < max_hops else None
            if rest is not None and step.neighbour not in nodes:
                total = cost + step.cost
                heapq.heappush(queue, (total + rest, hops + 1, (*edges, step.edge), (*nodes, step.neighbour), total))
    return sorted(found, key=lambda path: (round(path.cost, 9), len(path.edges), path.edges))[:k]
