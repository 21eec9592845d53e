"""The clock, where a moment is really meant: when something was asked or written. Builds take theirs as a parameter."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Now, with its zone."""
    return datetime.now(UTC)
