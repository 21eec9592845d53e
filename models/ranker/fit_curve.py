"""What both fits share: the curve of losses, and lists as rectangles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from models.ranker.dataset import Longs

Told = Callable[[str, int, int], None]  # what, done, of how many


@dataclass
class Curve:
    """Losses by epoch: of what is fitted, and of what is held out to know when to stop."""

    fitted: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)


def rectangle(values: NDArray[np.generic], starts: Longs) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    """Rows of lists as (lists, longest, ...), and which places are filled."""
    counts = np.diff(starts)
    longest = int(counts.max(initial=1))
    there = np.arange(longest) < counts[:, None]
    filled = np.zeros((len(counts), longest, *values.shape[1:]), values.dtype)
    filled[there] = values
    return filled, there
