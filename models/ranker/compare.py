"""Two rankings of the same questions: how much better one is, how sure that is, and what a log tells of a new one."""

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


@dataclass(frozen=True)
class LoggedResults:
    """What was shown, a row a result, (n,) each.

    `question` numbers the question from 0, `reward` is what the result earned, `propensity` the chance that the old
    ranker put it at its rank, above 0, `target` the chance that the new one would.
    """

    question: Longs
    reward: Floats
    propensity: Floats
    target: Floats

    def __post_init__(self) -> None:
        if len(self.propensity) and not self.propensity.min() > 0.0:
            raise ValueError("a propensity is 0: what cannot have been shown cannot be weighted; leave it out")


@dataclass(frozen=True)
class Estimate:
    """The value of a ranker per question, between `low` and `high` at the level asked for.

    `effective` is how many rows of equal weight would say as much; far fewer than there are means the rankers differ
    more than the log can tell. `clipped` is the share of rows whose weight was cut.
    """

    value: float
    low: float
    high: float
    questions: int
    effective: float
    clipped: float


def inverse_propensity(logged: LoggedResults, *, clip: float = np.inf, level: float = 0.95) -> Estimate:
    """How many of the results that a new ranker shows would be found good, per question, from the log of an old one.

    What the old ranker showed is weighted by how much likelier the new one is to show the same result at the same rank
    (Horvitz and Thompson, 1952; for rankings Li, Kim and Zitouni, 2015). Unbiased where no weight is above `clip`;
    cutting can only lower it. Student's interval is over questions: results of one question are not independent.
    """
    questions = int(logged.question.max(initial=-1)) + 1
    ratio = logged.target / logged.propensity
    weights = np.minimum(ratio, clip)
    earned = np.bincount(logged.question, weights=weights * logged.reward, minlength=questions)
    value, reach = float(earned.mean()) if questions else 0.0, np.inf
    if questions > 1:
        from scipy import stats

        reach = float(stats.t.ppf(0.5 + level / 2.0, questions - 1) * earned.std(ddof=1) / np.sqrt(questions))
    squares = float((weights**2).sum())
    effective = float(weights.sum() ** 2 / squares) if squares else 0.0
    clipped = float(np.mean(ratio > clip)) if len(ratio) else 0.0
    return Estimate(value, value - reach, value + reach, questions, effective, clipped)


def by_examination(question: Longs, reward: Floats, rank: Longs, new_rank: Longs, power: float) -> LoggedResults:
    """The rows of a log without exploration: a rank is looked at with the chance rank ** -power.

    `rank` is where the result stood, from 1, `new_rank` where the new ranker puts it, 0 where it leaves it out.
    (Joachims, Swaminathan and Schnabel, 2017.)
    """
    chances = rank.astype(np.float64) ** -power
    target = np.where(new_rank > 0, np.maximum(new_rank, 1).astype(np.float64) ** -power, 0.0)
    return LoggedResults(question, reward, chances, target)
