"""Forward push, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import ALWAYS, Adjacency, Csr
from models.kernels import compile_loop

# Forward push: personalized PageRank that touches only what the restart reaches (Andersen, Chung and Lang, 2006).
# The graph is the undirected weighted one that both directions of the adjacency form together; an edge counts its
# weight times the factor of its type, and nothing where the mask hides it. A node that holds more residual than
# epsilon times its degree keeps a share and pushes the rest to its neighbours, so that at the end, for every node
# v, 0 <= exact(v) - estimate(v) <= epsilon * degree(v) because the walk is reversible: degree(u) * ppr(u -> v) =
# degree(v) * ppr(v -> u). Degrees are not stored. A row is read only until its sum shows that the node need not
# push, so a hub is never read for the sake of its degree alone, and all reading together stays within a constant of
# 1 / (epsilon * (1 - damping)).


ESTIMATE, RESIDUAL, DEGREE, CURSOR = range(4)  # columns of the state; the row of a node is half a cache line
_QUEUED, _TOUCHED = 1, 2
_NOT_QUEUED = 0xFF ^ _QUEUED
_HEAD, _LENGTH, _N_TOUCHED, _WORK = range(4)  # what the kernel counts
Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


class Walk:
    """One question's push over one adjacency: `run` it, with a lower epsilon again if need be, then read its arrays."""

    def __init__(
        self,
        adjacency: Adjacency,
        restart: Longs,
        weights: Floats,
        *,
        factors: Floats,
        moments: tuple[int, int] = (ALWAYS, ALWAYS),
    ) -> None:
        """`restart` are distinct, `weights` sum to 1; `factors` are by type code.

        `moments` are as_of and known_at, `ALWAYS` for no mask.
        """
        self._adjacency = adjacency
        self._factors = factors.view()
        self._factors.setflags(write=False)  # the kernel is compiled once: for arrays that nobody writes to
        self._moments = moments
        self._masked = adjacency.validity is not None and moments != (ALWAYS, ALWAYS)
        # What is known of the entries of each direction, in the order in which rows are read.
        sizes = (len(rows.edge) if self._masked else 0 for rows in (adjacency.out, adjacency.into))
        self._verdicts = tuple(np.zeros(size, np.uint8) for size in sizes)
        self._scratch = _make_scratch(len(adjacency.out.starts) - 1)
        self._place(restart, weights)

    def run(self, epsilon: float, damping: float, max_work: int) -> bool:
        """Push until no node holds more than epsilon times its degree; False when `max_work` in all ended it first."""
        return bool(_push(*self.arguments(epsilon, damping, max_work)))

    def arguments(self, epsilon: float, damping: float, max_work: int) -> tuple[Any, ...]:
        """What the kernel is called with."""
        out, into, validity = self._adjacency.out, self._adjacency.into, self._adjacency.validity
        bounds: tuple[Longs, ...] = (_NO_BOUNDS,) * 4
        if validity is not None:
            bounds = (validity.valid_from, validity.valid_until, validity.recorded_at, validity.retracted_at)
        rule = (self._factors, *bounds, *self._verdicts, *self._moments, self._masked)
        return (*_arrays(out), *_arrays(into), *rule, *self._scratch, epsilon, damping, max_work)

    def _place(self, restart: Longs, weights: Floats) -> None:
        state, flags, _, touched, counters = self._scratch
        state[restart, RESIDUAL] = weights
        flags[restart] = _TOUCHED
        touched[: len(restart)] = restart
        counters[_N_TOUCHED] = len(restart)

    @property
    def work(self) -> int:
        """Adjacency entries read so far."""
        return int(self._scratch[4][_WORK])

    @property
    def numbers(self) -> Longs:
        """Every node that was touched, in no order."""
        _, _, _, touched, counters = self._scratch
        return touched[: counters[_N_TOUCHED]].astype(np.int64)

    def values(self, numbers: Longs, column: int) -> Floats:
        """(n,) the estimate, the residual, the part of the degree that was read, or the entries read for it."""
        values: Floats = self._scratch[0][numbers, column]
        return values

    def read(self, numbers: Longs) -> tuple[Floats, Floats, Floats]:
        """(n,) estimates, residuals and degrees: a node's lie beside each other, so its row is fetched once."""
        rows = self._scratch[0].take(numbers, axis=0)
        return rows[:, ESTIMATE], rows[:, RESIDUAL], rows[:, DEGREE]

    def entries(self, numbers: Longs) -> Longs:
        """How many adjacency entries nodes have, both directions; nothing is read."""
        out, into = self._adjacency.out.starts, self._adjacency.into.starts
        return out[numbers + 1] - out[numbers] + into[numbers + 1] - into[numbers]


_NO_BOUNDS = np.empty(0, np.int64)
_NO_BOUNDS.setflags(write=False)  # the same type as the arrays of a snapshot: one compiled kernel serves both
_UNASKED, _HIDDEN, _SEEN = range(3)  # what is known of an edge at a moment


