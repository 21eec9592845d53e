"""The best loopless paths to one target over a small graph, compiled: best first, exact, bounded by work.

`least[j, v]` is the least cost of a walk of exactly j edges from v to the target. It never exceeds the cost of a path,
so that partial paths taken in order of what they could still become give complete ones in order of what they are (A*;
Hart, Nilsson and Raphael 1968). Keeping j apart lets the order depend on cost and length together.
"""

from __future__ import annotations

import heapq

import numba
import numpy as np

TINY = 1e-9  # costs closer than this are equal: ties are settled by length and edges


@numba.njit(cache=True, nogil=True)
def least_costs(starts, heads, costs, target, max_hops):  # type: ignore[no-untyped-def]  # pragma: no cover
    """(max_hops + 1, n) by number of edges; infinity where the target is out of reach."""
    n_nodes = len(starts) - 1
    least = np.full((max_hops + 1, n_nodes), np.inf)
    least[0, target] = 0.0
    for hops in range(1, max_hops + 1):
        for node in range(n_nodes):
            for at in range(starts[node], starts[node + 1]):
                least[hops, node] = min(least[hops, node], costs[at] + least[hops - 1, heads[at]])
    return least


@numba.njit(cache=True, nogil=True)
def value_of(cost, hops, mean, penalty):  # type: ignore[no-untyped-def]  # pragma: no cover
    """What is minimised: the cost, or the mean cost plus a penalty for each edge after the first."""
    if not mean:
        return cost
    return cost / hops + penalty * (hops - 1) if hops else 0.0


@numba.njit(cache=True, nogil=True)
def _could_be(cost, hops, node, least, mean, penalty):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The best value that any completion of a partial path can have."""
    best = np.inf
    for more in range(len(least) - hops):
        if least[more, node] < np.inf and hops + more > 0:
            best = min(best, value_of(cost + least[more, node], hops + more, mean, penalty))
    return best


@numba.njit(cache=True, nogil=True)
def best_paths(starts, heads, costs, sources, target, least, k, mean, penalty, max_work):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The k best paths from any source to the target and all that tie with the last: entries, lengths, costs, work."""
    max_hops = len(least) - 1
    # One record a partial path: its last node, the entry that led there, the record before, edges, cost.
    node = [np.int64(0)]
    entry = [np.int64(-1)]
    before = [np.int64(-1)]
    hops = [np.int64(0)]
    cost = [0.0]
    queue = [(np.inf, np.int64(0), np.int64(0))]
    for source in sources:
        value = _could_be(0.0, 0, source, least, mean, penalty)
        if source != target and value < np.inf:
            heapq.heappush(queue, (value, np.int64(0), np.int64(len(node))))
            node.append(source)
            entry.append(np.int64(-1))
            before.append(np.int64(-1))
            hops.append(np.int64(0))
            cost.append(0.0)
    found = [np.int64(-1)]
    last_value = np.inf
    work, capped = 0, False
    while queue[0][0] < np.inf and (len(found) <= k or queue[0][0] <= last_value + TINY):
        value, depth, here = heapq.heappop(queue)
        if node[here] == target:
            found.append(here)
            last_value = value
            continue
        if depth == max_hops:
            continue
        for at in range(starts[node[here]], starts[node[here] + 1]):
            if work >= max_work:
                capped = True
                break
            work += 1
            head = np.int64(heads[at])
            earlier = here
            while earlier != -1 and node[earlier] != head:
                earlier = before[earlier]
            if earlier != -1:
                continue
            if head == target:
                could = value_of(cost[here] + costs[at], depth + 1, mean, penalty)
            else:
                could = _could_be(cost[here] + costs[at], depth + 1, head, least, mean, penalty)
            if could < np.inf:
                heapq.heappush(queue, (could, depth + 1, np.int64(len(node))))
                node.append(head)
                entry.append(np.int64(at))
                before.append(here)
                hops.append(depth + 1)
                cost.append(cost[here] + costs[at])
        if capped:
            break
    entries = np.full((len(found) - 1, max_hops), -1, np.int64)
    lengths, totals = np.zeros(len(found) - 1, np.int64), np.zeros(len(found) - 1)
    for row in range(len(found) - 1):
        here = found[row + 1]
        lengths[row], totals[row] = hops[here], cost[here]
        while entry[here] != -1:
            entries[row, hops[here] - 1] = entry[here]
            here = before[here]
    return entries, lengths, totals, work, capped
