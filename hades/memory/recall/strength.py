"""How strongly a memory comes to mind: the one formula of decay, importance and use. It ranks and never hides.

    importance' = 1 - (1 - importance) * 2^(-links / 8)
    freshness   = max(2^(-age / 30 days), reinforcement * 2^(-since_access / 30 days))
    strength    = importance' + (1 - importance') * freshness                     in [0, 1]
    rank        = similarity * (1 - priority * (1 - strength))

Strength falls with age towards the importance, which holds it up; what much is joined to is important. With
`reinforcement` 0, the default, being read changes nothing, so that what is shown often is not shown more often for it.
With `priority` 0 similarity alone ranks; no value of either brings a similarity to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from hades.memory.history.names import MemoryRefused
from schemas.memory import MemoryState

_DAY = 86_400.0
_MOST = 0.5  # the largest share that a lack of strength may take of a similarity


@dataclass(frozen=True)
class StrengthRules:
    """The constants of the formula."""

    half_life_days: float = 30.0
    half_links: float = 8.0
    reinforcement: float = 0.0
    priority: float = 0.0

    def __post_init__(self) -> None:
        if self.half_life_days <= 0 or self.half_links <= 0:
            raise MemoryRefused("half_life_days and half_links must be above 0; the defaults are 30 and 8")
        if not 0 <= self.reinforcement <= 1 or not 0 <= self.priority <= _MOST:
            raise MemoryRefused(f"reinforcement lies between 0 and 1 and priority between 0 and {_MOST}")


BY_SIMILARITY = StrengthRules()
FOR_SEARCH = StrengthRules(priority=0.1)  # of two that are as near, the fresh, the important and the linked one
FOR_CONTEXT = StrengthRules(priority=0.2)  # where room is short, the fresh and the important come first


def strength(state: MemoryState, as_of: datetime, *, links: int = 0, rules: StrengthRules = BY_SIMILARITY) -> float:
    """The strength of a version at a moment; `links` counts the edges that join it to other topics."""
    since = state.valid_from or state.timestamp
    return strength_of(state.importance_score, since, state.last_accessed, as_of, links=links, rules=rules)


def strength_of(
    importance: float,
    since: datetime,
    accessed: datetime | None,
    as_of: datetime,
    *,
    links: int = 0,
    rules: StrengthRules = BY_SIMILARITY,
) -> float:
    """The formula itself, of the facts that it depends on."""
    held_up = 1 - (1 - importance) * 2 ** (-links / rules.half_links)
    freshness = _halve(since, as_of, rules)
    if rules.reinforcement and accessed is not None:
        freshness = max(freshness, rules.reinforcement * _halve(accessed, as_of, rules))
    return min(1.0, held_up + (1 - held_up) * freshness)


def rank(similarity: float, state_strength: float, rules: StrengthRules = BY_SIMILARITY) -> float:
    """What results are sorted by; above nothing whenever the similarity is."""
    return similarity * (1 - rules.priority * (1 - state_strength))


def _halve(since: datetime, as_of: datetime, rules: StrengthRules) -> float:
    days = max(0.0, (as_of - since).total_seconds() / _DAY)
    return math.exp2(-days / rules.half_life_days)
