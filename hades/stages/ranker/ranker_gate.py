"""Whether a challenger may serve: better than weights by hand and than the champion, beyond chance, and worse nowhere.

Judged are questions that it has not seen. The quality of an answer is the mean of reciprocal rank and recall at 5. The
95% interval of the mean difference must lie above zero, no set of questions may lose more than a point in either, and
confidence must mean what it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.ranker.compare import difference, recall_at, reciprocal_rank

Floats = NDArray[np.float64]
Ranking = Sequence[str]
DEPTH = 5
MOST_LOST = 0.01
MOST_MISCALIBRATED = 0.05
LEAST_QUESTIONS = 20


@dataclass(frozen=True)
class Quality:
    """Figures of one way to rank, a value a question."""

    mrr: Floats
    recall: Floats

    @property
    def both(self) -> Floats:
        """The mean of the two."""
        return (self.mrr + self.recall) / 2.0


@dataclass(frozen=True)
class Verdict:
    """Whether it may serve, why, and the figures that say so."""

    is_better: bool
    reason: str
    figures: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def quality(rankings: Sequence[Ranking], gold: Sequence[frozenset[str]]) -> Quality:
    """The figures of rankings of documents."""
    pairs = list(zip(rankings, gold, strict=True))
    return Quality(
        np.array([reciprocal_rank(ranking, own) for ranking, own in pairs]),
        np.array([recall_at(ranking, own, DEPTH) for ranking, own in pairs]),
    )


def decide(
    challenger: Quality,
    rivals: Mapping[str, Quality],
    sets: Sequence[str],
    calibration_error: float | None = None,
) -> Verdict:
    """Compare a challenger with each rival, of which weights by hand are one."""
    figures = {name: _figures(challenger, rival, sets) for name, rival in rivals.items()}
    if len(sets) < LEAST_QUESTIONS:
        return Verdict(False, f"{len(sets)} questions tell nothing; {LEAST_QUESTIONS} are needed", figures)
    for name, one in figures.items():
        low = one["quality"]["low"]
        if low <= 0.0:
            gained = one["quality"]["mean"]
            return Verdict(False, f"not better than {name}: {gained:+.4f}, interval from {low:+.4f}", figures)
        for own, lost in one["sets"].items():
            for measure in ("mrr", "recall"):
                if lost[measure] < -MOST_LOST:
                    return Verdict(False, f"worse than {name} on {own}: {measure} {lost[measure]:+.4f}", figures)
    if calibration_error is not None and calibration_error > MOST_MISCALIBRATED:
        return Verdict(False, f"confidence is off by {calibration_error:.3f}, at most {MOST_MISCALIBRATED}", figures)
    return Verdict(True, f"better than {' and '.join(rivals)}", figures)


def _figures(ours: Quality, theirs: Quality, sets: Sequence[str]) -> dict[str, Any]:
    names = np.array(sets)
    return {
        "quality": asdict(difference(ours.both, theirs.both, sets)),
        "mrr": asdict(difference(ours.mrr, theirs.mrr, sets)),
        "recall": asdict(difference(ours.recall, theirs.recall, sets)),
        "sets": {
            name: {
                "questions": int((names == name).sum()),
                "mrr": float((ours.mrr - theirs.mrr)[names == name].mean()),
                "recall": float((ours.recall - theirs.recall)[names == name].mean()),
            }
            for name in dict.fromkeys(sets)
        },
    }
