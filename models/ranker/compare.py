"""Two rankings of the same questions: how much better one is, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
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
    from scipy import stats  # two seconds to load, and only a comparison needs it

    gain = ours - theirs
    if not len(gain) or not gain.any():
        return Difference(0.0, 0.0, 0.0, 1.0)
    names, place, counts = np.unique(np.array(sets), return_inverse=True, return_counts=True)
    share = 1.0 / (len(names) * counts[place])  # what a question counts, so that every set counts the same
    groups = [np.repeat(gain[place == group], 1 + (counts[group] == 1)) for group in range(len(names))]  # two at least
    interval = stats.bootstrap(
        groups,
        lambda *samples, axis: np.mean([sample.mean(axis=axis) for sample in samples], axis=0),
        n_resamples=RESAMPLES,
        batch=500,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    flipped: Any = stats.permutation_test(
        (ours, theirs),
        lambda one, two, axis: ((one - two) * share).sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=500,
        rng=np.random.default_rng(SEED),
    )
    return Difference(float((gain * share).sum()), float(interval.low), float(interval.high), float(flipped.pvalue))


def auroc(positive: Floats, negative: Floats) -> float:
    """The chance that a positive value is above a negative one; ties count half."""
    if not len(positive) or not len(negative):
        return 0.5
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    up_to = np.searchsorted(ordered, positive, side="right")
    return float((below + up_to).mean() / (2 * len(negative)))


def reciprocal_rank(ranking: Sequence[str], gold: frozenset[str]) -> float:
    """1 over the place of the first gold; 0 when there is none."""
    return next((1.0 / place for place, one in enumerate(ranking, 1) if one in gold), 0.0)


def recall_at(ranking: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Share of the gold among the first k."""
    return len(gold.intersection(ranking[:k])) / len(gold)
