"""The rule of `push` where the adjacency does not lie in memory: rows come by `expand`, many nodes a question.

A row is asked for in growing pieces, heaviest first, and only until its sum shows whether the node must push, so a hub
is not fetched for the sake of its degree.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers
from hades.ports.view import GraphView
from hades.retrieval.walks.push import DEGREE, ESTIMATE, RESIDUAL
from schemas.intervals import Mask

if TYPE_CHECKING:
    from hades.ports.store import Direction

Floats = NDArray[np.float64]

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
        self,
        view: GraphView,
        restart: Numbers,
        weights: Floats,
        *,
        mask: Mask,
        factors: Mapping[str, float],
        questions: int | None = None,
    ) -> None:
        self._view, self._mask, self._questions = view, mask, questions
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
            if self._questions is not None and any(not self._row(node).asked for node in unread):
                if not self._questions:
                    self._settle(damping)
                    return True
                self._questions -= 1
            if unread and not self._read_on(unread, max_work):
                if self._questions is None:
                    return False
                self._settle(damping)
                return True
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

    def _settle(self, damping: float) -> None:
        """End the walk where its questions do: what waits at a node counts there, and goes no further."""
        for node, held in self._residual.items():
            if held > 0.0:
                self._estimate[node] = self._estimate.get(node, 0.0) + (1.0 - damping) * held

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
