"""Personalized PageRank: push kernel, local, remote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from hades.errors import BadQuery
from hades.ports.graph import ALWAYS, Adjacency, Numbers
from hades.ports.view import GraphView
from hades.retrieval.core.words import moments
from hades.retrieval.walks.push import DEGREE, ESTIMATE, RESIDUAL, Walk
from schemas.ids import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction


# Personalized PageRank on the undirected weighted graph: local, bounded in work, with a bound on its error. Where
# the adjacency lies in memory a compiled kernel pushes (`push`); over a network the same rule goes by `expand`
# (`push_remote`). Damping is the chance to walk on: HippoRAG's .5 by default, .85 for the classical PageRank.


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
    graph: GraphView | Adjacency,
    restart: Numbers,
    weights: Floats,
    *,
    damping: float = DAMPING,
    epsilon: float = EPSILON,
    relaxed_epsilon: float | None = None,
    max_work: int = MAX_WORK,
    mask: Mask = Mask(),
    types: Sequence[str] | None = None,
    factors: Mapping[str, float] | None = None,
    top: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Ppr:
    """Where a walk is that starts over at `restart` (in proportion to `weights`) with chance 1 - damping a step.

    `types` keeps edges of these types, `factors` multiplies the weights of a type; an adjacency alone knows types by
    code only, so there both must be left out. A walk that has not converged after two thirds of the work goes on with
    the `relaxed_epsilon`, if it is greater: a wider bound that holds everywhere is worth more than a narrow one that
    holds in some places. With `top` epsilon shrinks until the first `top` nodes no longer change.
    `stop` is asked every few milliseconds. When the work does not allow a single push the restart nodes come back by
    weight and degree, with an infinite bound: a defined answer, never an exception (requirement E15).
    """
    nodes, mass = _restart(restart, weights)
    if not 0.0 <= damping < 1.0 or epsilon <= 0.0:
        raise BadQuery(f"need 0 <= damping < 1 and epsilon > 0, not {damping} and {epsilon}")
    if not len(nodes):
        return Ppr(np.empty(0, np.int64), np.empty(0), 0.0, 0.0, 0, False)
    adjacency = graph if isinstance(graph, Adjacency) else graph.adjacency()
    if adjacency is None:
        assert not isinstance(graph, Adjacency)
        named = _by_name(graph.type_names, types, factors)
        with RemoteWalk(graph, nodes, mass, mask=mask, factors=named) as remote:
            return _push(remote, damping, epsilon, relaxed_epsilon, max_work, top, stop)
    by_code = np.ones(256) if isinstance(graph, Adjacency) else weigh_types(graph, types, factors)
    when = (int(ALWAYS), int(ALWAYS)) if mask.is_open else moments(mask)
    with Walk(adjacency, nodes, mass, factors=by_code, moments=when) as walk:
        return _push(walk, damping, epsilon, relaxed_epsilon, max_work, top, stop)


def weigh_types(view: GraphView, types: Sequence[str] | None, factors: Mapping[str, float] | None) -> Floats:
    """(types,) the factor of each type by its code; 0 where it is not wanted. Read-only: a turn asks several times."""
    wanted = None if types is None else tuple(types)
    return _weigh_types(view.type_names, wanted, tuple((factors or {}).items()))


@lru_cache(maxsize=64)
def _weigh_types(
    names: tuple[str, ...], types: tuple[str, ...] | None, factors: tuple[tuple[str, float], ...]
) -> Floats:
    known = _by_name(names, types, dict(factors))
    by_code = np.array([known.get(name, 0.0) for name in names], np.float64)
    by_code.setflags(write=False)
    return by_code


def _push(
    walk: Walk | RemoteWalk,
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


def _run(walk: Walk | RemoteWalk, epsilon: float, damping: float, max_work: int, stop: Callable[[], bool]) -> bool:
    """Push in slices, so that the clock can end it in the middle."""
    limit = walk.work
    while True:
        limit = min(max_work, limit + _SLICE)
        if walk.run(epsilon, damping, limit):
            return True
        if limit >= max_work or stop():
            return False


def _rank(walk: Walk | RemoteWalk, top: int | None) -> tuple[Numbers, Floats]:
    numbers = walk.numbers
    return _sort(numbers, walk.values(numbers, ESTIMATE), top)


def _sort(numbers: Numbers, scores: Floats, top: int | None) -> tuple[Numbers, Floats]:
    """Nodes with a score, best first, equal ones by number."""
    reached = scores > 0.0
    numbers, scores = numbers[reached], scores[reached]
    order = np.argsort(-scores)
    ordered = scores[order]
    repeats = ordered[1:] == ordered[:-1]
    if repeats.any():  # only equal scores are put in order of their numbers: sorting by one key is several times faster
        tied = np.flatnonzero(np.append(repeats, False) | np.append(False, repeats))
        order[tied] = order[tied][np.lexsort((numbers[order[tied]], -ordered[tied]))]
    return numbers[order[:top]], scores[order[:top]]


def _by_degree(walk: Walk | RemoteWalk) -> tuple[Numbers, Floats]:
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


def _by_name(
    names: Sequence[str], types: Sequence[str] | None, factors: Mapping[str, float] | None
) -> dict[str, float]:
    wanted = names if types is None else tuple(types)
    unknown = sorted({*wanted, *(factors or {})} - set(names))
    if unknown:
        raise BadQuery(f"{unknown[0]!r} is not an edge type; there are {', '.join(names)}")
    return {name: (factors or {}).get(name, 1.0) for name in wanted}


# The rule of `push` where the adjacency does not lie in memory: rows come by `expand`, many nodes a question. A row
# is asked for in growing pieces, heaviest first, and only until its sum shows whether the node must push, so a hub
# is not fetched for the sake of its degree.


_ANY: Final = cast("Direction", "any")
_BATCH = 256  # nodes asked for at once
_FIRST_PIECE, _GROWTH = 64, 8  # entries of a row that are asked for first, and how that grows


class _Row:
    """What is known of a node's row: `whole` once all of it is."""

    def __init__(self) -> None:
        self.targets: Numbers = np.empty(0, np.int64)
        self.weights: Floats = np.empty(0)
        self.degree = 0.0
        self.asked = 0
        self.whole = False


