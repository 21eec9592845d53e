"""The bias that puts the median weight where it should be.

Components are never negative, so without a bias no weight would fall below .5 and all would crowd above it.
"""

from __future__ import annotations

import numpy as np

from models.weights.components import Reals

BIAS_DECIMALS = 6


def bias_for(sums: Reals, median: float = 0.5) -> float:
    """The bias with which half of the edges weigh more than `median`; 0 without edges. A function of the sums alone."""
    if not 0.0 < median < 1.0:
        raise ValueError(f"a median weight of {median} cannot be reached; give one between 0 and 1")
    if not len(sums):
        return 0.0
    wanted = float(np.log(median / (1.0 - median)))
    return round(wanted - float(np.median(sums)), BIAS_DECIMALS) + 0.0  # + 0.0: no minus zero in reports
