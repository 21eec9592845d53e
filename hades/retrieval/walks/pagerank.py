"""Personalized PageRank by forward push."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hades.errors import BadQuery
from hades.ports.graph import ALWAYS, Adjacency, Numbers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.words import moments
from hades.retrieval.walks.rows import SLICE, Floats, Rows
from hades.snapshot.view import GraphView
from schemas.ids import Mask

# Personalized PageRank on the undirected weighted graph: local, bounded in work, with a bound on
# its error. Damping is the chance to walk on: HippoRAG's .5 by default, .85 for the classical
# PageRank.
DAMPING = 0.5
EPSILON = 1e-5
MAX_WORK = 2_000_000
_FINER, _ROUNDS = 0.25, 6  # how epsilon shrinks while the first ranks still move


@dataclass(frozen=True)
class Ppr:
    """Scores of the nodes that were reached, best first, equal ones by number.

    For every node 0 <= exact - score <= bound * its weighted degree, and the differences of all
    nodes sum to `residue`, so that scores and residue sum to 1. `bound` is infinite where the work
    ended before degrees were known.
    """

    numbers: Numbers
    scores: Floats
    bound: float
    residue: float
    work: int
    capped: bool


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
    """Where a walk is that starts over at `restart` (in proportion to `weights`) with chance 1 -
    damping a step.

    `factors` multiplies the weights of a type, 0 leaves it out; an adjacency alone knows no types
    by name. A walk that has not converged after two thirds of the work goes on with the
    `relaxed_epsilon`, if it is greater: a wider bound that holds everywhere is worth more than a
    narrow one that holds in some places. With `top` epsilon shrinks until the first `top` nodes no
    longer change. `stop` is asked every few milliseconds. When the work does not allow a single
    push the restart nodes come back by weight and degree, with an infinite bound: a defined answer,
    never an exception (requirement E15).
    """
    nodes, mass = _restart(restart, weights)
    if not 0.0 <= damping < 1.0 or epsilon <= 0.0:
        raise BadQuery(f"need 0 <= damping < 1 and epsilon > 0, not {damping} and {epsilon}")

    if not len(nodes):
        none = np.empty(0, np.int64)
        return Ppr(
            none,
            np.empty(0),
            bound=0.0,
            residue=0.0,
            work=0,
            capped=False,
        )

    if isinstance(graph, Adjacency):
        adjacency = graph
    else:
        adjacency = graph.adjacency()

    by_code = np.ones(256)
    if not isinstance(graph, Adjacency):
        by_code = weigh_types(graph.type_names, tuple((factors or {}).items()))

    if mask.is_open:
        when = (int(ALWAYS), int(ALWAYS))
    else:
        when = moments(mask)

    walk = Walk(
        Rows(adjacency, by_code, when, shares=False),
        nodes,
        mass,
    )
    relaxed = max(relaxed_epsilon or 0.0, epsilon)
    if relaxed > epsilon:
        first_work = max_work * 2 // 3
    else:
        first_work = max_work

    complete = walk.run(epsilon, damping, first_work, stop)
    is_relaxed = not complete and relaxed > epsilon
    if is_relaxed:
        complete = walk.run(relaxed, damping, max_work, stop)

    first: Numbers | None = None
    for _ in range(_ROUNDS if top is not None and not is_relaxed else 0):
        best = np.sort(
            _sort(
                walk.touched,
                walk.estimate[walk.touched],
                top,
            )[0]
        )
        if not complete or (first is not None and np.array_equal(first, best)):
            break

        first = best
        epsilon *= _FINER
        complete = walk.run(epsilon, damping, max_work, stop)

    numbers, scores = _sort(
        walk.touched,
        walk.estimate[walk.touched],
        None,
    )
    if not len(numbers):
        numbers, scores = _by_degree(walk, damping)

    return Ppr(
        numbers,
        scores,
        bound=walk.bound(),
        residue=max(0.0, 1.0 - float(scores.sum())),
        work=walk.rows.work,
        capped=not complete,
    )


@lru_cache(maxsize=64)
def weigh_types(
    names: tuple[str, ...],
    factors: tuple[tuple[str, float], ...],
) -> Floats:
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
    """A walk from nodes by their mass, within the work and the time that the turn has left, and
    counted against it.
    """
    ppr = personalized_pagerank(
        view,
        np.array(list(mass), np.int64),
        np.array(list(mass.values()), np.float64),
        mask=mask,
        factors=factors,
        damping=damping,
        epsilon=epsilon,
        relaxed_epsilon=relaxed_epsilon,
        max_work=max(0, min(max_work, view.turn.work_left)),
        stop=view.turn.expired,
    )
    view.turn.count_work(ppr.work, capped=ppr.capped)
    return ppr


def _sort(
    numbers: Numbers,
    scores: Floats,
    top: int | None,
) -> tuple[Numbers, Floats]:
    """Nodes with a score, best first, equal ones by number."""
    reached = scores > 0.0
    numbers = numbers[reached]
    scores = scores[reached]
    order = np.lexsort((numbers, -scores))
    return numbers[order[:top]], scores[order[:top]]


def _by_degree(walk: Walk, damping: float) -> tuple[Numbers, Floats]:
    """The restart nodes with what a walk leaves there at once, equal ones by degree: the last
    resort.
    """
    mass = walk.residual[walk.touched]
    order = np.lexsort((walk.touched, -walk.rows.count(walk.touched), -mass))
    return walk.touched[order], (1.0 - damping) * mass[order]


def _restart(restart: Numbers, weights: Floats) -> tuple[Numbers, Floats]:
    """Distinct restart nodes with weights that sum to 1; a weight that is not positive restarts
    nowhere.
    """
    numbers = np.asarray(restart, np.int64)
    mass = np.asarray(weights, np.float64)

    if numbers.shape != mass.shape or not np.isfinite(mass).all():
        raise BadQuery(
            f"{len(numbers)} restart nodes need as many finite weights, not {mass.shape}"
        )

    restarts = mass > 0
    distinct, place = np.unique(numbers[restarts], return_inverse=True)
    total: Floats = np.bincount(
        place,
        mass[restarts],
        minlength=len(distinct),
    ).astype(np.float64)
    return distinct, total / max(float(total.sum()), np.finfo(np.float64).tiny)


# Forward push: personalized PageRank that touches only what the restart reaches (Andersen, Chung
# and Lang, 2006). A node that holds more residual than epsilon times its degree keeps a share and
# pushes the rest to its neighbours, so that at the end, for every node v, 0 <= exact(v) -
# estimate(v) <= epsilon * degree(v) because the walk is reversible: degree(u) * ppr(u -> v) =
# degree(v) * ppr(v -> u). All nodes that hold too much push at once, so the result does not depend
# on how nodes are numbered. Degrees are not stored: a row is read only until its sum shows that the
# node need not push, and all reading together stays within a constant of 1 / (epsilon * (1 -
# damping)).


class Walk:
    """One question's push: `run` it, with a lower epsilon again if need be, then read its
    `estimate` and `residual`.

    `restart` are distinct, `weights` sum to 1. `touched` is every node that was reached, in no
    order.
    """

    def __init__(
        self,
        rows: Rows,
        restart: Numbers,
        weights: Floats,
    ) -> None:
        self.rows = rows
        self.touched = restart
        self.estimate = np.zeros(rows.size)
        self.residual = np.zeros(rows.size)
        self._is_touched = np.zeros(rows.size, np.bool_)
        self.residual[restart] = weights
        self._is_touched[restart] = True

    def run(
        self,
        epsilon: float,
        damping: float,
        max_work: int,
        stop: Callable[[], bool],
    ) -> bool:
        """Push until no node holds more than epsilon times its degree; False when work or clock
        ended it first.
        """
        while True:
            residuals = self.residual[self.touched]
            nodes = self.touched[residuals > epsilon * self.rows.total[self.touched]]
            self.rows.sum_until(
                nodes,
                self.residual[nodes] / epsilon,
                max_work,
            )
            nodes = nodes[self.residual[nodes] > epsilon * self.rows.total[nodes]]

            if not len(nodes):
                return True

            entry_counts = np.cumsum(self.rows.count(nodes))
            is_known = np.logical_and.accumulate(self.rows.are_read(nodes))
            fits = (self.rows.work + entry_counts <= max_work) & is_known
            slices = np.flatnonzero(np.diff(entry_counts[fits] // SLICE)) + 1
            parts = np.split(nodes[fits], slices)

            if not self._push(parts, damping, stop) or not fits.all():
                return False

    def bound(self) -> float:
        """The most residual that a node holds for each unit of its degree."""
        residuals = self.residual[self.touched]
        degrees = self.rows.total[self.touched][residuals > 0.0]

        if not degrees.all():
            return np.inf

        return float((residuals[residuals > 0.0] / degrees).max(initial=0.0))

    def _push(
        self,
        parts: Sequence[Numbers],
        damping: float,
        stop: Callable[[], bool],
    ) -> bool:
        """Let nodes push what they hold now, all of them, unless the clock ends it."""
        masses = [self.residual[nodes] for nodes in parts]
        for nodes, mass in zip(parts, masses, strict=True):
            degree = self.rows.total[nodes]
            walks_on = np.where(degree > 0.0, damping, 0.0)  # without edges it stays
            self.estimate[nodes] += (1.0 - walks_on) * mass
            self.residual[nodes] -= mass
            entries = self.rows.read(nodes)
            passed_on = walks_on * mass / np.maximum(degree, np.finfo(np.float64).tiny)
            share = entries.weight * passed_on[entries.place]
            gets_some = share > 0.0
            target = entries.target[gets_some]
            np.add.at(self.residual, target, share[gets_some])
            new = np.unique(target[~self._is_touched[target]])
            self._is_touched[new] = True
            self.touched = np.concatenate([self.touched, new])

            if stop():
                return False

        return True
