"""Two rankings of the same questions: how much better one is, how sure that is; resampling is seeded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RESAMPLES = 4_000
SEED = 20260101


@dataclass(frozen=True)
class Difference:
    """Mean difference, each set of questions counting the same; its 95% interval; two-sided p by flipped signs."""

    mean: float
    low: float
    high: float
    p: float


def difference(ours: Floats, theirs: Floats, sets: Sequence[str]) -> Difference:
    """Paired by question, resampled within each set."""
    gain = ours - theirs
    groups = [np.flatnonzero(np.array(sets) == name) for name in dict.fromkeys(sets)]
    if not groups or not gain.any():
        return Difference(0.0, 0.0, 0.0, 1.0)
    random = np.random.default_rng(SEED)
    seen = float(np.mean([gain[rows].mean() for rows in groups]))
    means, flipped = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    for rows in groups:
        own = gain[rows]
        means += own[random.integers(0, len(own), (RESAMPLES, len(own)))].mean(axis=1) / len(groups)
        signs = random.integers(0, 2, (RESAMPLES, len(own))) * 2 - 1
        flipped += (signs * own).mean(axis=1) / len(groups)
    low, high = np.quantile(means, [0.025, 0.975])
    p = (float((np.abs(flipped) >= abs(seen) - 1e-12).sum()) + 1) / (RESAMPLES + 1)
    return Difference(seen, float(low), float(high), p)


def reciprocal_rank(ranking: Sequence[str], gold: frozenset[str]) -> float:
    """1 over the place of the first gold; 0 when there is none."""
    return next((1.0 / place for place, one in enumerate(ranking, 1) if one in gold), 0.0)


def recall_at(ranking: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Share of the gold among the first k."""
    return len(gold.intersection(ranking[:k])) / len(gold)