def _arrays(rows: Csr) -> tuple[Any, ...]:
    return rows.starts, rows.target, rows.edge, rows.type, rows.weight


def _make_scratch(n_nodes: int) -> tuple[Floats, NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32], Longs]:
    """State, flags, queue, touched nodes, counters. The system gives zeros page by page, as they are touched."""
    size = max(1, n_nodes)
    order = (np.zeros(size, np.int32), np.zeros(size, np.int32))
    return np.zeros((size, 4)), np.zeros(size, np.uint8), *order, np.zeros(4, np.int64)


@compile_loop
def _push(  # type: ignore[no-untyped-def]  # pragma: no cover  # one body: numba counts references of arrays at every call
    out_starts,
    out_target,
    out_edge,
    out_type,
    out_weight,
    in_starts,
    in_target,
    in_edge,
    in_type,
    in_weight,
    factors,
    valid_from,
    valid_until,
    recorded_at,
    retracted_at,
    out_verdicts,
    in_verdicts,
    as_of,
    known_at,
    masked,
    state,
    flags,
    queue,
    touched,
    counters,
    epsilon,
    damping,
    max_work,
):
    size = len(queue)
    head, length, n_touched, work = counters[0], counters[1], counters[2], counters[3]
    complete = True
    for place in range(n_touched):  # the first time, and when epsilon is lower than last time
        node = touched[place]
        if not flags[node] & _QUEUED and state[node, RESIDUAL] > epsilon * state[node, DEGREE]:
            queue[(head + length) % size] = node
            length += 1
            flags[node] |= _QUEUED
    while length > 0:
        node = queue[head]
        first_out, first_in = out_starts[node], in_starts[node]
        n_out = out_starts[node + 1] - first_out
        entries = n_out + in_starts[node + 1] - first_in
        held, degree, cursor = state[node, RESIDUAL], state[node, DEGREE], int(state[node, CURSOR])
        began = cursor
        stop = min(entries, cursor + max_work - work)
        while cursor < stop and held > epsilon * degree:
            if cursor < n_out:
                at = first_out + cursor
                if masked and out_verdicts[at] == _UNASKED:
                    edge = out_edge[at]
                    hidden = as_of != ALWAYS and (as_of < valid_from[edge] or as_of >= valid_until[edge])
                    hidden |= known_at != ALWAYS and (known_at < recorded_at[edge] or known_at >= retracted_at[edge])
                    out_verdicts[at] = _HIDDEN if hidden else _SEEN
                if not masked or out_verdicts[at] == _SEEN:
                    degree += out_weight[at] * factors[out_type[at]]
            else:
                at = first_in + cursor - n_out
                if masked and in_verdicts[at] == _UNASKED:
                    edge = in_edge[at]
                    hidden = as_of != ALWAYS and (as_of < valid_from[edge] or as_of >= valid_until[edge])
                    hidden |= known_at != ALWAYS and (known_at < recorded_at[edge] or known_at >= retracted_at[edge])
                    in_verdicts[at] = _HIDDEN if hidden else _SEEN
                if in_target[at] != node and (not masked or in_verdicts[at] == _SEEN):
                    degree += in_weight[at] * factors[in_type[at]]
            cursor += 1
        work += cursor - began
        state[node, CURSOR], state[node, DEGREE] = cursor, degree
        pushes = held > epsilon * degree
        if pushes and (cursor < entries or work + entries > max_work):
            complete = False
            break
        head = (head + 1) % size
        length -= 1
        flags[node] &= _NOT_QUEUED
        if not pushes:
            continue
        state[node, RESIDUAL] = 0.0
        if degree == 0.0:  # nowhere to go: the walk stays
            state[node, ESTIMATE] += held
            continue
        state[node, ESTIMATE] += (1.0 - damping) * held
        per_weight = damping * held / degree
        work += entries
        for step in range(entries):  # all of them were asked for the degree
            if step < n_out:
                at = first_out + step
                near = out_target[at]
                share = out_weight[at] * factors[out_type[at]] * per_weight
                hidden = masked and out_verdicts[at] == _HIDDEN
            else:
                at = first_in + step - n_out
                near = in_target[at]
                share = 0.0 if near == node else in_weight[at] * factors[in_type[at]] * per_weight
                hidden = masked and in_verdicts[at] == _HIDDEN
            if share == 0.0 or hidden:
                continue
            grown = state[near, RESIDUAL] + share
            state[near, RESIDUAL] = grown
            mark = flags[near]
            if not mark & _TOUCHED:
                touched[n_touched] = near
                n_touched += 1
                mark |= _TOUCHED
            if not mark & _QUEUED and grown > epsilon * state[near, DEGREE]:
                queue[(head + length) % size] = near
                length += 1
                mark |= _QUEUED
            flags[near] = mark
    counters[0], counters[1], counters[2], counters[3] = head, length, n_touched, work
    return complete
