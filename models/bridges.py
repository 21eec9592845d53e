"""Hot pairs of topics and the best paths between them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numba
import numpy as np
from numpy.typing import NDArray

# What an edge and a path are worth, and which edges are bridges. A path scores the mean log of its edges less a
# penalty for every edge after the first (requirement X-48): dividing the sum of logs by the length, as the
# specification writes it, would reward long paths.


Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]


def edge_logs(weight: Floats, boost: Floats, eps: float) -> Floats:
    """ln(weight * boost) of each edge, never below ln(eps); NaN where an edge has no weight."""
    return np.log(np.maximum(weight * boost, eps))


def path_score(logs: Sequence[float], penalty: float) -> float:
    """Mean log less `penalty` for each edge after the first; higher is better, 0 is the best there is."""
    return math.fsum(logs) / len(logs) - penalty * (len(logs) - 1)


def path_weight(logs: Sequence[float], penalty: float) -> float:
    """The score as a weight in [0, 1]: the geometric mean of the edges, discounted by length."""
    return min(1.0, math.exp(path_score(logs, penalty)))


def path_cost(logs: Sequence[float]) -> float:
    """What cheapest-path searches add up: the sum of -ln(weight * boost)."""
    return max(0.0, -math.fsum(logs))


def bridge_labels(weight: Floats, tail_topic: Longs, head_topic: Longs, never: Flags, threshold: float) -> Flags:
    """Which edges are bridges: heavy enough, of a type that may be one, between two topics (requirement X-46).

    A topic of -1 is none, and what has no topic joins none. Given L2 topics the same rule finds the strong bridges.
    """
    apart = (tail_topic >= 0) & (head_topic >= 0) & (tail_topic != head_topic)
    labels: Flags = apart & (np.nan_to_num(weight, nan=-1.0) >= threshold) & ~never
    return labels


# The edges of a graph with topics, sorted so that those between two given topics lie side by side. A search between
# two topics reads only the blocks of its region, so its cost and its answer depend on nothing else. That makes the
# answer reusable: while the digest of a region stays, searching it again would find the same.


Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class Blocks:
    """Both directions of every edge. Block i leads from topic `codes[i] // n_topics` to topic `codes[i] % n_topics`.

    Its entries stand at `starts[i]:starts[i + 1]`, by tail and head; `digests[i]` changes when one of them does.
    """

    n_topics: int
    codes: Longs
    starts: Longs
    tail: Longs
    head: Longs
    edge: Longs
    log: Floats
    digests: Hashes


@dataclass(frozen=True)
class Region:
    """Topics in which paths are looked for, the two that are to be joined first, and the blocks that may be walked.

    `first` and `last` are (n_topics, n_topics) places of entries, equal where there is no block. A path leaves the
    first topic with its first edge and enters the second with its last, so no block leads into the first, out of the
    second, or about within either.
    """

    topics: Longs
    first: Longs
    last: Longs
    digests: Hashes

    def within(self, size: int) -> Region:
        """The same region with only its first topics."""
        cut = slice(size)
        return Region(self.topics[cut], self.first[cut, cut], self.last[cut, cut], self.digests[cut, cut])


def block_edges(tail: Longs, head: Longs, log: Floats, keys: Hashes, topic: Longs, n_topics: int) -> Blocks:
    """Arrange edges, given in the order of their keys; among parallel ones the heaviest stays, then the first.

    Every end has a topic. `keys` are hashes of the edges' keys: with the log they say what an entry is.
    """
    edge = np.arange(len(tail), dtype=np.int64)
    near, far = np.concatenate([tail, head]), np.concatenate([head, tail])
    edge, both = np.concatenate([edge, edge]), np.concatenate([log, log])
    code = topic[near] * n_topics + topic[far]
    order = np.lexsort((edge, -both, far, near, code))
    near, far = near[order], far[order]
    new = np.ones(len(near), np.bool_)
    new[1:] = (near[1:] != near[:-1]) | (far[1:] != far[:-1])
    kept = order[new]
    codes, starts = np.unique(code[kept], return_index=True)
    hashes = _mix(keys[edge[kept]] ^ both[kept].view(np.uint64))
    digests = np.add.reduceat(hashes, starts) if len(starts) else np.empty(0, np.uint64)
    ends = np.append(starts, len(kept)).astype(np.int64)
    return Blocks(n_topics, codes, ends, near[new], far[new], edge[kept], both[kept], digests)


def region_of(blocks: Blocks, topics: Longs) -> Region:
    """The region of these topics."""
    wanted = topics[:, None] * blocks.n_topics + topics[None, :]
    place = np.searchsorted(blocks.codes, wanted)
    there = np.append(blocks.codes, -1)[place] == wanted
    there[:, 0] = there[1, :] = False
    place = np.where(there, place, 0)
    first, last = blocks.starts[place], np.append(blocks.starts, 0)[place + 1]
    digests = np.append(blocks.digests, np.uint64(0))[place]
    return Region(topics, np.where(there, first, 0), np.where(there, last, 0), np.where(there, digests, np.uint64(0)))


def hash_texts(ends: Longs, text: NDArray[np.uint8]) -> Hashes:
    """FNV-1a of each text, where text i is `text[ends[i]:ends[i + 1]]`; the same on every machine."""
    hashes: Hashes = np.full(len(ends) - 1, 0xCBF29CE484222325, np.uint64)
    sizes, begins = np.diff(ends), ends[:-1]
    for place in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > place)
        hashes[rows] = (hashes[rows] ^ text[begins[rows] + place]) * np.uint64(0x100000001B3)
    return hashes


def _mix(values: Hashes) -> Hashes:
    """Splitmix64: spreads every bit over all of them, so that sums of mixed values tell sets apart."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


