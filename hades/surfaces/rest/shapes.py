"""Requests as callers send them, with examples for the description of the service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

TEXT_CHARACTERS = 8_000
ID_CHARACTERS = 320


def _with_zone(moment: datetime) -> datetime:
    """A moment without a zone is UTC; one that no clock of ours can show is refused."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        raise ValueError("the moment lies outside the years 1 to 9999 in UTC") from None


def _storable(value: dict[str, Any]) -> dict[str, Any]:
    """A free-form object that every store can keep: numbers that have an end, texts that are texts."""
    try:
        json.dumps(value, allow_nan=False)
        orjson.dumps(value)
    except (ValueError, TypeError, RecursionError):
        raise ValueError("numbers must be finite and below 2^64, texts must be Unicode") from None
    return value


FreeForm = Annotated[dict[str, Any], AfterValidator(_storable)]
Moment = Annotated[datetime, AfterValidator(_with_zone)]
Id = Annotated[str, Field(min_length=1, max_length=ID_CHARACTERS)]
AsOf = Annotated[
    Moment | None, Query(description="only what was true then; UTC without a zone", examples=["2026-01-31T00:00:00Z"])
]
KnownAt = Annotated[Moment | None, Query(description="only what was known then; UTC without a zone")]


class Sent(BaseModel):
    """A body; unknown keys are refused, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RollbackBody(Sent):
    """Which part goes back, and to which version."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"what": "graph"}]})

    what: Literal["graph", "weights", "ranker"] = "graph"
    to: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]+$")] | None = Field(
        None, description="snapshot id or version of weights; left out: the one before"
    )
