"""Confidence that means what it says: scores become the share of candidates that were right at that score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BINS = 10


def isotonic(scores: Floats, right: Floats, weights: Floats | None = None, most: int = 64) -> tuple[Floats, Floats]:
    """Knots (score, chance) of the best rising function, by pooling adjacent violators; at most `most` of them.

    Between the knots the chance is read off a straight line, beyond them it stays.
    """
    order = np.argsort(scores, kind="stable")
    own = np.ones(len(scores)) if weights is None else weights
    level: list[float] = []
    mass: list[float] = []
    middle: list[float] = []
    for row in order.tolist():
        level.append(float(right[row]))
        mass.append(float(own[row]))
        middle.append(float(scores[row]))
        while len(level) > 1 and level[-2] >= level[-1]:
            total = mass[-2] + mass[-1]
            level[-2] = (level[-2] * mass[-2] + level[-1] * mass[-1]) / total
            middle[-2] = (middle[-2] * mass[-2] + middle[-1] * mass[-1]) / total
            mass[-2] = total
            del level[-1], mass[-1], middle[-1]
    kept = np.unique(np.linspace(0, len(level) - 1, min(most, len(level))).astype(np.int64))
    return np.array(middle)[kept], np.clip(np.array(level)[kept], 0.001, 0.999)


def expected_calibration_error(chance: Floats, right: Floats, bins: int = BINS) -> float:
    """Mean distance between what was said and what came true, over bins of equal width, by how many lie in each."""
    place = np.minimum((chance * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    said = np.bincount(place, chance, bins)
    came = np.bincount(place, right, bins)
    return float(np.abs(said - came).sum() / max(1, counts.sum()))


def reliability(chance: Floats, right: Floats, bins: int = BINS) -> list[tuple[float, float, int]]:
    """For each bin that holds any: mean chance, share that came true, how many."""
    place = np.minimum((chance * bins).astype(np.int64), bins - 1)
    rows = []
    for one in range(bins):
        inside = place == one
        if inside.any():
            rows.append((float(chance[inside].mean()), float(right[inside].mean()), int(inside.sum())))
    return rows


def doubt_threshold(best: Floats, is_answerable: NDArray[np.bool_], most_lost: float = 0.02) -> float:
    """The highest confidence below which so few of the questions that can be answered lie: silence is a cost too."""
    answerable = np.sort(best[is_answerable])
    return float(answerable[int(most_lost * len(answerable))]) if len(answerable) else 0.0
