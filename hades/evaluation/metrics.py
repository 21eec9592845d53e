"""Figures of a ranking against its gold, and how sure they are. Arrays in, numbers out; every resampling is seeded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
RESAMPLES = 10_000
SEED = 20260101


def recall_at(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Share of the gold among the first k."""
    return len(gold.intersection(ranked[:k])) / len(gold)


def all_gold_at(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """1 when all of the gold is among the first k, else 0."""
    return float(gold.issubset(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], gold: frozenset[str]) -> float:
    """1 over the place of the first gold; 0 when there is none."""
    return next((1.0 / place for place, one in enumerate(ranked, 1) if one in gold), 0.0)


def ndcg_at(ranked: Sequence[str], gold: frozenset[str], k: int) -> float:
    """Discounted gain of the first k over the best that could be had."""
    gain = sum(1.0 / np.log2(place + 1) for place, one in enumerate(ranked[:k], 1) if one in gold)
    best = sum(1.0 / np.log2(place + 1) for place in range(1, min(len(gold), k) + 1))
    return float(gain / best)


def interval(values: Values, level: float = 0.95) -> tuple[float, float]:
    """Bootstrap interval of the mean over questions."""
    if not len(values):
        return (0.0, 0.0)
    means = _resample_means(values)
    tail = (1.0 - level) / 2
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return (float(low), float(high))


@dataclass(frozen=True)
class Comparison:
    """One ranking against another on the same questions: mean difference, its interval, two-sided p."""

    difference: float
    low: float
    high: float
    p: float


def compare(ours: Values, theirs: Values) -> Comparison:
    """Paired: the signs of the differences are flipped at random to see how often chance does as well."""
    difference = ours - theirs
    if not len(difference) or not difference.any():
        return Comparison(0.0, 0.0, 0.0, 1.0)
    low, high = interval(difference)
    random = np.random.default_rng(SEED)
    seen = abs(difference.mean())
    as_good = 0
    for _ in range(RESAMPLES // 1000):
        signs = random.choice(np.array([-1.0, 1.0]), size=(1000, len(difference)))
        as_good += int((np.abs((signs * difference).mean(axis=1)) >= seen - 1e-12).sum())
    return Comparison(float(difference.mean()), low, high, (as_good + 1) / (RESAMPLES + 1))


def _resample_means(values: Values) -> Values:
    random = np.random.default_rng(SEED)
    means = np.empty(RESAMPLES)
    for start in range(0, RESAMPLES, 1000):
        rows = random.integers(0, len(values), size=(1000, len(values)))
        means[start : start + 1000] = values[rows].mean(axis=1)
    return means
