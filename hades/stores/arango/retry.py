"""Retry and circuit breaker: idempotent work is repeated after growing pauses, and a silent server is left alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeVar

from arango.exceptions import ArangoServerError

from hades.stores.arango.faults import AWAY, BUSY, CURSOR_GONE, TRANSACTION_GONE, CircuitOpen, NotArango, TransportError

Result = TypeVar("Result")

# The server did nothing, or dropped the answer of a read, so the same request may be made again.
REPEATABLE_CODES = BUSY | AWAY | {CURSOR_GONE}
# A unit of work that is as good twice as once is begun again too when the server lost its transaction, as it does when
# it restarts or another server takes over.
UNIT_CODES = REPEATABLE_CODES | TRANSACTION_GONE


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long. No randomness: the same failures give the same pauses."""

    attempts: int = 6
    first_s: float = 0.05
    factor: float = 2.0
    longest_s: float = 2.0
    sleep: Callable[[float], None] = time.sleep
    patient_attempts: int = 20
    patient_longest_s: float = 8.0

    def patient(self) -> RetryPolicy:
        """The same for builds: about two minutes, which a restart or a failover of the server takes."""
        return replace(self, attempts=max(self.attempts, self.patient_attempts), longest_s=self.patient_longest_s)

    def pauses(self) -> Iterator[float]:
        """The pause after each failed attempt but the last."""
        pause = self.first_s
        for _ in range(self.attempts - 1):
            yield min(pause, self.longest_s)
            pause *= self.factor

    def run(
        self, work: Callable[[], Result], may: Callable[[TransportError | ArangoServerError], bool] | None = None
    ) -> Result:
        """The result of `work`, repeated while it fails in a way that `may` be repeated and attempts are left.

        Only for work that is as good twice as once: reads, and writes of rows that carry their keys.
        """
        for pause in self.pauses():
            try:
                return work()
            except (TransportError, ArangoServerError) as error:
                if not (may or may_repeat)(error):
                    raise
            self.sleep(pause)
        return work()


def may_repeat(error: TransportError | ArangoServerError) -> bool:
    """Whether the same request may succeed when it is made again at once."""
    if isinstance(error, TransportError):
        return error.may_repeat
    return error.error_code in REPEATABLE_CODES


def may_repeat_unit(error: TransportError | ArangoServerError) -> bool:
    """Whether a whole unit may succeed when it is begun again."""
    return may_repeat(error) or (isinstance(error, ArangoServerError) and error.error_code in UNIT_CODES)


def may_wait(error: TransportError | ArangoServerError) -> bool:
    """Whether a build waits and begins the unit again, whatever kept the server from answering."""
    if isinstance(error, TransportError):
        return isinstance(error, CircuitOpen) or not isinstance(error, NotArango)
    return may_repeat_unit(error)


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
