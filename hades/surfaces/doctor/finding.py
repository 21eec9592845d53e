"""One line of an examination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """What was looked at, how it stands, what was found, and what to do about it."""

    name: str
    status: Status
    found: str
    next: str = ""


def hours(seconds: float) -> str:
    """An age as a person says it."""
    return f"{seconds / 3600:.1f} hours" if seconds < 72 * 3600 else f"{seconds / 86_400:.0f} days"
