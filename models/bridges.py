"""Hot pairs of topics and the best paths between them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, count

import numpy as np

from models.arrays import Flags, Floats, Longs


def edge_logs(weight: Floats, boost: Floats, eps: float) -> Floats:
    """ln(weight * boost) of each edge, never below ln(eps); NaN where an edge has no weight."""
    return np.log(np.maximum(weight * boost, eps))


def path_score(logs: Sequence[float], penalty: float) -> float:
    """Mean log less `penalty` for each edge after the first; higher is better, 0 is the best there
    is.

    Dividing the sum of logs by the length, as the specification writes it, would reward long paths
    (X-48).
    """
    return math.fsum(logs) / len(logs) - penalty * (len(logs) - 1)


def path_weight(logs: Sequence[float], penalty: float) -> float:
    """The score as a weight in [0, 1]: the geometric mean of the edges, discounted by length."""
    return min(1.0, math.exp(path_score(logs, penalty)))


def path_cost(logs: Sequence[float]) -> float:
    """What cheapest-path searches add up: the sum of -ln(weight * boost)."""
    return max(0.0, -math.fsum(logs))


def bridge_labels(
    weight: Floats,
    tail_topic: Longs,
    head_topic: Longs,
    never: Flags,
    threshold: float,
) -> Flags:
    """Which edges are bridges: heavy enough, of a type that may be one, between two topics
    (requirement X-46).

    A topic of -1 is none, and what has no topic joins none. Given L2 topics the same rule finds the
    strong bridges.
    """
    apart = (tail_topic >= 0) & (head_topic >= 0) & (tail_topic != head_topic)
    labels: Flags = apart & (np.nan_to_num(weight, nan=-1.0) >= threshold) & ~never
    return labels


# The edges of a graph with topics, sorted so that those between two given topics lie side by side.
# A search between two topics reads only the blocks of its region, so its cost and its answer depend
# on nothing else.


@dataclass(frozen=True)
class Blocks:
    """Both directions of every edge. Block i leads from topic `codes[i] // n_topics` to topic
    `codes[i] % n_topics`.

    Its entries stand at `starts[i]:starts[i + 1]`, by tail and head.
    """

    n_topics: int
    codes: Longs
    starts: Longs
    tail: Longs
    head: Longs
    edge: Longs
    log: Floats


@dataclass(frozen=True)
class Region:
    """Topics in which paths are looked for, the two that are to be joined first, and the blocks
    that may be walked.

    `first` and `last` are (n_topics, n_topics) places of entries, equal where there is no block. A
    path leaves the first topic with its first edge and enters the second with its last, so no block
    leads into the first, out of the second, or about within either.
    """

    topics: Longs
    first: Longs
    last: Longs

    def within(self, size: int) -> Region:
        """The same region with only its first topics."""
        cut = slice(size)
        return Region(
            self.topics[cut],
            self.first[cut, cut],
            self.last[cut, cut],
        )


def block_edges(
    tail: Longs,
    head: Longs,
    log: Floats,
    topic: Longs,
    n_topics: int,
) -> Blocks:
    """Arrange edges, whose ends all have a topic; among parallel ones the heaviest stays, then the
    first.
    """
    edge = np.arange(len(tail), dtype=np.int64)
    near = np.concatenate([tail, head])
    far = np.concatenate([head, tail])
    edge = np.concatenate([edge, edge])
    both = np.concatenate([log, log])
    code = topic[near] * n_topics + topic[far]
    order = np.lexsort((edge, -both, far, near, code))
    near = near[order]
    far = far[order]
    new = np.ones(len(near), np.bool_)
    new[1:] = (near[1:] != near[:-1]) | (far[1:] != far[:-1])
    heaviest = order[new]
    codes, starts = np.unique(code[heaviest], return_index=True)
    ends = np.append(starts, len(heaviest)).astype(np.int64)
    return Blocks(
        n_topics,
        codes,
        ends,
        near[new],
        far[new],
        edge[heaviest],
        both[heaviest],
    )


def region_of(blocks: Blocks, topics: Longs) -> Region:
    """The region of these topics."""
    block_codes = topics[:, None] * blocks.n_topics + topics[None, :]
    place = np.searchsorted(blocks.codes, block_codes)
    has_block = np.append(blocks.codes, -1)[place] == block_codes
    has_block[:, 0] = has_block[1, :] = False
    place = np.where(has_block, place, 0)
    first = blocks.starts[place]
    last = np.append(blocks.starts, 0)[place + 1]
    return Region(
        topics,
        np.where(has_block, first, 0),
        np.where(has_block, last, 0),
    )


MIDDLES = 8  # the neighbours of a topic between which it is taken as a middle


@dataclass(frozen=True)
class Heat:
    """Total weight of the bridges between topics: pairs `first[i] < second[i]`, in their order.

    `neighbour` and `strength` list each topic's neighbours at `starts[t]:starts[t + 1]`, strongest
    first.
    """

    n_topics: int
    first: Longs
    second: Longs
    weight: Floats
    starts: Longs
    neighbour: Longs
    strength: Floats

    def of(self, topic: int) -> tuple[Longs, Floats]:
        """A topic's neighbours and how strongly it is joined to each."""
        entries = slice(self.starts[topic], self.starts[topic + 1])
        return self.neighbour[entries], self.strength[entries]


