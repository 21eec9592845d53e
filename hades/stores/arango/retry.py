"""Repeating work that is as good twice as once: a fixed number of times, after fixed, growing pauses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from arango.exceptions import ArangoServerError

from hades.stores.arango.faults import AWAY, BUSY, TRANSACTION_GONE
from hades.stores.arango.transport import CircuitOpen, NotArango, TransportError

Result = TypeVar("Result")

# The server did nothing, so the same request may be made again.
REPEATABLE_CODES = BUSY | AWAY
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
