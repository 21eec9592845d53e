"""What judged answers say about an edge or a passage: a Beta posterior with its interval, and a check of calibration.

Every judgement of something that was shown is one trial. Before any, a thing is as likely good as the prior says; each
judgement moves it, and the interval says how far it could still move (requirement X-91).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.telemetry import Feedback, ShownResults

Key = tuple[str, ...]  # the ids of two neighbours, in order of text; or of one passage
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """Beta(alpha, beta) over the chance that a thing is good."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """The expected chance."""
        return self.alpha / (self.alpha + self.beta)

    def interval(self, level: float = 0.9) -> tuple[float, float]:
        """The central interval that holds the chance with this probability."""
        from scipy.special import betaincinv

        tail = (1.0 - level) / 2.0
        low, high = betaincinv(self.alpha, self.beta, np.array([tail, 1.0 - tail]))
        return float(low), float(high)


@dataclass(frozen=True)
class Judgement:
    """One shown thing, by the keys of what it was made of, and whether somebody found it good."""

    keys: tuple[Key, ...]
    good: bool


@dataclass(frozen=True)
class Beliefs:
    """Posteriors by key; what was never judged has the prior."""

    counts: Mapping[Key, tuple[int, int]] = field(default_factory=dict)
    prior: tuple[float, float] = (1.0, 1.0)

    def of(self, keys: Iterable[Key]) -> Posterior:
        """What all judgements of these keys together say."""
        known = [self.counts[key] for key in set(keys) if key in self.counts]
        good, bad = sum(one[0] for one in known), sum(one[1] for one in known)
        return Posterior(self.prior[0] + good, self.prior[1] + bad)

    def knows(self, keys: Iterable[Key]) -> bool:
        """Whether any of these was ever judged."""
        return any(key in self.counts for key in keys)


def learn_beliefs(judgements: Iterable[Judgement], prior: tuple[float, float] = (1.0, 1.0)) -> Beliefs:
    """Count the judgements; their order does not matter."""
    counts: dict[Key, tuple[int, int]] = {}
    for one in judgements:
        for key in set(one.keys):
            good, bad = counts.get(key, (0, 0))
            counts[key] = (good + one.good, bad + (not one.good))
    return Beliefs(counts, prior)


def judgements_in(logs: Iterable[Mapping[str, Any]]) -> list[Judgement]:
    """The judgements in rows of `query_logs` (their `results` and `feedback`, as JSON text or parsed)."""
    found: list[Judgement] = []
    for log in logs:
        said = _parse(log.get("feedback"))
        if not said:
            continue
        feedback, shown = Feedback.model_validate(said), ShownResults.model_validate(_parse(log["results"]))
        for judged, good in ((feedback.good, True), (feedback.bad, False)):
            for path in shown.paths:
                if path.rank in judged.paths:
                    ends = zip(path.nodes, path.nodes[1:], strict=False)
                    found.append(Judgement(tuple(pair(one, other) for one, other in ends), good))
            found += [Judgement(((one.id,),), good) for one in shown.passages if one.rank in judged.passages]
    return found


def pair(one: str, other: str) -> Key:
    """The key of the edge between two nodes, whichever way it points."""
    return (one, other) if one <= other else (other, one)


@dataclass(frozen=True)
class Calibration:
    """How far said and seen differ: `error` is the mean gap weighted by bin (ECE); bins are (said, seen, trials)."""

    error: float
    bins: tuple[tuple[float, float, int], ...]


def calibration(
    said: Sequence[float] | Floats, seen: Sequence[bool] | NDArray[np.bool_], bins: int = 10
) -> Calibration:
    """Expected calibration error of chances in [0, 1] against what happened, in bins of equal width."""
    chances, happened = np.asarray(said, np.float64), np.asarray(seen, np.float64)
    if not len(chances):
        return Calibration(0.0, ())
    place = np.minimum((chances * bins).astype(np.int64), bins - 1)
    trials = np.bincount(place, minlength=bins)
    rows = [
        (float(chances[place == one].mean()), float(happened[place == one].mean()), int(trials[one]))
        for one in np.flatnonzero(trials).tolist()
    ]
    return Calibration(sum(abs(a - b) * n for a, b, n in rows) / len(chances), tuple(rows))


def _parse(value: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(value) if isinstance(value, str) and value else dict(value or {})
    return parsed
