"""The flow of `flow_kernel` where the adjacency is not in memory: one question to the view a hop, equal results."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hades.ports.graph import Numbers
from hades.retrieval.ranking.relevance import Floats
from hades.retrieval.walks.flow_kernel import Spread
from schemas.intervals import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.turn.metered_view import MeteredView


@dataclass(frozen=True)
class _Row:
    """Edges of a node that flow may take, heaviest first, and the sum of their weights."""

    targets: list[int]
    edges: list[int]
    outbound: list[bool]
    weights: list[float]
    total: float


@dataclass(frozen=True)
class _Walk:
    turn: int  # which source it came from
    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    outbound: tuple[bool, ...]
    flows: tuple[float, ...]

    @property
    def carried(self) -> float:
        return self.flows[-1] if self.flows else 1.0


def spread_by_expand(
    view: MeteredView,
    sources: Numbers,
    shares: Floats,
    targets: Numbers,
    *,
    gains: Floats,
    direction: Direction,
    within: Numbers | None,
    mask: Mask,
    alpha: float,
    theta: float,
    max_hops: int,
    splits: bool,
) -> Spread:
    """See `flow_kernel.spread`. The view counts the work, and ends it where the turn's budget does."""
    rows: dict[int, _Row] = {}
    ends, allowed = set(targets.tolist()), None if within is None else set(within.tolist())
    arrived: dict[int, float] = defaultdict(float)
    found: list[_Walk] = []
    frontier = [_Walk(turn, (source,), (), (), ()) for turn, source in enumerate(sources.tolist())]
    for depth in range(max_hops):
        if view.turn.expired():
            break
        frontier = [walk for walk in frontier if walk.carried * alpha >= theta or not splits]
        _fetch(view, frontier, rows, gains, direction, mask)
        grown: list[_Walk] = []
        for walk in frontier:
            row = rows.get(walk.nodes[-1])
            if row is None or row.total <= 0.0:
                continue
            scale = walk.carried * alpha / row.total if splits else walk.carried * alpha**depth
            for target, edge, outward, weight in zip(row.targets, row.edges, row.outbound, row.weights, strict=True):
                flow = scale * weight
                if flow >= theta and flow > 0.0 and target not in walk.nodes and (allowed is None or target in allowed):
                    arrived[target] += flow * shares[walk.turn]
                    grown.append(
                        _Walk(
                            walk.turn,
                            (*walk.nodes, target),
                            (*walk.edges, edge),
                            (*walk.outbound, outward),
                            (*walk.flows, flow),
                        )
                    )
        found += [walk for walk in grown if walk.nodes[-1] in ends]
        frontier = grown
    return _pack(found, arrived, max_hops, len(sources))


def _fetch(
    view: MeteredView,
    frontier: list[_Walk],
    rows: dict[int, _Row],
    gains: Floats,
    direction: Direction,
    mask: Mask,
) -> None:
    """The rows of the nodes walks stand on, those that carry most first; a row the budget cut is left out."""
    carried: dict[int, float] = defaultdict(float)
    for walk in frontier:
        if walk.nodes[-1] not in rows:
            carried[walk.nodes[-1]] = max(carried[walk.nodes[-1]], walk.carried)
    asked = sorted(carried, key=lambda node: (-carried[node], node))
    if not asked:
        return
    types = [name for name, gain in zip(view.type_names, gains.tolist(), strict=True) if gain > 0.0]
    found = view.expand(np.array(asked, np.int64), direction=direction, types=types, mask=mask)
    complete = len(asked) if not found.capped else int(found.row.max(initial=0))
    weights = np.clip(found.weight.astype(np.float64), 0.0, 1.0) * gains[found.type]
    for place, node in enumerate(asked[:complete]):
        own = np.flatnonzero((found.row == place) & (found.target != node))
        rows[node] = _Row(
            found.target[own].tolist(),
            found.edge[own].tolist(),
            found.outbound[own].tolist(),
            weights[own].tolist(),
            float(weights[own].sum()),
        )


def _pack(found: list[_Walk], arrived: dict[int, float], max_hops: int, n_sources: int) -> Spread:
    nodes, edges = np.zeros((len(found), max_hops + 1), np.int64), np.zeros((len(found), max_hops), np.int64)
    outbound, flows = np.zeros((len(found), max_hops), np.bool_), np.zeros((len(found), max_hops))
    for row, walk in enumerate(found):
        nodes[row, : len(walk.nodes)] = walk.nodes
        edges[row, : len(walk.edges)] = walk.edges
        outbound[row, : len(walk.edges)] = walk.outbound
        flows[row, : len(walk.edges)] = walk.flows
    length = np.array([len(walk.edges) for walk in found], np.int64)
    reached = np.array(sorted(arrived), np.int64)
    resource = np.array([arrived[node] for node in sorted(arrived)], np.float64)
    return Spread(nodes, edges, outbound, flows, length, reached, resource, n_sources, 0, False)
