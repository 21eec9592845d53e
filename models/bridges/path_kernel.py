"""The compiled search of `models/bridges/search.py`, apart so that only a search loads the compiler."""

from __future__ import annotations

import heapq

import numba
import numpy as np


@numba.njit(cache=True)
def search_paths(starts, head, log, sources, is_target, n_paths, max_hops, penalty, max_work):  # type: ignore[no-untyped-def]  # pragma: no cover
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
