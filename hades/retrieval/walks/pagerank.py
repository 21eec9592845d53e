"""Personalized PageRank by forward push, compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports.graph import ALWAYS, Adjacency, Csr, Numbers, Validity
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.words import moments
from hades.snapshot.view import GraphView
from models.kernels import compile_loop
from schemas.ids import Mask

# Personalized PageRank on the undirected weighted graph: local, bounded in work, with a bound on its error. Damping is
# the chance to walk on: HippoRAG's .5 by default, .85 for the classical PageRank.


Floats = NDArray[np.float64]
DAMPING = 0.5
EPSILON = 1e-5
MAX_WORK = 2_000_000
_SLICE = 200_000  # entries between two looks at the clock, about five milliseconds
_FINER, _ROUNDS = 0.25, 6  # how epsilon shrinks while the first ranks still move


@dataclass(frozen=True)
class Ppr:
    """Scores of the nodes that were reached, best first, equal ones by number.

    For every node 0 <= exact - score <= bound * its weighted degree, and the differences of all nodes sum to `residue`,
    so that scores and residue sum to 1. `bound` is infinite where the work ended before degrees were known.
    `is_relaxed`: the work did not suffice for epsilon, so the walk went on with the relaxed one.
    """

    numbers: Numbers
    scores: Floats
    bound: float
    residue: float
    work: int
    capped: bool
    is_relaxed: bool = False


def personalized_pagerank(
    graph: MeteredView | GraphView | Adjacency,
    restart: Numbers,
    weights: Floats,
    *,
    damping: float = DAMPING,
    epsilon: float = EPSILON,
    relaxed_epsilon: float | None = None,
    max_work: int = MAX_WORK,
    mask: Mask = Mask(),
    factors: Mapping[str, float] | None = None,
    top: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Ppr:
    """Where a walk is that starts over at `restart` (in proportion to `weights`) with chance 1 - damping a step.

    `factors` multiplies the weights of a type, 0 leaves it out; an adjacency alone knows no types by name. A walk that
    has not converged after two thirds of the work goes on with the `relaxed_epsilon`, if it is greater: a wider bound
    that holds everywhere is worth more than a narrow one that holds in some places. With `top` epsilon shrinks until
    the first `top` nodes no longer change.
    `stop` is asked every few milliseconds. When the work does not allow a single push the restart nodes come back by
    weight and degree, with an infinite bound: a defined answer, never an exception (requirement E15).
    """
    nodes, mass = _restart(restart, weights)
    if not 0.0 <= damping < 1.0 or epsilon <= 0.0:
        raise BadQuery(f"need 0 <= damping < 1 and epsilon > 0, not {damping} and {epsilon}")
    if not len(nodes):
        return Ppr(np.empty(0, np.int64), np.empty(0), 0.0, 0.0, 0, False)
    adjacency = graph if isinstance(graph, Adjacency) else graph.adjacency()
    by_code = np.ones(256)
    if not isinstance(graph, Adjacency):
        by_code = weigh_types(graph.type_names, tuple((factors or {}).items()))
    when = (int(ALWAYS), int(ALWAYS)) if mask.is_open else moments(mask)
    walk = Walk(adjacency, nodes, mass, factors=by_code, moments=when)
    relaxed = max(relaxed_epsilon or 0.0, epsilon)
    complete = _run(walk, epsilon, damping, max_work * 2 // 3 if relaxed > epsilon else max_work, stop)
    is_relaxed = not complete and relaxed > epsilon
    if is_relaxed:
        complete = _run(walk, relaxed, damping, max_work, stop)
    first: Numbers | None = None
    for _ in range(_ROUNDS if top is not None and not is_relaxed else 0):
        best = np.sort(_sort(walk.numbers, walk.state[walk.numbers, ESTIMATE], top)[0])
        if not complete or (first is not None and np.array_equal(first, best)):
            break
        first, epsilon = best, epsilon * _FINER
        complete = _run(walk, epsilon, damping, max_work, stop)
    touched = walk.numbers
    estimates, left, degrees, _ = walk.state[touched].T
    left, degrees = left[left > 0.0], degrees[left > 0.0]
    bound = float((left / degrees).max(initial=0.0)) if degrees.all() else np.inf  # the most for each unit of degree
    numbers, scores = _sort(touched, estimates, None)
    if not len(numbers):
        numbers, scores = _by_degree(walk, damping)
    residue = max(0.0, 1.0 - float(scores.sum()))
    return Ppr(numbers, scores, bound, residue, walk.work, not complete, is_relaxed)


@lru_cache(maxsize=64)
def weigh_types(names: tuple[str, ...], factors: tuple[tuple[str, float], ...]) -> Floats:
    """(types,) the factor of each type by its code. Read-only: a turn asks several times."""
    known = dict(factors)
    if unknown := sorted(known.keys() - set(names)):
        raise BadQuery(f"{unknown[0]!r} is not an edge type; there are {', '.join(names)}")
    by_code = np.array([known.get(name, 1.0) for name in names], np.float64)
    by_code.setflags(write=False)
    return by_code


def walk_from(
    view: MeteredView,
    mass: Mapping[int, float],
    mask: Mask,
    factors: Mapping[str, float],
    max_work: int,
    damping: float,
    epsilon: float,
    relaxed_epsilon: float | None = None,
) -> Ppr:
    """A walk from nodes by their mass, within the work and the time that the turn has left, and counted against it."""
    found = personalized_pagerank(
        view, np.array(list(mass), np.int64), np.array(list(mass.values()), np.float64),
        mask=mask, factors=factors, damping=damping, epsilon=epsilon, relaxed_epsilon=relaxed_epsilon,
        max_work=max(0, min(max_work, view.turn.work_left)), stop=view.turn.expired,
    )  # fmt: skip
    view.turn.worked(found.work, capped=found.capped)
    return found


def _run(walk: Walk, epsilon: float, damping: float, max_work: int, stop: Callable[[], bool]) -> bool:
    """Push in slices, so that the clock can end it in the middle."""
    limit = walk.work
    while True:
        limit = min(max_work, limit + _SLICE)
        if walk.run(epsilon, damping, limit):
            return True
        if limit >= max_work or stop():
            return False


def _sort(numbers: Numbers, scores: Floats, top: int | None) -> tuple[Numbers, Floats]:
    """Nodes with a score, best first, equal ones by number."""
    reached = scores > 0.0
    numbers, scores = numbers[reached], scores[reached]
    order = np.lexsort((numbers, -scores))
    return numbers[order[:top]], scores[order[:top]]


def _by_degree(walk: Walk, damping: float) -> tuple[Numbers, Floats]:
    """The restart nodes with what a walk leaves there at once, equal ones by degree: the last resort."""
    mass = walk.state[walk.numbers, RESIDUAL]
    order = np.lexsort((walk.numbers, -walk.entries(walk.numbers), -mass))
    return walk.numbers[order], (1.0 - damping) * mass[order]


def _restart(restart: Numbers, weights: Floats) -> tuple[Numbers, Floats]:
    """Distinct restart nodes with weights that sum to 1; a weight that is not positive restarts nowhere."""
    numbers, mass = np.asarray(restart, np.int64), np.asarray(weights, np.float64)
    if numbers.shape != mass.shape or not np.isfinite(mass).all():
        raise BadQuery(f"{len(numbers)} restart nodes need as many finite weights, not {mass.shape}")
    distinct, place = np.unique(numbers[mass > 0], return_inverse=True)
    total: Floats = np.bincount(place, mass[mass > 0], minlength=len(distinct)).astype(np.float64)
    return distinct, total / max(float(total.sum()), np.finfo(np.float64).tiny)


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
_N_TOUCHED, _WORK = 2, 3  # among what the kernel counts, after the head and the length of its queue
_NO_BOUNDS = np.empty(0, np.int64)
_NO_BOUNDS.setflags(write=False)  # the same type as the arrays of a snapshot: one compiled kernel serves both


class Walk:
    """One question's push over one adjacency: `run` it, with a lower epsilon again if need be, then read its `state`.

    `restart` are distinct, `weights` sum to 1; `factors` are by type code. `moments` are as_of and known_at, `ALWAYS`
    for no mask.
    """

    def __init__(
        self,
        adjacency: Adjacency,
        restart: Numbers,
        weights: Floats,
        *,
        factors: Floats,
        moments: tuple[int, int] = (int(ALWAYS), int(ALWAYS)),
    ) -> None:
        self._adjacency = adjacency
        readable = factors.view()
        readable.setflags(write=False)  # the kernel is compiled once: for arrays that nobody writes to
        self._rule = (readable, *bounds_of(adjacency.validity, moments))
        size = max(1, len(adjacency.out.starts) - 1)
        self.state = np.zeros((size, 4))  # the system gives zeros page by page, as they are touched
        flags, queue, self._touched = np.zeros(size, np.uint8), np.zeros(size, np.int32), np.zeros(size, np.int32)
        self._counters = np.zeros(4, np.int64)
        self._scratch = (self.state, flags, queue, self._touched, self._counters)
        self.state[restart, RESIDUAL] = weights
        flags[restart] = _TOUCHED
        self._touched[: len(restart)] = restart
        self._counters[_N_TOUCHED] = len(restart)

    def run(self, epsilon: float, damping: float, max_work: int) -> bool:
        """Push until no node holds more than epsilon times its degree; False when `max_work` in all ended it first."""
        rows = (*arrays_of(self._adjacency.out), *arrays_of(self._adjacency.into))
        return bool(_push(*rows, *self._rule, *self._scratch, epsilon, damping, max_work))

    @property
    def work(self) -> int:
        """Adjacency entries read so far."""
        return int(self._counters[_WORK])

    @property
    def numbers(self) -> Numbers:
        """Every node that was touched, in no order."""
        return self._touched[: self._counters[_N_TOUCHED]].astype(np.int64)

    def entries(self, numbers: Numbers) -> Numbers:
        """How many adjacency entries nodes have, both directions; nothing is read."""
        out, into = self._adjacency.out.starts, self._adjacency.into.starts
        return out[numbers + 1] - out[numbers] + into[numbers + 1] - into[numbers]


def arrays_of(rows: Csr) -> tuple[Any, ...]:
    """One direction of an adjacency as kernels take it."""
    return rows.starts, rows.target, rows.edge, rows.type, rows.weight


def bounds_of(validity: Validity | None, moments: tuple[int, int]) -> tuple[Any, ...]:
    """The intervals of edges, whether any is asked for, and the moments, as kernels take them."""
    bounds: tuple[Any, ...] = (_NO_BOUNDS,) * 4
    if validity is not None:
        bounds = (validity.valid_from, validity.valid_until, validity.recorded_at, validity.retracted_at)
    return *bounds, validity is not None and moments != (ALWAYS, ALWAYS), *moments


@compile_loop
def _push(  # type: ignore[no-untyped-def]  # pragma: no cover  # one body: numba counts references of arrays at every call
    out_starts, out_target, out_edge, out_type, out_weight, in_starts, in_target, in_edge, in_type, in_weight,
    factors, valid_from, valid_until, recorded_at, retracted_at, masked, as_of, known_at,
    state, flags, queue, touched, counters, epsilon, damping, max_work,
):  # fmt: skip
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
                near, edge, kind, weight = out_target[at], out_edge[at], out_type[at], out_weight[at]
            else:
                at = first_in + cursor - n_out
                near, edge, kind, weight = in_target[at], in_edge[at], in_type[at], in_weight[at]
            hidden = masked and (
                (as_of != ALWAYS and (as_of < valid_from[edge] or as_of >= valid_until[edge]))
                or (known_at != ALWAYS and (known_at < recorded_at[edge] or known_at >= retracted_at[edge]))
            )
            if (cursor < n_out or near != node) and not hidden:  # an edge to itself counts once, where it leaves
                degree += weight * factors[kind]
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
        for step in range(entries):
            if step < n_out:
                at = first_out + step
                near, edge, kind, weight = out_target[at], out_edge[at], out_type[at], out_weight[at]
            else:
                at = first_in + step - n_out
                near, edge, kind, weight = in_target[at], in_edge[at], in_type[at], in_weight[at]
            hidden = masked and (
                (as_of != ALWAYS and (as_of < valid_from[edge] or as_of >= valid_until[edge]))
                or (known_at != ALWAYS and (known_at < recorded_at[edge] or known_at >= retracted_at[edge]))
            )
            share = weight * factors[kind] * per_weight
            if share == 0.0 or hidden or (step >= n_out and near == node):
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
