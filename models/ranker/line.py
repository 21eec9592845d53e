"""The line of the default ranking: a few coefficients beside the shipped weights, fitted by choice among candidates.

A passage's score is z + X d: z what the shipped weights say, in units of its own spread, X the columns, d what is
fitted. The loss is that of a choice, -log of the softmax at the gold, plus a ridge on d: where there is nothing to
learn d is 0, which is the shipped ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RIDGE = 1.0


@dataclass(frozen=True)
class Choice:
    """The candidates of one question. `gold` (parts, n): which candidates serve each part of the answer."""

    worth: Floats
    columns: Floats
    gold: NDArray[np.bool_]
    weight: float = 1.0

    def ranking(self, line: Floats) -> tuple[str, ...]:
        """The candidates by this line, best first: the part that each serves, or its own number."""
        order = np.argsort(-(self.worth + self.columns @ line), kind="stable").tolist()
        parts = [f"part {int(self.gold[:, row].argmax())}" if self.gold[:, row].any() else str(row) for row in order]
        return tuple(parts)

    @property
    def parts(self) -> frozenset[str]:
        """What `ranking` calls the parts of the answer, found or not."""
        return frozenset(f"part {number}" for number in range(len(self.gold)))


def fit_line(choices: Sequence[Choice], width: int, ridge: float = RIDGE) -> Floats:
    """(width,) the coefficients of the columns; zeros where no choice has something to choose."""
    from scipy.optimize import minimize  # two seconds to load, and only fitting needs it

    served = [(one, np.asarray(one.gold.any(axis=0), np.bool_)) for one in choices]
    taught = [(one, good) for one, good in served if 0 < good.sum() < len(good)]
    if not taught:
        return np.zeros(width)
    total = sum(one.weight for one, _ in taught)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        """The loss and its gradient at log temperature and coefficients."""
        steep, line = np.exp(parameters[0]), parameters[1:]
        value, slope = 0.0, np.zeros(len(parameters))
        for one, good in taught:
            score = one.worth + one.columns @ line
            chance = np.exp(steep * (score - score.max()))
            chance /= chance.sum()
            hit = float(chance[good].sum()) + 1e-12
            pull = one.weight * (chance - np.where(good, chance, 0.0) / hit)
            value -= one.weight * float(np.log(hit))
            slope[0] += steep * float(pull @ score)
            slope[1:] += steep * (one.columns.T @ pull)
        slope /= total
        slope[1:] += 2.0 * ridge * line
        return value / total + ridge * float(line @ line), slope

    start = np.concatenate([[0.5], np.zeros(width)])
    found: Floats = minimize(loss, start, jac=True, method="L-BFGS-B").x[1:]
    return found.round(6)
