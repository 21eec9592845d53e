"""How often a client may come: a bucket of permits each, filled at a steady rate."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

_CLIENTS = 10_000  # buckets held; a flood of made-up clients must not fill the memory


class Rates:
    """At most `per_second` calls of a client in the long run, `burst` at once. 0 a second: no limit."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._clock = per_second, max(1.0, burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, client: str, cost: float = 1.0) -> float:
        """Take permits and return 0.0; or, when there are not enough, the seconds until there would be."""
        if self._per_second <= 0:
            return 0.0
        now = self._clock()
        with self._lock:
            permits, last = self._buckets.pop(client, (self._burst, now))
            permits = min(self._burst, permits + (now - last) * self._per_second)
            short = cost - permits
            self._buckets[client] = (permits if short > 0 else permits - cost, now)
            while len(self._buckets) > _CLIENTS:
                self._buckets.popitem(last=False)
        return max(0.0, short / self._per_second)
