"""Points around planted directions."""

from __future__ import annotations

import numpy as np

from models.kernels import unit_rows
from models.topics.cluster import Labels, Vectors


def planted(
    groups: int, size: int, *, dimension: int = 16, spread: float = 0.1, seed: int = 0
) -> tuple[Vectors, Labels]:
    """Unit rows, `size` around each of the first axes, and which axis each is around."""
    labels = np.repeat(np.arange(groups), size)
    rows = np.random.default_rng(seed).standard_normal((groups * size, dimension)) * spread
    rows[np.arange(len(rows)), labels] += 1.0
    return unit_rows(rows.astype(np.float32)), labels


def same_partition(left: Labels, right: Labels) -> bool:
    """Whether both put exactly the same pairs together."""
    return bool(((left[:, None] == left) == (right[:, None] == right)).all())
