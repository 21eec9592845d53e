"""One night: which moment the build stands at, and when it must be done."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from hades.stages.build_context import default_moment


@dataclass(frozen=True)
class Night:
    """Small and plain, so that it can be handed to tasks in other processes. `ends` is in seconds since 1970."""

    as_of: datetime
    began: float
    ends: float | None = None

    def seconds_left(self) -> float | None:
        """What is left of the time box; None without one, 0 when it is over."""
        return None if self.ends is None else max(0.0, self.ends - time.time())

    @property
    def is_over(self) -> bool:
        """Whether the time box is spent."""
        return self.seconds_left() == 0.0


def begin(as_of: datetime | None, time_box_minutes: float | None = None) -> Night:
    """A night from now on, standing at the moment given or at the beginning of today."""
    now = time.time()
    moment = as_of or datetime.fromtimestamp(now, UTC)
    if as_of is None:
        moment = default_moment(moment)
    elif as_of.tzinfo is None:
        moment = as_of.replace(tzinfo=UTC)  # a form of the UI may send a time without a zone
    return Night(moment, now, None if time_box_minutes is None else now + 60.0 * time_box_minutes)
