"""A few hundred nodes and the edges among them, cut out of a view and renumbered, with the cost of each edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Expansion, Flags, Numbers
from hades.retrieval.ranking.relevance import ANY, IN, OUT, PATH_TYPES, Floats, distinct, gains
from hades.retrieval.turn.cut_results import keep_targets
from schemas.intervals import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.turn.metered_view import MeteredView

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


@dataclass(frozen=True)
class Costs:
    """What an edge costs: -ln(max(weight x boost, eps)), never below 0 (X-49)."""

    boosts: Mapping[str, float] | None = None
    eps: float = 1e-6

    def of(self, found: Expansion, type_names: Sequence[str]) -> Floats:
        """The cost of each edge found."""
        boosted = np.clip(found.weight.astype(np.float64), 0.0, 1.0) * gains(type_names, self.boosts)[found.type]
        costs: Floats = -np.log(np.clip(boosted, self.eps, 1.0))
        return costs


def among(view: MeteredView, nodes: Numbers, costs: Costs, *, direction: Direction, mask: Mask) -> LocalGraph:
    """The edges that join these nodes to each other."""
    numbers = distinct(nodes)
    found = view.expand(numbers, direction=direction, types=PATH_TYPES, fanout=LOOK, mask=mask)
    local = np.full(1 + max(numbers.max(initial=-1), found.target.max(initial=-1)), -1, np.int64)
    local[numbers] = np.arange(len(numbers))
    kept = keep_targets(found, local[found.target] >= 0, None)
    heads, edge_costs = local[kept.target], costs.of(kept, view.type_names)
    return _cut(kept.row, heads, kept.edge, kept.outbound, edge_costs, numbers)


def around(
    view: MeteredView, source: int, target: int, max_hops: int, costs: Costs, *, direction: Direction, mask: Mask
) -> LocalGraph:
    """Every edge of every path of at most `max_hops` edges from source to target, found from both ends.

    Half the hops are taken from each side: two small balls instead of one large one.
    """
    from_target = {OUT: IN, IN: OUT, ANY: ANY}[direction]
    forward = _ball(view, source, (max_hops + 1) // 2, costs, direction, mask)
    backward = _ball(view, target, max_hops // 2, costs, from_target, mask)
    tails, heads = np.concatenate([forward[0], backward[1]]), np.concatenate([forward[1], backward[0]])
    edges, outbound = np.concatenate([forward[2], backward[2]]), np.concatenate([forward[3], ~backward[3]])
    values = np.concatenate([forward[4], backward[4]])
    _, first = np.unique(np.stack([tails, heads, edges]), axis=1, return_index=True)
    ends = np.array([source, target], np.int64)
    numbers = np.union1d(ends, np.union1d(tails, heads))
    local_tails, local_heads = np.searchsorted(numbers, tails[first]), np.searchsorted(numbers, heads[first])
    return _cut(local_tails, local_heads, edges[first], outbound[first], values[first], numbers)


_Edges = tuple[Numbers, Numbers, Numbers, Flags, Floats]


def _ball(view: MeteredView, centre: int, radius: int, costs: Costs, direction: Direction, mask: Mask) -> _Edges:
    """Edges as near end, far end, handle, direction and cost, up to a number of steps from a node."""
    seen, frontier = np.array([centre], np.int64), np.array([centre], np.int64)
    parts: list[_Edges] = []
    for _ in range(radius):
        if not len(frontier) or view.turn.expired():
            break
        found = view.expand(frontier, direction=direction, types=PATH_TYPES, mask=mask)
        near = frontier[found.row]
        parts.append((near, found.target, found.edge, found.outbound, costs.of(found, view.type_names)))
        frontier = np.setdiff1d(found.target, seen)
        seen = np.union1d(seen, frontier)
    empty: _Edges = (
        np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0)
    )  # fmt: skip
    columns = list(zip(empty, *parts, strict=True))
    near, far, edges = (np.concatenate(columns[place]) for place in range(3))
    return near, far, edges, np.concatenate(columns[3]), np.concatenate(columns[4])


def _cut(
    tails: Numbers, heads: Numbers, edges: Numbers, outbound: Flags, costs: Floats, numbers: Numbers
) -> LocalGraph:
    """The rows of a graph from the local numbers of both ends of each edge."""
    order: NDArray[np.int64] = np.lexsort((edges, costs, tails))
    starts = np.searchsorted(tails[order], np.arange(len(numbers) + 1))
    return LocalGraph(numbers, starts, heads[order], edges[order], outbound[order], costs[order])