def heat_of(
    tail_topic: Longs,
    head_topic: Longs,
    weight: Floats,
    n_topics: int,
) -> Heat:
    """Add up bridges, given in the order of their keys, between topics."""
    low = np.minimum(tail_topic, head_topic)
    high = np.maximum(tail_topic, head_topic)
    codes, which = np.unique(low * n_topics + high, return_inverse=True)
    total = np.bincount(
        which,
        weights=weight,
        minlength=len(codes),
    ).astype(np.float64)
    first = codes // max(1, n_topics)
    second = codes % max(1, n_topics)
    near = np.concatenate([first, second])
    far = np.concatenate([second, first])
    both = np.concatenate([total, total])
    order = np.lexsort((far, -both, near))
    starts = np.searchsorted(near[order], np.arange(n_topics + 1)).astype(np.int64)
    return Heat(
        n_topics,
        first,
        second,
        total,
        starts,
        far[order],
        both[order],
    )


def hot_pairs(
    heat: Heat,
    near: int,
    far: int,
) -> list[tuple[int, int]]:
    """The `near` most strongly joined pairs, then the `far` strongest of those that only third
    topics join.

    A third topic carries between two of its strongest neighbours what the weaker of its two joints
    has.
    """
    order = np.lexsort((heat.second, heat.first, -heat.weight))[:near]
    joined = heat.first * heat.n_topics + heat.second
    codes, carried = _carry(heat)
    apart = ~np.isin(codes, joined)
    codes = codes[apart]
    carried = carried[apart]
    best = codes[np.lexsort((codes, -carried))[:far]]
    chosen = np.concatenate([joined[order], best])
    return [divmod(code, heat.n_topics) for code in chosen.tolist()]


def pairs_of(
    heat: Heat,
    topic: int,
    limit: int,
) -> list[tuple[int, int]]:
    """A topic with each of its strongest neighbours."""
    return [
        (min(topic, neighbour), max(topic, neighbour))
        for neighbour in heat.of(topic)[0][:limit].tolist()
    ]


