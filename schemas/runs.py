"""What ingestion keeps about itself: what it has seen, what it set aside, what it merged."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from schemas.record import Json, Keyed


class ManifestEntry(Keyed):
    """One document as last ingested; a second run compares hashes and touches only what changed."""

    document: str
    source: str
    origin: str
    sha256: str
    phases: Json = Field(default_factory=dict, description="phase -> hash of its inputs when it last completed")


class Quarantined(Keyed):
    """Input that was set aside, and why."""

    source: str
    uri: str
    reason: str
    detail: str = ""
    size: int = Field(0, ge=0)


class Merge(Keyed):
    """One name folded into another; reversible because the rule and both names are kept."""

    alias: str
    canonical: str
    rule: str
    score: float = 1.0
    at: datetime | None = None
