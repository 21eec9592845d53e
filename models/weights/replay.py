"""The loop of `models.weights.pairwise`, compiled: each turn depends on those before it, so they cannot go at once.

What is known of an edge stands in one row of the state, half a cache line, and rows that nothing names are never
touched: the loop costs what the pairs reach, not what the graph holds.
"""

from __future__ import annotations

import numba
import numpy as np

CALM = 0.25  # as if each edge had been pulled by one half already: a first judgement does not move it the whole rate
_NOW, _PULL, _SQUARES, _UPDATES = range(4)  # columns: where it stands, and what pulled it this turn and before


@numba.njit(cache=True)
def replay(prior, starts, edges, turn, preferred, other, weight, lifts, rate, radius, offsets):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Turn after turn: pulls of all its pairs from the same state, then one bounded step for each edge they name."""
    state = np.zeros((len(prior), 4))
    may_gain = np.zeros(len(prior), np.bool_)
    first = 0
    while first < len(turn):
        last = first
        while last < len(turn) and turn[last] == turn[first]:
            a, b = preferred[last], other[last]
            above, below = 0.0, 0.0
            for at in range(starts[a], starts[a + 1]):
                above += prior[edges[at]] + state[edges[at], _NOW]
            for at in range(starts[b], starts[b + 1]):
                below += prior[edges[at]] + state[edges[at], _NOW]
            margin = above / (starts[a + 1] - starts[a]) - below / (starts[b + 1] - starts[b])
            surprise = weight[last] / (1.0 + np.exp(margin))
            for at in range(starts[a], starts[a + 1]):
                state[edges[at], _PULL] += surprise
                may_gain[edges[at]] |= lifts[last]
            for at in range(starts[b], starts[b + 1]):
                state[edges[at], _PULL] -= surprise
            last += 1
        for pair in range(first, last):
            for result in (preferred[pair], other[pair]):
                for at in range(starts[result], starts[result + 1]):
                    edge = edges[at]
                    pull = state[edge, _PULL]
                    if pull < 0.0 or (pull > 0.0 and may_gain[edge]):
                        state[edge, _SQUARES] += pull**2
                        state[edge, _UPDATES] += 1.0
                        step = rate * pull / np.sqrt(CALM + state[edge, _SQUARES])
                        now = max(-radius, min(radius, state[edge, _NOW] + step))
                        state[edge, _NOW] = now
                        offsets[edge] += 2.0 / (state[edge, _UPDATES] + 1.0) * (now - offsets[edge])
                    state[edge, _PULL] = 0.0
                    may_gain[edge] = False
        first = last