def region_topics(
    heat: Heat,
    first: int,
    second: int,
    limit: int,
) -> Longs:
    """The two topics and at most `limit` others that paths may pass: those joined to both, by the
    weaker joint, then those joined to one of them; ties fall to the order of topics.
    """
    joints = heat.of(first), heat.of(second)
    topics = np.union1d(joints[0][0], joints[1][0])
    topics = topics[(topics != first) & (topics != second)]
    weights = np.zeros((2, len(topics)))

    for row, (neighbours, strength) in enumerate(joints):
        is_third = (neighbours != first) & (neighbours != second)
        weights[row, np.searchsorted(topics, neighbours[is_third])] = strength[is_third]

    order = np.lexsort((topics, -weights.max(axis=0), -weights.min(axis=0)))[:limit]
    return np.concatenate([np.array([first, second], np.int64), topics[order]])


def _carry(heat: Heat) -> tuple[Longs, Floats]:
    """Pairs of neighbours of the same topic, each with what all topics together carry between
    them.
    """
    topic = np.repeat(np.arange(heat.n_topics), np.diff(heat.starts))
    rank = np.arange(len(topic)) - heat.starts[topic]
    is_strong = rank < MIDDLES
    neighbours = np.full((heat.n_topics, MIDDLES), -1, np.int64)
    joint = np.zeros((heat.n_topics, MIDDLES))
    places = topic[is_strong], rank[is_strong]
    neighbours[places] = heat.neighbour[is_strong]
    joint[places] = heat.strength[is_strong]
    codes = [np.empty(0, np.int64)]
    weights = [np.empty(0)]

    for stronger, weaker in combinations(range(MIDDLES), 2):
        has_both = neighbours[:, weaker] >= 0
        first = neighbours[has_both, stronger]
        second = neighbours[has_both, weaker]
        codes.append(np.minimum(first, second) * heat.n_topics + np.maximum(first, second))
        weights.append(np.minimum(joint[has_both, stronger], joint[has_both, weaker]))

    pair_codes, which = np.unique(np.concatenate(codes), return_inverse=True)
    totals = np.bincount(
        which,
        weights=np.concatenate(weights),
        minlength=len(pair_codes),
    )
    return pair_codes, totals.astype(np.float64)


# The best loopless paths over a small graph: best first, exact, bounded by work and time. A path is
# worth its mean cost plus a penalty for each edge after the first, or its cost alone; less is
# better. Two passes over the edges. Backwards from the targets: the least cost of a walk of exactly
# r edges from each node into one. Forwards: best-first over (path so far, length in all), each
# bounded by what the first pass says may still come. The bound errs only for walks that would meet
# themselves, so little is expanded in vain, and paths come out in the order of what they are worth,
# whatever their lengths (A*: Hart, Nilsson and Raphael, 1968).
TINY = 1e-9  # values closer than this are equal
_LOOKS_AT_CLOCK = 1024  # entries between two looks


@dataclass(frozen=True)
class Edges:
    """Edges by their near end: those of node i are the entries `starts[i]:starts[i + 1]`."""

    starts: Longs
    heads: Longs
    costs: Floats


@dataclass(frozen=True)
class FoundWay:
    """A path: nodes, the entries between them, and the sum of their costs."""

    nodes: tuple[int, ...]
    entries: tuple[int, ...]
    cost: float


def value_of(
    cost: float,
    hops: int,
    penalty: float | None,
) -> float:
    """What is minimised: the cost; or, with a penalty, the mean cost plus so much for each edge
    after the first.
    """
    if penalty is None:
        return cost
    return cost / hops + penalty * (hops - 1)


