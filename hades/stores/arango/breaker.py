"""A circuit breaker: a server that does not answer is left alone for a while instead of being asked again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from hades.stores.arango.transport import CircuitOpen


class CircuitBreaker:
    """Opens after `failures` transport failures in a row; then one trial per `cool_down_s` decides if it closes."""

    def __init__(
        self, *, failures: int = 5, cool_down_s: float = 10.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._failures = failures
        self._cool_down_s = cool_down_s
        self._clock = clock
        self._lock = Lock()
        self._in_a_row = 0
        self._next_trial_at: float | None = None

    def before_request(self) -> None:
        """Let a request pass or refuse it with `CircuitOpen`; of several after the cool-down only one passes."""
        with self._lock:
            if self._next_trial_at is None:
                return
            now = self._clock()
            left = self._next_trial_at - now
            if left > 0:
                raise CircuitOpen(f"the server failed {self._in_a_row} times in a row; next try in {left:.1f} s")
            # Booking the next trial already now keeps a trial that is never heard of again from blocking the rest.
            self._next_trial_at = now + self._cool_down_s

    def succeeded(self) -> None:
        """The server answered, whatever it said."""
        with self._lock:
            self._in_a_row = 0
            self._next_trial_at = None

    def failed(self) -> None:
        """The server did not answer."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row >= self._failures:
                self._next_trial_at = self._clock() + self._cool_down_s
