"""How well the confidence of an answer tells questions that a corpus can answer from those that it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.evaluation.cases import Case
from hades.evaluation.harness import Scores
from hades.evaluation.rankings import Ranker

Values = NDArray[np.float64]
BINS = 10
ANSWERS_FROM = 0.5  # confidence below which the default recipe abstains


def ask_unanswerable(questions: Sequence[str], rankers: Mapping[str, Ranker]) -> dict[str, list[float]]:
    """The confidence of each ranker in questions that the corpus cannot answer; rankers without one are left out."""
    found: dict[str, list[float]] = {}
    for name, rank in rankers.items():
        answers = [rank(Case(str(place), text, frozenset())) for place, text in enumerate(questions)]
        known = [one.confidence for one in answers if one.confidence is not None]
        if len(known) == len(questions) and known:
            found[name] = known
    return found


def summarise_abstention(
    cases: Sequence[Case], scores: Mapping[str, Scores], unanswerable: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """By ranker: AUROC of the confidence, share of wrong abstentions and of right ones, calibration error."""
    found = {}
    for name, one in scores.items():
        known = [ranking.confidence for ranking in one.rankings]
        if any(value is None for value in known) or not known:
            continue
        confidence = np.array(known, np.float64)
        answerable = np.array([case.is_answerable for case in cases])
        doubtful = np.concatenate([confidence[~answerable], np.array(unanswerable.get(name, ()), np.float64)])
        good = confidence[answerable]
        supported = one.recall[max(one.recall)][answerable] > 0.0
        found[name] = {
            "answerable": len(good),
            "unanswerable": len(doubtful),
            "wrong_abstention": _share(good < ANSWERS_FROM),
            "ece": round(calibration_error(good, supported), 4),
        }
        if len(doubtful):
            found[name] |= {"auroc": round(auroc(good, doubtful), 4), "abstained": _share(doubtful < ANSWERS_FROM)}
    return found


def auroc(positive: Values, negative: Values) -> float:
    """The chance that a positive value is above a negative one; ties count half."""
    if not len(positive) or not len(negative):
        return 0.5
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, side="left")
    up_to = np.searchsorted(ordered, positive, side="right")
    return float((below + up_to).mean() / (2 * len(negative)))


def calibration_error(confidence: Values, happened: NDArray[np.bool_]) -> float:
    """Expected calibration error over ten bins: mean distance of the stated confidence from the observed share."""
    if not len(confidence):
        return 0.0
    place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    total = 0.0
    for row in range(BINS):
        own = place == row
        if own.any():
            total += own.mean() * abs(float(confidence[own].mean()) - float(happened[own].mean()))
    return float(total)


def _share(flags: NDArray[np.bool_]) -> float:
    return round(float(flags.mean()), 4) if len(flags) else 0.0