# Which pairs of topics are hot, and through which other topics a path between two of them may lead.


MIDDLES = 8  # the neighbours of a topic between which it is taken as a middle


@dataclass(frozen=True)
class Heat:
    """Total weight of the bridges between topics: pairs `first[i] < second[i]`, in their order.

    `neighbour` and `strength` list each topic's neighbours at `starts[t]:starts[t + 1]`, strongest first.
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
        mine = slice(self.starts[topic], self.starts[topic + 1])
        return self.neighbour[mine], self.strength[mine]


def heat_of(tail_topic: Longs, head_topic: Longs, weight: Floats, n_topics: int) -> Heat:
    """Add up bridges, given in the order of their keys, between topics."""
    low, high = np.minimum(tail_topic, head_topic), np.maximum(tail_topic, head_topic)
    codes, which = np.unique(low * n_topics + high, return_inverse=True)
    total = np.bincount(which, weights=weight, minlength=len(codes)).astype(np.float64)
    first, second = codes // max(1, n_topics), codes % max(1, n_topics)
    near, far = np.concatenate([first, second]), np.concatenate([second, first])
    both = np.concatenate([total, total])
    order = np.lexsort((far, -both, near))
    starts = np.searchsorted(near[order], np.arange(n_topics + 1)).astype(np.int64)
    return Heat(n_topics, first, second, total, starts, far[order], both[order])


def hot_pairs(heat: Heat, near: int, far: int) -> list[tuple[int, int]]:
    """The `near` most strongly joined pairs, then the `far` strongest of those that only third topics join.

    A third topic carries between two of its strongest neighbours what the weaker of its two joints has.
    """
    order = np.lexsort((heat.second, heat.first, -heat.weight))[:near]
    joined = heat.first * heat.n_topics + heat.second
    codes, carried = _carry(heat)
    apart = ~np.isin(codes, joined)
    codes, carried = codes[apart], carried[apart]
    best = codes[np.lexsort((codes, -carried))[:far]]
    chosen = np.concatenate([joined[order], best])
    return [divmod(code, heat.n_topics) for code in chosen.tolist()]


def pairs_of(heat: Heat, topic: int, limit: int) -> list[tuple[int, int]]:
    """A topic with each of its strongest neighbours."""
    return [(min(topic, other), max(topic, other)) for other in heat.of(topic)[0][:limit].tolist()]


def region_topics(heat: Heat, first: int, second: int, limit: int) -> Longs:
    """The two topics and at most `limit` others that paths may pass: those joined to both, by the weaker joint, then
    those joined to one of them; ties fall to the order of topics."""
    (left, left_weight), (right, right_weight) = heat.of(first), heat.of(second)
    topics = np.union1d(left, right)
    topics = topics[(topics != first) & (topics != second)]
    weights = np.zeros((2, len(topics)))
    for row, (others, strength) in enumerate(((left, left_weight), (right, right_weight))):
        kept = (others != first) & (others != second)
        weights[row, np.searchsorted(topics, others[kept])] = strength[kept]
    order = np.lexsort((topics, -weights.max(axis=0), -weights.min(axis=0)))[:limit]
    return np.concatenate([np.array([first, second], np.int64), topics[order]])


def _carry(heat: Heat) -> tuple[Longs, Floats]:
    """Pairs of neighbours of the same topic, each with what all topics together carry between them."""
    topic = np.repeat(np.arange(heat.n_topics), np.diff(heat.starts))
    rank = np.arange(len(topic)) - heat.starts[topic]
    kept = rank < MIDDLES
    beside = np.full((heat.n_topics, MIDDLES), -1, np.int64)
    joint = np.zeros((heat.n_topics, MIDDLES))
    beside[topic[kept], rank[kept]], joint[topic[kept], rank[kept]] = heat.neighbour[kept], heat.strength[kept]
    codes, weights = [np.empty(0, np.int64)], [np.empty(0)]
    for left, right in combinations(range(MIDDLES), 2):
        both = beside[:, right] >= 0
        one, two = beside[both, left], beside[both, right]
        codes.append(np.minimum(one, two) * heat.n_topics + np.maximum(one, two))
        weights.append(np.minimum(joint[both, left], joint[both, right]))
    found, which = np.unique(np.concatenate(codes), return_inverse=True)
    return found, np.bincount(which, weights=np.concatenate(weights), minlength=len(found)).astype(np.float64)


# The search of `models/bridges.py` without the compiler: the same steps in the same order, same
# numbers. Loading compiled code takes more than a second of processor time. For a few pairs of topics the
# interpreter is done before that.


Found = tuple[Longs, Longs, Longs, int, bool]


def search_paths(
    starts: Longs,
    head: Longs,
    log: Floats,
    sources: Longs,
    is_target: NDArray[np.bool_],
    n_paths: int,
    max_hops: int,
    penalty: float,
    max_work: int,
) -> Found:
    """Nodes, entries and lengths of the paths found, the entries looked at, and whether the budget ended it."""
    levels, work, capped = _walk_back(starts, head, log, is_target, max_hops, max_work)
    search = _Search([level.tolist() for level in levels], penalty)
    search.begin(sources.tolist())
    begins, heads, logs = starts.tolist(), head.tolist(), log.tolist()
    found: list[int] = []
    while search.queue and len(found) < n_paths:
        state = heapq.heappop(search.queue)[1]
        if search.depth[state] == search.length[state]:
            found.append(state)
            continue
        first, last = begins[search.node[state]], begins[search.node[state] + 1]
        if work + last - first > max_work and search.length[state] > 1:
            capped = True
            break
        work += last - first
        search.expand(state, first, heads[first:last], logs[first:last])
    nodes, via = np.full((len(found), max_hops + 1), -1), np.full((len(found), max_hops), -1)
    for place, state in enumerate(found):
        walk, entries = search.trace(state)
        nodes[place, : len(walk)], via[place, : len(entries)] = walk, entries
    return nodes, via, np.array([search.length[state] for state in found], np.int64), work, capped


def _walk_back(
    starts: Longs, head: Longs, log: Floats, is_target: NDArray[np.bool_], max_hops: int, max_work: int
) -> tuple[list[Floats], int, bool]:
    """The heaviest walk of exactly r edges from each node into the target, for r from 0; the work; if it was cut."""
    work, levels = 0, [np.where(is_target, 0.0, -np.inf)]
    tail = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    for r in range(1, max_hops + 1):
        if r > 1 and work + len(head) > max_work:
            return levels, work, True
        work += len(head)
        level = np.full(len(starts) - 1, -np.inf)
        np.maximum.at(level, tail, log + levels[-1][head])
        levels.append(level)
    return levels, work, False


class _Search:
    """States of the best-first search; the first is no state. `ahead[r]` is by node what r more edges may bring."""

    def __init__(self, ahead: list[list[float]], penalty: float) -> None:
        self.ahead, self.penalty = ahead, penalty
        self.queue: list[tuple[float, int]] = []
        self.before, self.node, self.by, self.depth, self.length = [0], [0], [0], [0], [0]
        self.so_far = [0.0]

    def begin(self, sources: Sequence[int]) -> None:
        """One state a source and a length that a walk from it can have."""
        for source in sources:
            for n in range(1, len(self.ahead)):
                if self.ahead[n][source] > -np.inf:
                    self._push(self.ahead[n][source], n, (0, source, -1, 0, 0.0))

    def expand(self, state: int, first: int, heads: Sequence[int], logs: Sequence[float]) -> None:
        """The states one entry further, those left out that would meet themselves or lead nowhere."""
        n, depth = self.length[state], self.depth[state] + 1
        ahead = self.ahead[n - depth]
        walk = set(self.trace(state)[0])
        for place, (target, weight) in enumerate(zip(heads, logs, strict=True)):
            if ahead[target] == -np.inf or target in walk:
                continue
            total = self.so_far[state] + weight
            self._push(total + ahead[target], n, (state, target, first + place, depth, total))

    def trace(self, state: int) -> tuple[list[int], list[int]]:
        """Nodes and entries of the walk that ends in a state, from its source."""
        nodes, entries = [], []
        while state:
            nodes.append(self.node[state])
            entries.append(self.by[state])
            state = self.before[state]
        return nodes[::-1], entries[-2::-1]

    def _push(self, bound: float, n: int, told: tuple[int, int, int, int, float]) -> None:
        heapq.heappush(self.queue, (-(bound / n - self.penalty * (n - 1)), len(self.node)))
        before, node, by, depth, so_far = told
        self.before.append(before)
        self.node.append(node)
        self.by.append(by)
        self.depth.append(depth)
        self.length.append(n)
        self.so_far.append(so_far)


# The best few loopless paths between two topics, exactly, within a budget of edges looked at. Two passes over the
# edges of a region. Backwards from the far topic: the heaviest walk of exactly r edges from each node into it.
# Forwards: best-first over (path so far, length in all), each bounded by what the first pass says may still come.
# The bound errs only for walks that would meet themselves, so little is expanded in vain, and paths come out in the
# order of their score whatever their lengths (A*: Hart, Nilsson and Raphael, 1968).


@dataclass(frozen=True)
class TopicPath:
    """One path: n + 1 nodes, n edges, as numbers of the arrays that were searched."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]


