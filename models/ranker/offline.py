"""What a new ranker would have earned, told from what an old one showed: importance weighting, with an interval.

The value of a ranker is how many of the results it shows are found good, per question. What the old ranker showed is
weighted by how much likelier, or less likely, the new one is to show the same result at the same rank (Horvitz and
Thompson, 1952; for rankings Li, Kim and Zitouni, 2015: what a result earns depends on it and its rank alone). That
needs chances above 0, so either the old ranker explored (`propensity` in `query_logs`), or a model of how ranks are
looked at stands in for them (`by_examination`, after Joachims, Swaminathan and Schnabel, 2017).

Weights above `clip` are cut to it. Nothing is negative here, so cutting can only lower the estimate by inverse
propensity: it errs on the side of what serves already. `clipped` says how many rows were cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class LoggedResults:
    """What was shown, a row a result, (n,) each.

    `question` numbers the question from 0, `reward` is what the result earned, `propensity` the chance that the old
    ranker put it at its rank, above 0, `target` the chance that the new one would.
    """

    question: Longs
    reward: Doubles
    propensity: Doubles
    target: Doubles

    def __post_init__(self) -> None:
        if len(self.propensity) and not self.propensity.min() > 0.0:
            raise ValueError("a propensity is 0: what cannot have been shown cannot be weighted; leave it out")

    @property
    def questions(self) -> int:
        """How many there are."""
        return int(self.question.max(initial=-1)) + 1


@dataclass(frozen=True)
class Estimate:
    """The value of a ranker per question, between `low` and `high` at the level asked for.

    `effective` is how many rows of equal weight would say as much; far fewer than there are means the rankers differ
    more than the log can tell.
    """

    value: float
    low: float
    high: float
    questions: int
    effective: float
    clipped: float


def inverse_propensity(logged: LoggedResults, *, clip: float = np.inf, level: float = 0.95) -> Estimate:
    """Unbiased where nothing is cut, whatever the rewards; its spread grows with the weights."""
    weights = _weights(logged, clip)
    earned = _by_question(logged, weights * logged.reward)
    return _estimate(logged, weights, earned, float(earned.mean()) if len(earned) else 0.0, clip, level)


def self_normalised(logged: LoggedResults, *, clip: float = np.inf, level: float = 0.95) -> Estimate:
    """Divided by the weights that came up instead of those expected: a little biased, much steadier.

    The interval is that of the ratio, to first order (Swaminathan and Joachims, 2015).
    """
    weights = _weights(logged, clip)
    total = weights.sum()
    if not total > 0.0:
        return Estimate(0.0, -np.inf, np.inf, logged.questions, 0.0, 0.0)
    rows = len(weights) / logged.questions
    each = float((weights * logged.reward).sum() / total)
    residual = _by_question(logged, weights * (logged.reward - each)) * len(weights) / total
    return _estimate(logged, weights, each * rows + residual, each * rows, clip, level)


def doubly_robust(
    logged: LoggedResults, predicted: Doubles, expected: Doubles, *, clip: float = np.inf, level: float = 0.95
) -> Estimate:
    """A model's guess, corrected by what it got wrong: unbiased when the propensities are right or the model is.

    `predicted` (n,) is what the model thought each shown result would earn at its rank, `expected` (n_questions,) what
    it thinks the new ranker's list earns. (Dudik, Langford and Li, 2011.)
    """
    weights = _weights(logged, clip)
    earned = expected + _by_question(logged, weights * (logged.reward - predicted))
    return _estimate(logged, weights, earned, float(earned.mean()) if len(earned) else 0.0, clip, level)


def by_examination(question: Longs, reward: Doubles, rank: Longs, new_rank: Longs, power: float) -> LoggedResults:
    """The rows of a log without exploration: a rank is looked at with the chance rank ** -power.

    `rank` is where the result stood, from 1, `new_rank` where the new ranker puts it, 0 where it leaves it out.
    """
    chances = rank.astype(np.float64) ** -power
    target = np.where(new_rank > 0, np.maximum(new_rank, 1).astype(np.float64) ** -power, 0.0)
    return LoggedResults(question, reward, chances, target)


def _weights(logged: LoggedResults, clip: float) -> Doubles:
    weights: Doubles = np.minimum(logged.target / logged.propensity, clip)
    return weights


def _by_question(logged: LoggedResults, values: Doubles) -> Doubles:
    return np.bincount(logged.question, weights=values, minlength=logged.questions).astype(np.float64)


def _estimate(
    logged: LoggedResults, weights: Doubles, earned: Doubles, value: float, clip: float, level: float
) -> Estimate:
    """The value with Student's interval over questions: results of one question are not independent."""
    questions, reach = len(earned), np.inf
    if questions > 1:
        reach = float(stdtrit(questions - 1, 0.5 + level / 2.0) * earned.std(ddof=1) / np.sqrt(questions))
    squares = float((weights**2).sum())
    effective = float(weights.sum() ** 2 / squares) if squares else 0.0
    cut = float(np.mean(logged.target / logged.propensity > clip)) if len(weights) else 0.0
    return Estimate(value, value - reach, value + reach, questions, effective, cut)
