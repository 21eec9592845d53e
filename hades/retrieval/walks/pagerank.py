"""Personalized PageRank by forward push."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports.graph import ALWAYS, Adjacency, Numbers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.words import moments
from hades.retrieval.walks.push import ESTIMATE, RESIDUAL, Walk
from hades.snapshot.view import GraphView
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
    return _push(walk, damping, epsilon, relaxed_epsilon, max_work, top, stop)


@lru_cache(maxsize=64)
def weigh_types(names: tuple[str, ...], factors: tuple[tuple[str, float], ...]) -> Floats:
    """(types,) the factor of each type by its code. Read-only: a turn asks several times."""
    known = dict(factors)
    if unknown := sorted(known.keys() - set(names)):
        raise BadQuery(f"{unknown[0]!r} is not an edge type; there are {', '.join(names)}")
    by_code = np.array([known.get(name, 1.0) for name in names], np.float64)
    by_code.setflags(write=False)
    return by_code


def _push(
    walk: Walk,
    damping: float,
    epsilon: float,
    relaxed_epsilon: float | None,
    max_work: int,
    top: int | None,
    stop: Callable[[], bool],
) -> Ppr:
    complete = _run(walk, epsilon, damping, _first_work(max_work, epsilon, relaxed_epsilon), stop)
    is_relaxed = not complete and relaxed_epsilon is not None and relaxed_epsilon > epsilon
    if is_relaxed:
        assert relaxed_epsilon is not None
        complete = _run(walk, relaxed_epsilon, damping, max_work, stop)
    first: Numbers | None = None
    for _ in range(_ROUNDS if top is not None and not is_relaxed else 0):
        best = np.sort(_rank(walk, top)[0])
        if not complete or (first is not None and np.array_equal(first, best)):
            break
        first, epsilon = best, epsilon * _FINER
        complete = _run(walk, epsilon, damping, max_work, stop)
    touched = walk.numbers
    estimates, left, degrees = walk.read(touched)
    holds = left > 0.0
    numbers, scores = _sort(touched, estimates, None)
    if not len(numbers):
        numbers, scores = _by_degree(walk)
    return Ppr(numbers, scores, *_bound(left[holds], degrees[holds]), walk.work, not complete, is_relaxed)


def _first_work(max_work: int, epsilon: float, relaxed_epsilon: float | None) -> int:
    """The work after which a walk goes on with the relaxed epsilon, if there is a greater one."""
    return max_work * 2 // 3 if relaxed_epsilon is not None and relaxed_epsilon > epsilon else max_work


def _bound(left: Floats, degrees: Floats) -> tuple[float, float]:
    """The most that a node holds for each unit of its degree, and what all hold together."""
    return float((left / degrees).max(initial=0.0)) if degrees.all() else np.inf, float(left.sum())


def _run(walk: Walk, epsilon: float, damping: float, max_work: int, stop: Callable[[], bool]) -> bool:
    """Push in slices, so that the clock can end it in the middle."""
    limit = walk.work
    while True:
        limit = min(max_work, limit + _SLICE)
        if walk.run(epsilon, damping, limit):
            return True
        if limit >= max_work or stop():
            return False


def _rank(walk: Walk, top: int | None) -> tuple[Numbers, Floats]:
    numbers = walk.numbers
    return _sort(numbers, walk.values(numbers, ESTIMATE), top)


def _sort(numbers: Numbers, scores: Floats, top: int | None) -> tuple[Numbers, Floats]:
    """Nodes with a score, best first, equal ones by number."""
    reached = scores > 0.0
    numbers, scores = numbers[reached], scores[reached]
    order = np.lexsort((numbers, -scores))
    return numbers[order[:top]], scores[order[:top]]


def _by_degree(walk: Walk) -> tuple[Numbers, Floats]:
    """The restart nodes alone, by weight and by how connected they are; the last resort."""
    numbers = walk.numbers
    worth = walk.values(numbers, RESIDUAL) * (1.0 + np.log1p(walk.entries(numbers)))
    order = np.lexsort((numbers, -worth))
    return numbers[order], worth[order] / worth.sum()


def _restart(restart: Numbers, weights: Floats) -> tuple[Numbers, Floats]:
    """Distinct restart nodes with weights that sum to 1; a weight that is not positive restarts nowhere."""
    numbers, mass = np.asarray(restart, np.int64), np.asarray(weights, np.float64)
    if numbers.shape != mass.shape or not np.isfinite(mass).all():
        raise BadQuery(f"{len(numbers)} restart nodes need as many finite weights, not {mass.shape}")
    distinct, place = np.unique(numbers[mass > 0], return_inverse=True)
    total: Floats = np.bincount(place, mass[mass > 0], minlength=len(distinct)).astype(np.float64)
    return distinct, total / max(float(total.sum()), np.finfo(np.float64).tiny)
