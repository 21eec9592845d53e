"""The k cheapest loopless paths between two nodes, and the M best among the seeds of a candidate graph.

Cost and score both come from -ln(weight x boost), so a strong edge is a short one (X-49). The score of a path is the
mean log weight less a penalty for each edge after the first; dividing a sum of logs by length instead would reward
long paths (X-48). Lengths are 1 to L: a direct edge is a path (X-47).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hades.ports.graph import Numbers
from hades.retrieval.channels.narrow_topics import CandidateGraph
from hades.retrieval.ranking.relevance import ANY
from hades.retrieval.turn.types import OPEN, FoundPath, Seed
from hades.retrieval.walks.best_first_search import Value, best_paths, least_costs
from hades.retrieval.walks.local_graph import Costs, LocalGraph, among, around
from hades.settings.hirag import PathSettings
from schemas.intervals import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.turn.metered_view import MeteredView

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
    eps: float = 1e-6,
    direction: Direction = ANY,
    mask: Mask = OPEN,
    max_work: int = MAX_WORK,
) -> tuple[FoundPath, ...]:
    """At most k paths of 1 to `max_hops` edges, cheapest first, then fewest edges, then by edge; `score` is -cost."""
    if source == target:
        return ()
    graph = around(view, source, target, max_hops, Costs(boosts, eps), direction=direction, mask=mask)
    ends = np.array([source], np.int64)
    found = list(_search(view, graph, ends, target, k, max_hops, None, max_work))
    return tuple(_rank(found)[:k])


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
    direction: Direction = ANY,
    max_work: int = MAX_WORK,
) -> BestPaths:
    """The M best paths of 1 to L edges that join two seeds inside the candidate graph (C35, C37, C47).

    Without seeds, the candidates of highest hscore stand in. The bridge cache is asked first; a pair it joins is not
    searched again.
    """
    wanted = sorted(seeds, key=lambda seed: (-seed.score, seed.node))
    ends = np.array([seed.node for seed in wanted] or candidate_graph.nodes[:ENDS].tolist(), np.int64)
    settled = {str(relation): boost for relation, boost in rules.relation_boost.items()}
    boosts = settled if relation_boosts is None else relation_boosts
    costs = Costs(boosts, rules.eps)
    # Bridges were computed from the weights as they stand now and with the boosts of the settings.
    usable = mask.is_open and dict(boosts) == settled
    bridged = _bridges(view, candidate_graph, ends, M, L, rules.length_penalty) if usable and len(ends) else []
    joined = {frozenset((path.nodes[0], path.nodes[-1])) for path in bridged}
    within = np.concatenate([candidate_graph.nodes, ends]) if L > 1 else ends  # one edge leads past no other node
    graph = among(view, within, costs, direction=direction, mask=mask)
    found = list(bridged)
    for place, target in enumerate(ends.tolist()):
        if view.turn.expired():
            break
        # Both ways are one path where edges are followed both ways, so each pair is searched once.
        others = ends[:place] if direction == ANY else np.delete(ends, place)
        sources = np.array([one for one in others.tolist() if frozenset((one, target)) not in joined], np.int64)
        if len(sources):
            found += _search(view, graph, sources, target, M, L, rules.length_penalty, max_work)
    kept = _rank(found)[:M]
    return BestPaths(tuple(kept), sum(path.origin == "bridge" for path in kept))


def _bridges(
    view: MeteredView, candidates: CandidateGraph, ends: Numbers, limit: int, max_hops: int, length_penalty: float
) -> list[FoundPath]:
    """Paths computed ahead between the topics of the ends, where they begin and end among the candidates.

    A bridge is a document, so each is a read: no more are asked for than paths are wanted.
    """
    topics = np.unique(view.clusters_of(ends))
    topics = topics[topics >= 0]
    if not len(topics):
        return []
    known = {*candidates.nodes.tolist(), *ends.tolist()}
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
    sources: Numbers,
    target: int,
    k: int,
    max_hops: int,
    length_penalty: float | None,
    max_work: int,
) -> Iterator[FoundPath]:
    """Paths of a local graph to one target; by cost without a penalty, else by score."""
    end = graph.local(target)
    starts = [place for place in map(graph.local, sources.tolist()) if place is not None]
    first_look = max_hops * len(graph.heads)
    limit = min(max_work, view.turn.work_left) - first_look
    if end is None or not starts:
        return
    if limit <= 0:
        view.turn.worked(0, capped=True)
        return
    least = least_costs(graph, end, max_hops)
    found = best_paths(graph, starts, end, least, k, Value(length_penalty), limit, view.turn.expired)
    view.turn.worked(first_look + found.work, capped=found.capped)
    for taken, cost in found.paths:
        entries = np.array(taken, np.int64)
        yield FoundPath(
            (_tail(graph, taken[0]), *graph.numbers[graph.heads[entries]].tolist()),
            tuple(graph.edges[entries].tolist()),
            tuple(graph.outbound[entries].tolist()),
            -cost if length_penalty is None else path_score(cost, len(taken), length_penalty),
            origin="cheapest",
            why=f"cost {cost:.3f} over {len(taken)} edges",
        )


def _tail(graph: LocalGraph, entry: int) -> int:
    """The node in whose row an entry stands."""
    return int(graph.numbers[np.searchsorted(graph.starts, entry, side="right") - 1])


def _rank(paths: Sequence[FoundPath]) -> list[FoundPath]:
    """Best first, then fewest edges, then by edge; a path that came twice stands once."""
    ordered = sorted(paths, key=lambda path: (-round(path.score, 9), len(path.edges), path.edges))
    return list({path.edges: path for path in reversed(ordered)}.values())[::-1]
