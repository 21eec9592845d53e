"""The best few of many, with ties settled the same way every time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def best(scores: NDArray[np.floating[Any]], ties: NDArray[np.integer[Any]], limit: int) -> NDArray[np.int64]:
    """Places of the `limit` highest scores, highest first; equal scores by `ties`, lowest first.

    Only what may be among them is sorted.
    """
    if limit <= 0:
        return np.empty(0, np.int64)
    if limit < len(scores):
        bar = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        candidates = np.flatnonzero(scores >= bar)
    else:
        candidates = np.arange(len(scores), dtype=np.int64)
    order = np.lexsort((ties[candidates], -scores[candidates]))
    return candidates[order[:limit]]
