"""Requests as callers send them, with examples for the description of the service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from hades.retrieval.turn.recipes import DEFAULT, MODES, NAMES_OF_RECIPES

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


class QueryBody(Sent):
    """A question and how to answer it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "which classes does EmailMessage extend?"},
                {
                    "query": "which classes does EmailMessage extend?",
                    "recipe": "pathrag",
                    "plan": {"graph": {"hops": 2}, "budget": {"docs_max": 80}},
                    "as_of": "2026-01-31T00:00:00Z",
                    "max_paths": 3,
                },
            ]
        }
    )

    query: str = Field(min_length=1, max_length=TEXT_CHARACTERS, description="the question")
    recipe: Literal[NAMES_OF_RECIPES] = Field(DEFAULT, description="the way to answer")  # type: ignore[valid-type]
    plan: FreeForm | None = Field(None, description="what the turn may spend; lowered to the online caps")
    as_of: Moment | None = Field(None, description="only what was true then")
    known_at: Moment | None = Field(None, description="only what was known then")
    max_paths: int | None = Field(None, ge=0, le=100, description="show at most so many paths")
    mode: Literal[MODES] = Field(MODES[0], description="of the recipe nexus")  # type: ignore[valid-type]
    near: tuple[Id, ...] = Field((), max_length=16, description="ids of documents or nodes that it is asked from")
    domain: Annotated[str, Field(max_length=ID_CHARACTERS)] | None = Field(
        None, description="leave out paths through another domain"
    )


class Ranks(Sent):
    """Places in an answer, counted from 1."""

    paths: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field((), max_length=100)
    passages: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field((), max_length=100)


class FeedbackBody(Sent):
    """Which paths and passages of an answer were good and which were bad."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"good": {"paths": [1]}, "bad": {"passages": [3]}}]})

    good: Ranks = Ranks()
    bad: Ranks = Ranks()


class RollbackBody(Sent):
    """Which part goes back, and to which version."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"what": "graph"}]})

    what: Literal["graph", "weights", "ranker"] = "graph"
    to: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]+$")] | None = Field(
        None, description="snapshot id or version of weights; left out: the one before"
    )
