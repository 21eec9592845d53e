"""The compiled draw of `models/ranker/sampler.py`, apart so that only fitting by parts loads the compiler."""

from __future__ import annotations

import numpy as np

from models.machine_code import compile_loop


def _next_random(state):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Next state and output of SplitMix64 (Steele, Lea, Flood 2014)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    mixed = state
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, mixed ^ (mixed >> np.uint64(31))


_next = compile_loop(_next_random)


def _draw_neighbours(starts, targets, asked, fanouts, seed, place, most):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Nodes of the part, and the two ends of its edges by place in them. `place` is -1 everywhere before and after."""
    nodes = np.empty(len(asked) + most, np.int64)
    source, target = np.empty(most, np.int64), np.empty(most, np.int64)
    n_nodes, n_edges, state = 0, 0, np.uint64(seed)
    for node in asked:
        nodes[n_nodes] = node
        place[node] = n_nodes
        n_nodes += 1
    begin = 0
    for fanout in fanouts:
        end = n_nodes
        chosen = np.empty(fanout, np.int64)
        for at in range(begin, end):
            first = starts[nodes[at]]
            count = starts[nodes[at] + 1] - first
            n_chosen = min(count, fanout)
            for i in range(n_chosen):
                pick = np.int64(i)
                if (
                    count > fanout
                ):  # Floyd's draw without repetition: the i-th comes from the first count - fanout + i + 1
                    limit = count - fanout + i
                    state, drawn = _next(state)
                    pick = np.int64(drawn % np.uint64(limit + 1))
                    for j in range(i):
                        if chosen[j] == pick:
                            pick = limit
                            break
                chosen[i] = pick
                other = np.int64(targets[first + pick])
                if place[other] < 0:
                    place[other] = n_nodes
                    nodes[n_nodes] = other
                    n_nodes += 1
                source[n_edges] = place[other]
                target[n_edges] = at
                n_edges += 1
        begin = end
    for at in range(n_nodes):
        place[nodes[at]] = -1
    return nodes[:n_nodes].copy(), source[:n_edges].copy(), target[:n_edges].copy()


draw_neighbours = compile_loop(_draw_neighbours)
