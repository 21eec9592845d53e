"""The exponent of the context factor, estimated from answers instead of assumed.

C = (W * R * H / T) * Ctx ** alpha. Two recipes asked the same question differ in their factors; where H is the same for
both, T cancels between what was conveyed and the formula, and alpha is the slope of the differences

    delta ln(quality / (W * R)) = alpha * delta ln(Ctx)

with the quality of a ranking (nDCG) standing for what reached the reader (requirement C70).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hades.telemetry.conveyance import ALPHA
from schemas.retrieval import Conveyance

_SAME = 1e-9


@dataclass(frozen=True)
class Alpha:
    """The slope, from how many pairs of answers; None where no pair differs in its context."""

    estimate: float | None
    pairs: int
    assumed: float = ALPHA


def estimate_alpha(
    quality: Mapping[str, Sequence[float]], conveyed: Mapping[str, Sequence[Conveyance | None]]
) -> Alpha:
    """Least squares through the origin over all pairs of recipes on the same question with the same H."""
    above = below = 0.0
    pairs = 0
    for one, other in itertools.combinations(sorted(conveyed), 2):
        answers = zip(quality[one], conveyed[one], quality[other], conveyed[other], strict=True)
        for first, mine, second, theirs in answers:
            if mine is None or theirs is None or abs(mine.who - theirs.who) > _SAME:
                continue
            left, right = _logs(first, mine), _logs(second, theirs)
            if left is None or right is None:
                continue
            gain, context = left[0] - right[0], left[1] - right[1]
            above += gain * context
            below += context * context
            pairs += abs(context) > _SAME
    return Alpha(round(above / below, 4) if below > _SAME else None, pairs)


def _logs(quality: float, factors: Conveyance) -> tuple[float, float] | None:
    """ln(quality / (W * R)) and ln(Ctx); None where a factor is 0."""
    if min(quality, factors.what, factors.where, factors.context.value) <= 0.0:
        return None
    return math.log(quality / (factors.what * factors.where)), math.log(factors.context.value)
