"""K cheapest loopless paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
# edges of one candidate that are compared, heaviest first; an edge is found from either end
LOOK = 256


@dataclass(frozen=True)
class LocalGraph:
    """Rows of edges by local number: those of node i stand at `starts[i]:starts[i + 1]`;
    `numbers[i]` is its own.
    """

    numbers: Numbers
    starts: Numbers
    heads: Numbers
    edges: Numbers
    outbound: Flags
    costs: Floats

    def local(self, number: int) -> int | None:
        """The local number of a node, None where it is not here."""
        place = int(np.searchsorted(self.numbers, number))
        if place < len(self.numbers) and int(self.numbers[place]) == number:
            return place

        return None


def among(
    view: MeteredView,
    nodes: Numbers,
    boosts: Mapping[str, float] | None,
    eps: float,
    *,
    mask: Mask,
    fanout: int | None = LOOK,
) -> LocalGraph:
    """The edges that join these nodes to each other; of a node the `fanout` heaviest, found from
    either end.

    An edge costs -ln(max(weight x boost, eps)), never below 0 (X-49).
    """
    numbers = np.unique(nodes)
    expansion = view.expand(
        numbers,
        direction=ANY,
        types=PATH_TYPES,
        fanout=fanout,
        mask=mask,
    )
    local = np.full(
        1 + max(numbers.max(initial=-1), expansion.target.max(initial=-1)),
        -1,
        np.int64,
    )
    local[numbers] = np.arange(len(numbers))
    joining = keep_targets(
        expansion,
        local[expansion.target] >= 0,
        None,
    )
    weights = np.clip(joining.weight.astype(np.float64), 0.0, 1.0)
    boosted = weights * gains(view.type_names, boosts)[joining.type]
    costs = -np.log(np.clip(boosted, eps, 1.0))
    order: NDArray[np.int64] = np.lexsort((joining.edge, costs, joining.row))
    starts = np.searchsorted(joining.row[order], np.arange(len(numbers) + 1))
    heads = local[joining.target[order]]
    return LocalGraph(
        numbers,
        starts,
        heads,
        joining.edge[order],
        joining.outbound[order],
        costs[order],
    )


def _ball(
    view: MeteredView,
    centre: int,
    radius: int,
    mask: Mask,
) -> Numbers:
    """The nodes up to a number of steps from a node."""
    ball = frontier = np.array([centre], np.int64)
    for _ in range(radius):
        if not len(frontier) or view.turn.expired():
            break

        expansion = view.expand(
            frontier,
            direction=ANY,
            types=PATH_TYPES,
            mask=mask,
        )
        frontier = np.setdiff1d(expansion.target, ball)
        ball = np.union1d(ball, frontier)

    return ball


# The k cheapest loopless paths between two nodes, and the M best among the seeds of a candidate
# graph. Cost and score both come from -ln(weight x boost), so a strong edge is a short one.
# The score of a path is the mean log weight less a penalty for each edge after the first; dividing
# a sum of logs by length instead would reward long paths. Lengths are 1 to L: a direct edge
# is a path.
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
    """At most k paths of 1 to `max_hops` edges, cheapest first, then fewest edges, then by edge;
    `score` is -cost.
    """
    if source == target:
        return ()

    # Half the hops are taken from each side: two small balls instead of one large one.
    near = _ball(view, source, (max_hops + 1) // 2, mask)
    far = _ball(view, target, max_hops // 2, mask)
    graph = among(
        view,
        np.concatenate([near, far]),
        boosts,
        EPS,
        mask=mask,
        fanout=None,
    )
    paths = _search(
        view,
        graph,
        [source],
        target,
        k=k,
        max_hops=max_hops,
        length_penalty=None,
    )
    return tuple(_rank(paths)[:k])


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
    """The M best paths of 1 to L edges that join two seeds inside the candidate graph (C35, C37,
    C47).

    Without seeds, the candidates of highest hscore stand in. The bridge cache is asked first; a
    pair it joins is not searched again.
    """
    ends = candidate_graph.nodes[:ENDS]
    if seeds:
        ranked_seeds = sorted(seeds, key=lambda seed: (-seed.score, seed.node))
        ends = np.array([seed.node for seed in ranked_seeds], np.int64)

    settled = {str(relation): boost for relation, boost in rules.relation_boost.items()}
    boosts = settled if relation_boosts is None else relation_boosts
    # Bridges were computed from the weights as they stand now and with the boosts of the settings.
    usable = mask.is_open and dict(boosts) == settled
    bridged = _bridges(view, ends, M, L, rules.length_penalty) if usable and len(ends) else []
    joined = {frozenset((path.nodes[0], path.nodes[-1])) for path in bridged}
    # One edge leads past no other node.
    nodes = np.concatenate([candidate_graph.nodes, ends]) if L > 1 else ends
    graph = among(view, nodes, boosts, rules.eps, mask=mask)
    paths = list(bridged)

    for place, target in enumerate(ends.tolist()):
        if view.turn.expired():
            break

        # Both ways are one path, so each pair is searched once.
        sources = [
            source for source in ends[:place].tolist() if frozenset((source, target)) not in joined
        ]
        paths += _search(
            view,
            graph,
            sources,
            target,
            k=M,
            max_hops=L,
            length_penalty=rules.length_penalty,
        )

    best = _rank(paths)[:M]
    return StepResult(
        tuple(best),
        bridges=sum(path.origin == "bridge" for path in best),
    )


def _bridges(
    view: MeteredView,
    ends: Numbers,
    limit: int,
    max_hops: int,
    length_penalty: float,
) -> list[FoundPath]:
    """Paths computed ahead between the topics of the ends, where they join two of the ends.

    A bridge is a document, so each is a read: no more are asked for than paths are wanted.
    """
    topics = np.unique(view.clusters_of(ends))
    topics = topics[topics >= 0]

    if not len(topics):
        return []

    known = set(ends.tolist())
    paths = []
    for bridge in view.bridges(topics, topics, limit=limit):
        length = len(bridge.edges)
        if not 1 <= length <= max_hops or not {bridge.nodes[0], bridge.nodes[-1]} <= known:
            continue

        score = -value_of(bridge.cost, length, length_penalty)
        why = f"bridge between topics, cost {bridge.cost:.3f} over {length} edges"
        paths.append(
            FoundPath(
                bridge.nodes,
                bridge.edges,
                bridge.outbound,
                score,
                origin="bridge",
                why=why,
            )
        )

    return paths


def _search(
    view: MeteredView,
    graph: LocalGraph,
    sources: Sequence[int],
    target: int,
    *,
    k: int,
    max_hops: int,
    length_penalty: float | None,
) -> Iterator[FoundPath]:
    """Paths of a local graph to one target; by cost without a penalty, else by score."""
    end = graph.local(target)

    starts = []
    for place in map(graph.local, sources):
        if place is not None and place != end:
            starts.append(place)

    limit = min(MAX_WORK, view.turn.work_left)
    if end is None or not starts:
        return

    if limit < 2 * len(graph.heads):
        view.turn.count_work(0, capped=True)
        return

    ways, work, capped = best_ways(
        Edges(graph.starts, graph.heads, graph.costs),
        starts,
        np.array([end]),
        k=k,
        max_hops=max_hops,
        penalty=length_penalty,
        max_work=limit,
        stop=view.turn.expired,
    )
    view.turn.count_work(work, capped=capped)
    for path in ways:
        entries = np.array(path.entries, np.int64)
        nodes = tuple(graph.numbers[list(path.nodes)].tolist())
        edges = tuple(graph.edges[entries].tolist())
        outbound = tuple(graph.outbound[entries].tolist())
        score = -value_of(path.cost, len(entries), length_penalty)
        why = f"cost {path.cost:.3f} over {len(entries)} edges"
        yield FoundPath(
            nodes,
            edges,
            outbound,
            score,
            origin="cheapest",
            why=why,
        )


def _rank(paths: Iterable[FoundPath]) -> list[FoundPath]:
    """Best first, then fewest edges, then by edge; a path that came twice stands once."""
    return distinct_paths(
        sorted(
            paths,
            key=lambda path: (-round(path.score, 9), len(path.edges), path.edges),
        )
    )
