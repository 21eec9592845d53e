"""The search of `models/bridges/path_kernel.py` without the compiler: the same steps in the same order, same numbers.

Loading compiled code takes more than a second of processor time. For a few pairs of topics the interpreter is done
before that.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
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
