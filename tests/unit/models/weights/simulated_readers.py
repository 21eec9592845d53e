"""Readers with known preferences, so that what is learned from them can be held against the truth.

The position-based click model (Richardson, Dominowska and Ragno, 2007): a result is found good when
it is looked at, which its rank decides, and when it is worth it, which the result decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Longs


def examination(ranks: Longs, power: float) -> Floats:
    """The chance that a result is looked at: rank ** -power, so 1 for the first; `ranks` count from
    1.
    """
    looked_at: Floats = ranks.astype(np.float64) ** -power
    return looked_at


def found_good(worth: Floats, power: float, chance: np.random.Generator) -> NDArray[np.bool_]:
    """Which results readers mark as good: `worth` is (n_turns, n_shown), the best-placed first."""
    seen = chance.random(worth.shape) < examination(np.arange(1, worth.shape[1] + 1), power)
    return seen & (chance.random(worth.shape) < worth)