@dataclass(frozen=True)
class Search:
    """What a search found, best first, and how many edges it looked at; `capped` when the budget ended it."""

    paths: tuple[TopicPath, ...]
    work: int
    capped: bool


def best_paths(
    blocks: Blocks,
    region: Region,
    *,
    n_paths: int,
    max_hops: int,
    penalty: float,
    max_work: int,
    compiled: bool = True,
) -> Search:
    """The `n_paths` best paths of 1 to `max_hops` edges from the region's first topic to its second.

    When the budget is short it looks less far, but at one edge always. Both ways to search give the same paths:
    `compiled` code takes more than a second to load, and pays from some hundred regions on.
    """
    row, column = np.nonzero(region.last > region.first)
    counts = (region.last - region.first)[row, column]
    if not counts.any():
        return Search((), 0, False)
    skipped = np.cumsum(counts) - counts
    entries = np.repeat(region.first[row, column] - skipped, counts) + np.arange(int(counts.sum()))
    leaving, arriving = np.repeat(row == 0, counts), np.repeat(column == 1, counts)
    nodes, tail, head = _number_nodes(blocks.tail[entries], blocks.head[entries])
    order = np.argsort(tail * len(nodes) + head, kind="stable")  # fast, because the entries of a block are sorted
    starts = np.searchsorted(tail[order], np.arange(len(nodes) + 1))
    is_target = np.zeros(len(nodes), np.bool_)
    is_target[head[arriving]] = True
    found, via, lengths, work, capped = _search(compiled)(
        starts, head[order], blocks.log[entries][order], np.unique(tail[leaving]), is_target,
        n_paths, max_hops, penalty, max_work,
    )  # fmt: skip
    edge = blocks.edge[entries][order]
    paths = tuple(
        TopicPath(tuple(nodes[found[at, : length + 1]].tolist()), tuple(edge[via[at, :length]].tolist()))
        for at, length in enumerate(lengths.tolist())
    )
    return Search(paths, int(work), bool(capped))


