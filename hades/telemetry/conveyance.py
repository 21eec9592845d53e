"""Conveyance: how much of what was found reaches the reader, for the time it took.

C = (W * R * H / T) * Ctx ** 1.7 (specification 002), each factor measured from the turn:

- W, what: the share of the question's words that the answer speaks of.
- R, where: the share of the answer's facts (edges of paths, passages) that say document and span.
- H, who: the share of the evidence offered to the reader's window that fitted into it.
- T, time: milliseconds taken over those allowed; never below one millisecond's worth.
- Ctx: the mean of L, what was handed on that was not a repeat; I, stages that ran to their own end, neither capped nor
  cut; A, evidence given over evidence asked for; G, seeds that the answer still speaks of.

C is 0 when W, R or H is, and when the turn took for ever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hades.telemetry.turn import Stage
from schemas.retrieval import ContextFactor, Conveyance

ALPHA = 1.7


@dataclass(frozen=True)
class ConveyanceParts:
    """What conveyance is computed from: pairs of a part and the whole it is a part of."""

    words: tuple[int, int]
    cited: tuple[int, int]
    fitted: tuple[int, int]
    ms: tuple[float, float]
    wanted: tuple[int, int]
    seeds: tuple[int, int]
    stages: Sequence[Stage] = ()
    reach: Sequence[float] = ()


def convey(measured: ConveyanceParts) -> Conveyance:
    """The factors and their product."""
    stages = measured.stages
    taken = sum(stage.taken for stage in stages)
    repeats = sum(stage.repeats for stage in stages)
    undisturbed = sum(not (stage.capped or stage.early_stop) for stage in stages)
    parts = (
        1.0 - _share(repeats, taken, empty=0.0),
        _share(undisturbed, len(stages), empty=1.0),
        _share(*measured.wanted),
        _share(*measured.seeds),
    )
    local, intent, action, ground = parts
    context = ContextFactor(local=local, intent=intent, action=action, ground=ground, value=sum(parts) / len(parts))
    ms, allowed_ms = measured.ms
    what, where, who = _share(*measured.words), _share(*measured.cited), _share(*measured.fitted)
    time = max(ms, 1.0) / max(allowed_ms, 1.0)
    return Conveyance(
        what=what,
        where=where,
        who=who,
        time=time,
        context=context,
        value=conveyance(what, where, who, time, context.value),
        reach=tuple(measured.reach),
    )


def conveyance(what: float, where: float, who: float, time: float, context: float, alpha: float = ALPHA) -> float:
    """(W * R * H / T) * Ctx ** alpha; 0 when a factor is missing or the time has no end."""
    if min(what, where, who) <= 0.0 or math.isinf(time) or context <= 0.0:
        return 0.0
    return what * where * who / time * math.pow(context, alpha)


def _share(part: float, whole: float, *, empty: float = 0.0) -> float:
    """A part of a whole in [0, 1]; of nothing it is `empty`."""
    return min(1.0, part / whole) if whole > 0 else empty
