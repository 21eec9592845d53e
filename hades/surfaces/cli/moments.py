"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

from hades.errors import SettingsError


def moment(text: str | None, option: str) -> datetime | None:
    """A time as a person writes it; without a zone it is UTC."""
    if text is None:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(
            f"{option} is {text!r}; give a date or time such as 2026-01-31 or 2026-01-31T12:00Z"
        ) from None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
