"""Time as two half-open intervals: when something was true, and when we knew it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class Mask:
    """The point in time a reader stands at: true at `as_of`, known at `known_at`; None leaves that axis open."""

    as_of: datetime | None = None
    known_at: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("as_of", "known_at"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise ValueError(f"{name} has no time zone; give an aware datetime")

    @property
    def is_open(self) -> bool:
        """Whether nothing is masked."""
        return self.as_of is None and self.known_at is None


def contains(start: datetime | None, end: datetime | None, moment: datetime) -> bool:
    """Whether [start, end) holds the moment; an absent bound is open."""
    return (start is None or start <= moment) and (end is None or moment < end)


def overlap(first: tuple[datetime | None, datetime | None], second: tuple[datetime | None, datetime | None]) -> bool:
    """Whether two half-open intervals share a moment."""
    (a_start, a_end), (b_start, b_end) = first, second
    return (a_end is None or b_start is None or b_start < a_end) and (
        b_end is None or a_start is None or a_start < b_end
    )


def is_visible(
    mask: Mask,
    valid_from: datetime | None,
    valid_until: datetime | None,
    recorded_at: datetime | None,
    retracted_at: datetime | None,
) -> bool:
    """Whether a reader standing at the mask sees a fact with these two intervals."""
    return (mask.as_of is None or contains(valid_from, valid_until, mask.as_of)) and (
        mask.known_at is None or contains(recorded_at, retracted_at, mask.known_at)
    )


def iso(moment: datetime) -> str:
    """UTC text of fixed width, so that text order is time order in every store."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
