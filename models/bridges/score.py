"""What an edge and a path are worth, and which edges are bridges.

A path scores the mean log of its edges less a penalty for every edge after the first (requirement X-48): dividing the
sum of logs by the length, as the specification writes it, would reward long paths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]


def edge_logs(weight: Floats, boost: Floats, eps: float) -> Floats:
    """ln(weight * boost) of each edge, never below ln(eps); NaN where an edge has no weight."""
    return np.log(np.maximum(weight * boost, eps))


def path_score(logs: Sequence[float], penalty: float) -> float:
    """Mean log less `penalty` for each edge after the first; higher is better, 0 is the best there is."""
    return math.fsum(logs) / len(logs) - penalty * (len(logs) - 1)


def path_weight(logs: Sequence[float], penalty: float) -> float:
    """The score as a weight in [0, 1]: the geometric mean of the edges, discounted by length."""
    return min(1.0, math.exp(path_score(logs, penalty)))


def path_cost(logs: Sequence[float]) -> float:
    """What cheapest-path searches add up: the sum of -ln(weight * boost)."""
    return max(0.0, -math.fsum(logs))


def bridge_labels(weight: Floats, tail_topic: Longs, head_topic: Longs, never: Flags, threshold: float) -> Flags:
    """Which edges are bridges: heavy enough, of a type that may be one, between two topics (requirement X-46).

    A topic of -1 is none, and what has no topic joins none. Given L2 topics the same rule finds the strong bridges.
    """
    apart = (tail_topic >= 0) & (head_topic >= 0) & (tail_topic != head_topic)
    labels: Flags = apart & (np.nan_to_num(weight, nan=-1.0) >= threshold) & ~never
    return labels
