"""Where a reader stands in time, in the numbers that the index of memory compares."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from schemas.intervals import Mask

NEVER = int(np.iinfo(np.int64).max)
ALWAYS = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Standing:
    """The moment that counts as now and what is known by then, in microseconds since 1970."""

    moment: int
    known: int
    is_open: bool  # nothing was asked about time: a version said later than `moment` by another clock counts too

    @classmethod
    def of(cls, mask: Mask, now: datetime) -> Standing:
        """The numbers of a mask; what it leaves open is now, and all that is known."""
        known = to_micros(mask.known_at) if mask.known_at is not None else NEVER - 1
        return cls(to_micros(mask.as_of or mask.known_at or now), known, mask.is_open)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970; a time without an end is the last but one."""
    return round(moment.timestamp() * 1_000_000) if moment.year < 9_999 else NEVER - 1


def to_moment(micros: int) -> datetime:
    """The moment of a number of microseconds since 1970."""
    return datetime.fromtimestamp(micros / 1_000_000, UTC)
