"""Which of two facts that cannot both be true is kept: a rule of values, and the record it leaves.

Confidence decides when the two differ enough, then the trust in their sources, then which was true later. When neither
is sure, or nothing tells them apart, nobody is overruled and a person is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

CLEAR = 0.15  # a smaller difference of confidence or trust decides nothing
LOW = 0.5  # below it a fact cannot overrule another
DEFAULT_TRUST = 0.5


class Outcome(StrEnum):
    """What became of two facts that exclude each other."""

    NEW = "new"
    OLD = "old"
    ASK = "needs_validation"


@dataclass(frozen=True)
class Claim:
    """One side: how sure it is, where it comes from, since when it is true, and how far its source is trusted."""

    confidence: float
    source: str
    valid_from: datetime
    trust: float | None = None


@dataclass(frozen=True)
class Trust:
    """How far each source is trusted, 0 to 1; a source that is not named counts the middle."""

    sources: Mapping[str, float] = field(default_factory=dict)

    def of(self, claim: Claim) -> float:
        """The trust in the source of a claim: what was said with the claim, else what is known of the source."""
        return claim.trust if claim.trust is not None else self.sources.get(claim.source, DEFAULT_TRUST)


@dataclass(frozen=True)
class Verdict:
    """The outcome and, in a sentence, the reason."""

    outcome: Outcome
    reason: str


def judge(old: Claim, new: Claim, trust: Trust = Trust()) -> Verdict:
    """Which of two facts is kept; the order of the tests is the order of the arguments."""
    if max(old.confidence, new.confidence) < LOW:
        return Verdict(Outcome.ASK, f"neither is sure ({old.confidence:g} and {new.confidence:g}, both below {LOW:g})")
    if abs(new.confidence - old.confidence) >= CLEAR:
        winner = Outcome.NEW if new.confidence > old.confidence else Outcome.OLD
        return Verdict(winner, f"confidence {new.confidence:g} against {old.confidence:g}")
    trust_new, trust_old = trust.of(new), trust.of(old)
    if abs(trust_new - trust_old) >= CLEAR:
        winner = Outcome.NEW if trust_new > trust_old else Outcome.OLD
        return Verdict(
            winner,
            f"source {new.source or 'unnamed'} ({trust_new:g}) against {old.source or 'unnamed'} ({trust_old:g})",
        )
    if new.valid_from != old.valid_from:
        winner = Outcome.NEW if new.valid_from > old.valid_from else Outcome.OLD
        return Verdict(winner, f"true since {new.valid_from.date()} against {old.valid_from.date()}")
    return Verdict(Outcome.ASK, "equal confidence, equal trust and the same beginning")
