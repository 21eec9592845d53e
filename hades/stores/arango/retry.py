"""Repeating work that is as good twice as once: a fixed number of times, after fixed, growing pauses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from arango.exceptions import ArangoServerError

from hades.stores.arango.transport import TransportError

Result = TypeVar("Result")

# Conflict, lock timeout, locked, deadlock, cluster backend or leader away, not serving, queue full: the server did
# nothing, so the whole unit may be asked for again.
REPEATABLE_CODES = frozenset({1200, 18, 28, 29, 1465, 1478, 503, 21003, 21004})


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long. No randomness: the same failures give the same pauses (requirement C66)."""

    attempts: int = 6
    first_s: float = 0.05
    factor: float = 2.0
    longest_s: float = 2.0
    sleep: Callable[[float], None] = time.sleep

    def pauses(self) -> Iterator[float]:
        """The pause after each failed attempt but the last."""
        pause = self.first_s
        for _ in range(self.attempts - 1):
            yield min(pause, self.longest_s)
            pause *= self.factor

    def run(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, repeated while it fails in a way that repeating can mend and attempts are left.

        Only for work that is as good twice as once: reads, and writes of rows that carry their keys.
        """
        for pause in self.pauses():
            try:
                return work()
            except (TransportError, ArangoServerError) as error:
                if not may_repeat(error):
                    raise
            self.sleep(pause)
        return work()


def may_repeat(error: TransportError | ArangoServerError) -> bool:
    """Whether the same request may succeed when it is made again."""
    if isinstance(error, TransportError):
        return error.may_repeat
    return error.error_code in REPEATABLE_CODES
