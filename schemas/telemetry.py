"""What a turn did: the log that audits it and that training reads."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from schemas.record import Json, Keyed


class QueryLog(Keyed):
    """One answered question."""

    query: str
    recipe: str
    snapshot: str
    at: datetime
    reasons: tuple[str, ...] = ()
    plan: Json = Field(default_factory=dict)
    results: Json = Field(default_factory=dict)
    telemetry: Json = Field(default_factory=dict)
    conveyance: Json = Field(default_factory=dict)
    feedback: Json = Field(default_factory=dict)


class WeightConfig(Keyed):
    """Prior, half-life and boost of one relation type, and the snapshot they belong to."""

    relation_type: str
    type_prior: float
    tau_days: float = Field(gt=0.0, description="time constant of freshness")
    relation_boost: float = Field(ge=0.0)
    coefficients: Json = Field(default_factory=dict)
    snapshot: str = ""
    updated: datetime | None = None
