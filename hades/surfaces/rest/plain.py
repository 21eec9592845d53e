"""Records and reports as plain JSON values, without the vectors that nobody reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from schemas.intervals import iso
from schemas.memory import MemoryEdge, MemoryState

_LEFT_OUT = {"embedding"}


def shown(report: Any) -> dict[str, Any]:
    """A record or a report as a JSON object."""
    said = plain(report)
    assert isinstance(said, dict)
    return said


def plain(value: Any) -> Any:
    """The value as JSON would say it."""
    if isinstance(value, BaseModel):
        named = {"id": value.id} if isinstance(value, MemoryState | MemoryEdge) else {}
        return named | value.model_dump(mode="json", by_alias=True, exclude=_LEFT_OUT)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return iso(value) if isinstance(value, datetime) else value
