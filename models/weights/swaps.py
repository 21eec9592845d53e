"""Lists that are tried out another way now and then: neighbours change places, with a chance that is known afterwards.

Only neighbours, so that an answer is never much worse for it; both ways of pairing them, so that every two neighbouring
ranks can be compared.
"""

from __future__ import annotations

import numpy as np

from models.weights.components import Longs
from models.weights.pairwise import Doubles


def swap_places(turns: int, length: int, share: float, chance: np.random.Generator) -> Longs:
    """(turns, length): which place of the original list each result comes from, 0 first.

    Neighbours are paired from the first or from the second place on, each with chance one half, and every pair changes
    places with chance `share`.
    """
    place = np.tile(np.arange(length), (turns, 1))
    begins = chance.integers(0, 2, turns)
    flips = chance.random((turns, length // 2)) < share
    for begin in (0, 1):
        for pair, left in enumerate(range(begin, length - 1, 2)):
            rows = np.flatnonzero(flips[:, pair] & (begins == begin))
            place[rows, left], place[rows, left + 1] = left + 1, left
    return place


def propensities(place: Longs, share: float) -> Doubles:
    """The chance that `swap_places` puts each result where it stands, in the shape of `place`."""
    length = place.shape[-1]
    here = np.arange(length)
    neighbours = (here > 0).astype(np.float64) + (here < length - 1)
    chances: Doubles = np.where(place == here, 1.0 - share * neighbours / 2.0, share / 2.0)
    return chances
