"""Figures as reports write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def rounded(value: float | np.floating[Any]) -> float:
    """A figure as reports write it."""
    return round(float(value), 4)


def percentiles(times: Sequence[float], digits: int = 4) -> dict[str, float]:
    """The median and the time that one in twenty goes beyond."""
    return {f"p{share}": round(float(np.percentile(times, share)), digits) for share in (50, 95)}


def mean_of(values: Sequence[float]) -> float:
    """The mean as reports write it; 0 of none."""
    return rounded(np.mean(values)) if values else 0.0
