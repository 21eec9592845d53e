"""Fields that several requests share: their types, limits and descriptions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from hades.errors import SettingsError
from hades.surfaces.capabilities.capability import Shell

QUESTION_CHARACTERS = 40_000  # an issue report with its stack trace
ID_CHARACTERS = 320
CONTENT_CHARACTERS = 100_000
REASON_CHARACTERS = 500


def in_utc(moment: datetime) -> datetime:
    """A moment without a zone is UTC; one outside the years 1 to 9999 is refused."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time lies outside the years 1 to 9999 in UTC") from None


def check_storable(value: dict[str, Any]) -> dict[str, Any]:
    """An object that every store can keep: finite numbers below 2^64, Unicode texts."""
    import orjson

    try:
        json.dumps(value, allow_nan=False)
        orjson.dumps(value)
    except (ValueError, TypeError, RecursionError):
        raise ValueError("numbers must be finite and below 2^64, texts must be Unicode") from None
    return value


def read_object(text: str) -> dict[str, Any]:
    """A JSON object from the command line."""
    expected = 'give an object such as \'{"source": "review"}\''
    try:
        value = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"--metadata is not JSON ({error}); {expected}") from error
    if not isinstance(value, dict):
        raise SettingsError(f"--metadata is {type(value).__name__}, not an object; {expected}")
    return value


def read_pairs(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs from the command line; a value is JSON, or else plain text."""
    return dict(_read_pair(pair) for pair in pairs)


def _read_pair(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals or not name:
        raise SettingsError(f"{pair!r} is not NAME=VALUE; write for example name='Ada King' or aliases='[\"Ada\"]'")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _date_text(value: Any) -> Any:
    """A bare number is not a time: `2026` must not be read as seconds since 1970."""
    if isinstance(value, int | float) or (isinstance(value, str) and value.strip().lstrip("-").isdigit()):
        raise ValueError("not a time; write it as 2026-01-31 or 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[datetime, BeforeValidator(_date_text), AfterValidator(in_utc)]
FreeForm = Annotated[dict[str, Any], AfterValidator(check_storable)]
Id = Annotated[str, Field(min_length=1, max_length=ID_CHARACTERS)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Reason = Annotated[str, Field(max_length=REASON_CHARACTERS)]
Metadata = Annotated[FreeForm, Shell(metavar="JSON", read=read_object)]

AS_OF = "Only what was true at this time, for example 2026-01-31; UTC when it has no zone."
KNOWN_AT = "Only what was known at this time; UTC when it has no zone."