class RemoteWalk:
    """As `push.Walk`, by questions to a view."""

    def __init__(
        self, view: GraphView, restart: Numbers, weights: Floats, *, mask: Mask, factors: Mapping[str, float]
    ) -> None:
        self._view, self._mask = view, mask
        self._types = [name for name, factor in factors.items() if factor > 0.0]
        self._factors = np.array([factors.get(name, 0.0) for name in view.type_names])
        self._estimate: dict[int, float] = {}
        self._residual: dict[int, float] = dict(zip(restart.tolist(), weights.tolist(), strict=True))
        self._rows: dict[int, _Row] = {}
        self.work = 0

    def run(self, epsilon: float, damping: float, max_work: int) -> bool:
        """See `Walk.run`."""
        while True:
            waiting = [node for node, held in self._residual.items() if held > epsilon * self._row(node).degree]
            if not waiting:
                return True
            batch = sorted(waiting, key=lambda node: (-self._residual[node], node))[:_BATCH]
            unread = [node for node in batch if not self._row(node).whole]
            if unread and not self._read_on(unread, max_work):
                return False
            for node in batch:
                row = self._row(node)
                if row.whole and self._residual[node] > epsilon * row.degree:
                    self._push(node, row, damping)

    @property
    def numbers(self) -> Numbers:
        """See `Walk.numbers`."""
        return np.array(sorted(self._residual), np.int64)

    def values(self, numbers: Numbers, column: int) -> Floats:
        """See `Walk.values`."""
        rows = [
            (self._estimate.get(node, 0.0), self._residual[node], self._row(node).degree, float(self._row(node).asked))
            for node in numbers.tolist()
        ]
        return np.array([row[column] for row in rows], np.float64)

    def read(self, numbers: Numbers) -> tuple[Floats, Floats, Floats]:
        """See `Walk.read`."""
        return self.values(numbers, ESTIMATE), self.values(numbers, RESIDUAL), self.values(numbers, DEGREE)

    def entries(self, numbers: Numbers) -> Numbers:
        """See `Walk.entries`."""
        return self._view.degree(numbers, direction=_ANY)

    def _row(self, node: int) -> _Row:
        return self._rows.setdefault(node, _Row())

    def _read_on(self, nodes: list[int], max_work: int) -> bool:
        """One more piece of each row; False when the work does not allow it."""
        fanout = max(_FIRST_PIECE, _GROWTH * max(self._row(node).asked for node in nodes))
        if not self._types:
            for node in nodes:
                self._row(node).whole = True
            return True
        found = self._view.expand(
            np.array(nodes, np.int64),
            direction=_ANY,
            types=self._types,
            fanout=fanout,
            mask=self._mask,
            max_work=max(0, max_work - self.work),
        )
        self.work += found.work
        if found.capped:
            return False
        weights = found.weight * self._factors[found.type]
        for place, node in enumerate(nodes):
            ours, row = found.row == place, self._row(node)
            row.targets, row.weights = found.target[ours], weights[ours].astype(np.float64)
            row.degree, row.asked, row.whole = float(row.weights.sum()), fanout, int(ours.sum()) < fanout
        return True

    def _push(self, node: int, row: _Row, damping: float) -> None:
        held, self._residual[node] = self._residual[node], 0.0
        kept = held if row.degree == 0.0 else (1.0 - damping) * held
        self._estimate[node] = self._estimate.get(node, 0.0) + kept
        if row.degree > 0.0:
            shares = damping * held / row.degree * row.weights
            for near, share in zip(row.targets.tolist(), shares.tolist(), strict=True):
                if share > 0.0:
                    self._residual[near] = self._residual.get(near, 0.0) + share

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._rows.clear()
