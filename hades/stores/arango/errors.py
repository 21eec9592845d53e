"""Server errors in our words, retry, breaker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import TypeVar

from arango.exceptions import ArangoClientError, ArangoServerError

from hades.errors import (
    HadesError,
    NotProvisioned,
    QueryTimeout,
    ReadOnly,
    SettingsError,
    StoreBusy,
    StoreError,
    StoreUnavailable,
)

# The server's errors in HADES's words: which thing, what was expected, what to do. Never a credential.


# Every code that says "not now". `retry` repeats what may be repeated; here they become words.
BUSY = frozenset({1200, 18, 28, 29, 1601})  # conflict, lock time-out, locked, deadlock, cursor in use
AWAY = frozenset(
    {
        30,  # the server shuts down
        38,  # the server starts
        503,  # not serving
        1429,  # too few replicas in sync to write
        1457,  # a server of the cluster did not answer in time
        1465,  # a shard has no leader yet
        1478,  # a server of the cluster is away
        1495,  # who leads the shard is being settled
        1496,  # no longer the leader of the shard
        21003,  # queue full
        21004,  # waited too long in the queue
    }
)
TRANSACTION_GONE = frozenset({1653, 1654, 1655})
_FORBIDDEN = frozenset({11, 1004})
_NO_DATABASE = 1228
_NO_COLLECTION = frozenset({1203, 1924})
_KILLED = 1500
_BAD_PARAMETER = 10
_TOO_LARGE = 32
CURSOR_GONE = 1600


# Not errors of `requests`: python-arango resends on those, POST included.
class TransportError(Exception):
    """There is no answer. `may_repeat` says whether asking again at once can help."""

    may_repeat = True


class NotSent(TransportError):
    """The request did not reach the server, or the server said that it does not serve now: nothing was done."""


class Lost(TransportError):
    """The connection broke after the request went out: it may or may not have been done."""


class TimedOut(TransportError):
    """The answer did not come in time: it may or may not have been done, and waiting again would double the time."""

    may_repeat = False


class NotArango(TransportError):
    """Something answers, but it does not speak ArangoDB's protocol."""

    may_repeat = False


class CircuitOpen(TransportError):
    """The circuit breaker refused the request: nothing was sent."""

    may_repeat = False


class TooLarge(StoreError):
    """A transaction or query that is larger than the server's limits allow."""


class CursorLost(StoreUnavailable):
    """The server has dropped an answer that was not read to its end, as it does when it restarts."""


@contextmanager
def in_our_words(action: str, *, writes: bool) -> Iterator[None]:
    """Turn what the driver raises inside into a `HadesError` that names the action."""
    try:
        yield
    except TransportError as error:
        raise StoreUnavailable(f"{action}: {error}; is the server up?") from error
    except (ArangoServerError, ArangoClientError) as error:
        raise translate(error, action, writes=writes) from error


def translate(error: ArangoServerError | ArangoClientError, action: str, *, writes: bool) -> HadesError:
    """The error a caller can act on for one of the server."""
    code, text = error.error_code, error.error_message or error.message
    if code in BUSY:
        return StoreBusy(f"{action}: another writer holds the same rows ({text}); nothing was written, try again")
    if code in AWAY:
        return StoreUnavailable(f"{action}: the server cannot serve this now ({text}); try again later")
    if code == _KILLED:
        return QueryTimeout(f"{action}: stopped by the server because it ran too long; ask for less or allow more time")
    if error.http_code == 401:
        step = "check HADES_ARANGO_USER and HADES_ARANGO_PASSWORD"
        return SettingsError(f"{action}: the server refused the account; {step}")
    if code in _FORBIDDEN or error.http_code == 403:
        if writes:
            return ReadOnly(action)
        return SettingsError(f"{action}: the account may not read this ({text}); grant it access to the database")
    if code == _NO_DATABASE or code in _NO_COLLECTION:
        return NotProvisioned(f"{action}: {text}; run `hades provision` with an admin endpoint")
    if code in TRANSACTION_GONE:
        return StoreBusy(
            f"{action}: the server has given up the transaction ({text}); nothing of it was kept: "
            "keep transactions shorter than 60 idle seconds and begin again"
        )
    if code == CURSOR_GONE:
        return explain_lost_cursor(action)
    if code == _BAD_PARAMETER and "vector" in str(text).lower():
        return StoreError(
            f"{action}: a vector index refuses vectors of another dimension ({text}); run `hades provision` with "
            "HADES_ARANGO_VECTOR_INDEX=false, write again, then provision with it set"
        )
    if code == _TOO_LARGE:
        return TooLarge(
            f"{action}: more than the server accepts at once ({text}); lower HADES_ARANGO_TRANSACTION_SHARE, "
            "or raise the server's --transaction.streaming-max-transaction-size or --query.memory-limit"
        )
    return StoreError(f"{action}: the server answered error {code}: {text}")


def explain_lost_cursor(action: str) -> CursorLost:
    """The error of a read that cannot be continued."""
    return CursorLost(f"{action}: the server has dropped the open answer; begin the read again")


# Retry and circuit breaker: idempotent work is repeated after growing pauses, and a silent server is left alone.


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
