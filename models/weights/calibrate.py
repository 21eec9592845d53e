"""The bias that puts the median weight where it should be.

Components are never negative, so without a bias no weight would fall below .5 and all would crowd above it.
"""

from __future__ import annotations

import numpy as np

from models.weights.components import Reals

BIAS_STEP = 0.05  # a grid, so that a few new edges do not shift every weight; it moves the median by .006 at most


def bias_for(sums: Reals, median: float = 0.5) -> float:
    """The bias on the grid with which about half of the edges weigh more than `median`; 0 without edges."""
    if not 0.0 < median < 1.0:
        raise ValueError(f"a median weight of {median} cannot be reached; give one between 0 and 1")
    if not len(sums):
        return 0.0
    wanted = float(np.log(median / (1.0 - median)))
    steps = round((wanted - float(np.median(sums))) / BIAS_STEP)
    return round(steps * BIAS_STEP, 6) + 0.0  # + 0.0: no minus zero in reports
