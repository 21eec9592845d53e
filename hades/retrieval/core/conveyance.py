"""Conveyance: how much of what was found reaches the reader, for the time it took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hades.budget import TurnStage
from schemas.answer import ContextFactor, Conveyance

# Conveyance: how much of what was found reaches the reader, for the time it took.
# C = (W * R * H / T) * Ctx ** 1.7 (specification 002), each factor measured from the turn:
# - W, what: the share of the question's words that the answer speaks of.
# - R, where: the share of the answer's facts (edges of paths, passages) that say document and span.
# - H, who: the share of the evidence offered to the reader's window that fitted into it.
# - T, time: milliseconds taken over the 2,000 of a default turn, whatever the plan allows.
# - Ctx: the mean of L, what was handed on that was not a repeat; I, stages that ran to their own
#   end, neither capped nor cut; A, evidence given over evidence requested; G, seeds that the answer
#   still speaks of.
# C is 0 when W, R or H is, and when the turn took for ever.
ALPHA = 1.7
DEFAULT_TURN_MS = 2000.0


@dataclass(frozen=True)
class ConveyanceParts:
    """What conveyance is computed from: the time taken, and pairs of a part and the whole it is a
    part of.
    """

    words: tuple[int, int]
    cited: tuple[int, int]
    fitted: tuple[int, int]
    ms: float
    evidence: tuple[int, int]
    seeds: tuple[int, int]
    stages: Sequence[TurnStage] = ()
    reach: Sequence[float] = ()


def convey(measured: ConveyanceParts) -> Conveyance:
    """The factors and their product."""
    stages = measured.stages
    candidates_in = sum(stage.taken for stage in stages)
    repeats = sum(stage.repeats for stage in stages)
    undisturbed = sum(not (stage.capped or stage.early_stop) for stage in stages)
    local = 1.0 - _share(repeats, candidates_in)
    intent = _share(undisturbed, len(stages), empty=1.0)
    action = _share(*measured.evidence)
    ground = _share(*measured.seeds)
    mean = (local + intent + action + ground) / 4
    context = ContextFactor(
        local=local,
        intent=intent,
        action=action,
        ground=ground,
        value=mean,
    )
    words = _share(*measured.words)
    cited = _share(*measured.cited)
    fitted = _share(*measured.fitted)
    time = max(measured.ms, 1.0) / DEFAULT_TURN_MS
    return Conveyance(
        what=words,
        where=cited,
        who=fitted,
        time=time,
        context=context,
        value=conveyance(
            words,
            cited,
            fitted,
            time,
            context.value,
        ),
        reach=tuple(measured.reach),
    )


def conveyance(
    words: float,
    cited: float,
    fitted: float,
    time: float,
    context: float,
) -> float:
    """(W * R * H / T) * Ctx ** ALPHA; 0 when a factor is missing or the time has no end."""
    if min(words, cited, fitted) <= 0.0 or math.isinf(time) or context <= 0.0:
        return 0.0
    return words * cited * fitted / time * math.pow(context, ALPHA)


def _share(
    part: float,
    whole: float,
    *,
    empty: float = 0.0,
) -> float:
    """A part of a whole in [0, 1]; of nothing it is `empty`."""
    return min(1.0, part / whole) if whole > 0 else empty
