"""What a turn did: the log that audits it and that training reads."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from schemas.record import Json, Keyed, Record, Unit

FORGOTTEN = "forgotten"  # stands in a log where something was that has been forgotten


class ShownPath(Record):
    """A path as it was shown, by ids, so that training can find its edges again.

    `propensity` is the probability that it was shown at its rank: 1 unless a policy explores.
    """

    rank: int = Field(ge=1)
    score: float
    reliability: float
    origin: str
    why: str = ""
    nodes: tuple[str, ...]
    edges: tuple[str, ...]
    propensity: Unit = 1.0


class ShownPassage(Record):
    """A passage as it was shown, and what each search gave it."""

    rank: int = Field(ge=1)
    score: float
    id: str
    tiers: dict[str, float] = Field(default_factory=dict)
    propensity: Unit = 1.0


class ShownTopic(Record):
    """A topic that the question was narrowed to."""

    id: str
    level: int


class ShownResults(Record):
    """What `QueryLog.results` holds."""

    paths: tuple[ShownPath, ...] = ()
    passages: tuple[ShownPassage, ...] = ()
    hierarchy: tuple[ShownTopic, ...] = ()
    as_of: datetime | None = Field(None, description="the moment the reader stood at")
    known_at: datetime | None = None
    filters: Json = Field(
        default_factory=dict,
        description="what the question was limited to, and asked near",
    )


class JudgedRanks(Record):
    """Ranks that somebody found good or bad."""

    paths: tuple[int, ...] = ()
    passages: tuple[int, ...] = ()


class Feedback(Record):
    """What `QueryLog.feedback` holds; empty until somebody judges."""

    good: JudgedRanks = JudgedRanks()
    bad: JudgedRanks = JudgedRanks()
    at: datetime


class QueryLog(Keyed):
    """One answered question; its key is the query's id."""

    query: str
    recipe: str
    snapshot: str
    at: datetime
    reasons: tuple[str, ...] = ()
    plan: Json = Field(default_factory=dict)
    results: Json = Field(default_factory=dict, description="a `ShownResults`")
    telemetry: Json = Field(default_factory=dict)
    conveyance: Json = Field(default_factory=dict)
    feedback: Json = Field(
        default_factory=dict,
        description="a `Feedback`, or empty",
    )


class WeightConfig(Keyed):
    """Prior, half-life and boost of one relation type, and the snapshot they belong to."""

    relation_type: str
    type_prior: float
    tau_days: float = Field(gt=0.0, description="time constant of freshness")
    relation_boost: float = Field(ge=0.0)
    coefficients: Json = Field(default_factory=dict)
    snapshot: str = ""
    updated: datetime | None = None
