"""Whether what was learned orders choices it has not seen: two scorings compared on the same held-out pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.weights.pairwise import Doubles, Pairs

_EQUAL = 1e-9  # scores so near are a tie, which counts one half


@dataclass(frozen=True)
class Comparison:
    """Mean accuracy over held-out turns before and after, and the difference with its interval."""

    turns: int
    before: float
    after: float
    difference: float
    low: float
    high: float


def accuracy_by_turn(scores: Doubles, pairs: Pairs) -> Doubles:
    """The weighted share of each turn's pairs that the scores order as the person did, (n_turns,) in order of turn."""
    margin = scores[pairs.preferred] - scores[pairs.other]
    right = np.where(margin > _EQUAL, 1.0, np.where(margin < -_EQUAL, 0.0, 0.5))
    _, turn = np.unique(pairs.turn, return_inverse=True)
    accuracy: Doubles = np.bincount(turn, right * pairs.weight) / np.bincount(turn, pairs.weight)
    return accuracy


def compare(before: Doubles, after: Doubles, pairs: Pairs, level: float = 0.95) -> Comparison:
    """How much better `after` orders the pairs; a turn counts once however many pairs it gave.

    The interval is Student's, over turns; with a single turn it is unbounded, with none there is nothing to say.
    """
    if not len(pairs):
        return Comparison(0, 0.0, 0.0, 0.0, -np.inf, np.inf)
    old, new = accuracy_by_turn(before, pairs), accuracy_by_turn(after, pairs)
    gain, turns = new - old, len(new)
    mean, reach = float(gain.mean()), np.inf
    if turns > 1:
        from scipy.special import stdtrit  # a tenth of a second to load, for nights that learned something

        reach = float(stdtrit(turns - 1, 0.5 + level / 2.0) * gain.std(ddof=1) / np.sqrt(turns))
    return Comparison(turns, float(old.mean()), float(new.mean()), mean, mean - reach, mean + reach)
