"""What another order of the results would have earned, told from judged turns before it serves anybody."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hades.stages.weights.feedback import GOOD, JudgedTurn, ShownResult
from models.ranker.offline import Estimate, by_examination, inverse_propensity

Ranks = Callable[[JudgedTurn, Sequence[ShownResult]], Sequence[int]]


def value_of(
    turns: Sequence[JudgedTurn], ranks: Ranks, *, power: float, what: str = "passages", clip: float = np.inf
) -> Estimate:
    """Good results per question if the shown `what` (`paths` or `passages`) had stood in another order.

    `ranks` gives the new rank of each result of a turn, from 1, or 0 to leave it out. A rank is taken to be looked at
    with the chance rank ** -power (`learning.position_power`).
    """
    question, reward, old, new = list[int](), list[float](), list[int](), list[int]()
    for number, turn in enumerate(turns):
        shown: Sequence[ShownResult] = getattr(turn, what)
        question += [number] * len(shown)
        reward += [float(one.verdict == GOOD) for one in shown]
        old += [one.rank for one in shown]
        new += ranks(turn, shown)
    logged = by_examination(
        np.array(question, np.int64),
        np.array(reward, np.float64),
        np.array(old, np.int64),
        np.array(new, np.int64),
        power,
    )
    return inverse_propensity(logged, clip=clip)