def best_ways(
    edges: Edges,
    sources: Iterable[int],
    targets: Longs,
    *,
    k: int,
    max_hops: int,
    penalty: float | None,
    max_work: int,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[list[FoundWay], int, bool]:
    """The k best paths of 1 to `max_hops` edges from any source to any target, and all that tie
    with the last.

    With them the entries looked at, and whether work or time ended the search. When the work is
    short it looks less far, but at one edge always.
    """
    least = np.full((max_hops + 1, len(edges.starts) - 1), np.inf)
    least[0, targets] = 0.0
    tails = np.repeat(np.arange(len(edges.starts) - 1), np.diff(edges.starts))
    work = reach = 0

    while reach < max_hops and (not reach or work + len(tails) <= max_work):
        reach = reach + 1
        work = work + len(tails)
        np.minimum.at(
            least[reach],
            tails,
            edges.costs + least[reach - 1, edges.heads],
        )

    order = count()  # of two that are worth the same the earlier comes first
    queue: list[tuple[float, int, int, float, tuple[int, ...], tuple[int, ...]]] = []
    for source in sources:
        for length in range(1, reach + 1):
            if (best := float(least[length, source])) < np.inf:
                value = value_of(best, length, penalty)
                heapq.heappush(queue, (value, next(order), length, 0.0, (source,), ()))

    paths: list[FoundWay] = []
    last = np.inf
    next_look = work + _LOOKS_AT_CLOCK

    while queue and (len(paths) < k or queue[0][0] <= last + TINY):
        value, _, length, cost, nodes, entries = heapq.heappop(queue)
        if len(entries) == length:
            paths.append(FoundWay(nodes, entries, cost))
            last = value
            continue

        first = int(edges.starts[nodes[-1]])
        end = int(edges.starts[nodes[-1] + 1])
        if work + end - first > max_work and length > 1:
            return paths, work, True

        work += end - first
        remaining_costs = least[length - len(entries) - 1, edges.heads[first:end]]
        for step in np.flatnonzero(remaining_costs < np.inf).tolist():
            node = int(edges.heads[first + step])
            so_far = cost + float(edges.costs[first + step])
            if node not in nodes:
                could = value_of(
                    so_far + float(remaining_costs[step]),
                    length,
                    penalty,
                )
                longer = ((*nodes, node), (*entries, first + step))
                heapq.heappush(queue, (could, next(order), length, so_far, *longer))

        if work >= next_look:
            next_look = work + _LOOKS_AT_CLOCK
            if stop():
                return paths, work, True

    return paths, work, reach < max_hops


@dataclass(frozen=True)
class TopicPath:
    """One path: n + 1 nodes, n edges, as numbers of the arrays that were searched."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]


def best_paths(
    blocks: Blocks,
    region: Region,
    *,
    n_paths: int,
    max_hops: int,
    penalty: float,
    max_work: int,
) -> tuple[list[TopicPath], int]:
    """The `n_paths` best paths of 1 to `max_hops` edges from the region's first topic to its
    second, best first.

    With them how many edges were looked at. When the budget is short it looks less far, but at one
    edge always.
    """
    row, column = np.nonzero(region.last > region.first)
    counts = (region.last - region.first)[row, column]

    if not counts.any():
        return [], 0

    skipped = np.cumsum(counts) - counts
    entries = np.repeat(region.first[row, column] - skipped, counts) + np.arange(int(counts.sum()))
    leaving = np.repeat(row == 0, counts)
    arriving = np.repeat(column == 1, counts)
    nodes, ends = np.unique(
        [blocks.tail[entries], blocks.head[entries]],
        return_inverse=True,
    )
    tail, head = ends.reshape(2, -1)
    order = np.argsort(
        tail * len(nodes) + head, kind="stable"
    )  # fast, because the entries of a block are sorted
    starts = np.searchsorted(tail[order], np.arange(len(nodes) + 1))
    edges = Edges(
        starts,
        head[order],
        -blocks.log[entries][order],
    )
    paths, work, _ = best_ways(
        edges,
        np.unique(tail[leaving]).tolist(),
        np.unique(head[arriving]),
        k=n_paths,
        max_hops=max_hops,
        penalty=penalty,
        max_work=max_work,
    )
    edge = blocks.edge[entries][order]

    topic_paths = []
    for path in paths[:n_paths]:
        path_nodes = nodes[list(path.nodes)]
        path_edges = edge[list(path.entries)]
        topic_paths.append(TopicPath(tuple(path_nodes.tolist()), tuple(path_edges.tolist())))

    return topic_paths, work