def _number_nodes(tail: Longs, head: Longs) -> tuple[Longs, Longs, Longs]:
    """The nodes that occur, sorted, and the place of each end among them."""
    occurs = np.zeros(int(max(tail.max(), head.max())) + 1, np.bool_)
    occurs[tail] = True
    occurs[head] = True
    nodes = np.flatnonzero(occurs)
    places = np.cumsum(occurs) - 1
    return nodes, places[tail], places[head]


def _search(compiled: bool) -> Callable[..., Found]:
    """The compiled search, or the one that loads no compiler."""
    if not compiled:
        return search_paths
    return search_paths_compiled


# The compiled search of `models/bridges.py`, apart so that only a search loads the compiler.


@numba.njit(cache=True)
def search_paths_compiled(starts, head, log, sources, is_target, n_paths, max_hops, penalty, max_work):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Nodes, entries and lengths of the paths found, the entries looked at, and whether the budget ended it."""
    n_nodes, work, capped = len(starts) - 1, 0, False
    ahead = np.full((max_hops + 1, n_nodes), -np.inf)  # the heaviest walk of exactly r edges from here into the target
    for node in range(n_nodes):
        if is_target[node]:
            ahead[0, node] = 0.0
    reach = 0
    for r in range(1, max_hops + 1):
        if r > 1 and work + len(head) > max_work:
            capped = True
            break
        work += len(head)
        for node in range(n_nodes):
            for entry in range(starts[node], starts[node + 1]):
                ahead[r, node] = max(ahead[r, node], log[entry] + ahead[r - 1, head[entry]])
        reach = r

    queue = [(0.0, 0)]
    queue.clear()
    before, at, by, depth, length, so_far = [0], [0], [0], [0], [0], [0.0]  # states; the first is nobody's
    for source in sources:
        for n in range(1, reach + 1):
            if ahead[n, source] > -np.inf:
                heapq.heappush(queue, (-(ahead[n, source] / n - penalty * (n - 1)), len(at)))
                before.append(0)
                at.append(source)
                by.append(-1)
                depth.append(0)
                length.append(n)
                so_far.append(0.0)

    nodes = np.full((n_paths, max_hops + 1), -1)
    via = np.full((n_paths, max_hops), -1)
    lengths = np.zeros(n_paths, np.int64)
    n_found = 0
    while queue and n_found < n_paths:
        state = heapq.heappop(queue)[1]
        n = length[state]
        if depth[state] == n:
            lengths[n_found] = n
            step = state
            for place in range(n, -1, -1):
                nodes[n_found, place] = at[step]
                if place:
                    via[n_found, place - 1] = by[step]
                step = before[step]
            n_found += 1
            continue
        left = n - depth[state] - 1
        node = at[state]
        if work + starts[node + 1] - starts[node] > max_work and n > 1:
            capped = True
            break
        for entry in range(starts[node], starts[node + 1]):
            work += 1
            target = head[entry]
            if ahead[left, target] == -np.inf:
                continue
            step = state
            while step and at[step] != target:
                step = before[step]
            if step:
                continue  # it would meet itself
            total = so_far[state] + log[entry]
            heapq.heappush(queue, (-((total + ahead[left, target]) / n - penalty * (n - 1)), len(at)))
            before.append(state)
            at.append(target)
            by.append(entry)
            depth.append(depth[state] + 1)
            length.append(n)
            so_far.append(total)
    return nodes[:n_found], via[:n_found], lengths[:n_found], work, capped
