"""The base of every record: its marks, its bounds, and the text of its free-form fields.

Columns and Arrow schemas are made from records by `schemas.columns`. A process that asks a question loads no Arrow.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field


class VectorColumn:
    """Marks a list of numbers that is an embedding: stored as float32, finite, one dimension per model."""


class JsonColumn:
    """Marks a free-form object: stored as canonical JSON text in Arrow, as an object in ArangoDB."""


Vector = Annotated[tuple[float, ...], VectorColumn()]
Json = Annotated[dict[str, Any], JsonColumn()]
Unit = Annotated[float, Field(ge=0.0, le=1.0)]


class Record(BaseModel):
    """An immutable row. It knows its field names and bounds, and nothing of storage.

    Its validator is made with the first row: a process writes or reads rows of few collections, and making one takes
    longer than a search.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, use_enum_values=True, defer_build=True
    )


class Keyed(Record):
    """A record with a key; the key comes from content (see `schemas.ids`)."""

    key: str = Field(alias="_key", description="content-addressed, legal in both stores")


class Edge(Keyed):
    """A directed record between two documents, with both time axes."""

    source: str = Field(alias="_from", description="`_id` of the tail")
    target: str = Field(alias="_to", description="`_id` of the head")
    valid_from: datetime | None = Field(None, description="when it became true; absent = always was")
    valid_until: datetime | None = Field(None, description="when it stopped being true; absent = still is")
    recorded_at: datetime | None = Field(None, description="when we learned it")
    retracted_at: datetime | None = Field(None, description="when we withdrew it")


def canonical_json(value: object) -> str:
    """JSON text that is the same for the same value: keys sorted, no spaces. Free-form columns hold this form."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str).decode()
    except TypeError:  # a lone surrogate or a huge integer, which orjson refuses and hostile input holds
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
