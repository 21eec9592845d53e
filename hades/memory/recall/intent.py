"""What a question wants of memory, by fixed rules: the same question always gets the same strategy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from hades.memory.upkeep.periods import DAILY, MONTHLY, RAW, WEEKLY


class Intent(StrEnum):
    """What is asked for."""

    STATUS = "status"
    WHY = "why"
    CHANGE = "change"
    OVERVIEW = "overview"
    RECENT = "recent"
    GENERAL = "general"


@dataclass(frozen=True)
class Strategy:
    """What an intent needs: only the newest, also what led there, also what it is joined to, which summaries."""

    intent: Intent
    history: bool
    related: bool
    level: int  # of summaries; 0 takes none
    of_any_age: bool = False  # whether history goes back as far as it reaches


# The order decides: "why did the status change last week" asks why.
_WORDS: tuple[tuple[Intent, tuple[str, ...]], ...] = (
    (Intent.WHY, ("why", "how come", "what (?:caused|led to|made)", "causes? of", "reasons?", "because")),
    (
        Intent.CHANGE,
        ("when did .*(?:change|become|stop|start)", "how (?:did|has) .*(?:change|evolve|develop)", "history of",
         "evolution", "over time", "used to"),
    ),
    (
        Intent.OVERVIEW,
        ("summar(?:y|i[sz]e)", "overview", "overall", "entire", "whole", "everything", "in total", "big picture",
         "last (?:month|quarter|year)"),
    ),
    (
        Intent.RECENT,
        ("(?:last|past) (?:week|few days|days?|[0-9]+ days)", "this week", "yesterday", "recent(?:ly)?", "lately",
         "what(?:'s| is) new"),
    ),
    (
        Intent.STATUS,
        ("status", "current(?:ly)?", "now", "at the moment", "today", "latest", "state of", "where .*stands?"),
    ),
)  # fmt: skip
_RULES = tuple((intent, re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)) for intent, words in _WORDS)
_STRATEGIES = {
    Intent.STATUS: Strategy(Intent.STATUS, history=False, related=True, level=RAW),
    Intent.WHY: Strategy(Intent.WHY, history=True, related=True, level=RAW, of_any_age=True),
    Intent.CHANGE: Strategy(Intent.CHANGE, history=True, related=True, level=RAW, of_any_age=True),
    Intent.OVERVIEW: Strategy(Intent.OVERVIEW, history=True, related=False, level=MONTHLY),
    Intent.RECENT: Strategy(Intent.RECENT, history=True, related=False, level=DAILY),
    Intent.GENERAL: Strategy(Intent.GENERAL, history=True, related=True, level=WEEKLY),
}


def strategy_for(query: str) -> Strategy:
    """How to look for an answer to a question."""
    for intent, rule in _RULES:
        if rule.search(query):
            return _STRATEGIES[intent]
    return _STRATEGIES[Intent.GENERAL]


def determine_consolidation_level(query: str) -> int:
    """Which summaries a question wants: status and why 0, recent 1, overview 3, else 2."""
    return strategy_for(query).level
