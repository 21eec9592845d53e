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

# Every code that says "not now". `retry` repeats what may be repeated; here they become words.
# Conflict, lock time-out, locked, deadlock, cursor in use.
BUSY = frozenset({1200, 18, 28, 29, 1601})
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
CURSOR_GONE = frozenset({1600})
_FORBIDDEN = frozenset({11, 1004})
_BAD_PARAMETER = 10


# Not errors of `requests`: python-arango resends on those, POST included.
class TransportError(Exception):
    """There is no answer. `may_repeat` says whether asking again at once can help."""

    may_repeat = True


class NotSent(TransportError):
    """The request did not reach the server, or the server said that it does not serve now: nothing
    was done.
    """


class Lost(TransportError):
    """The connection broke after the request went out: it may or may not have been done."""


class TimedOut(TransportError):
    """The answer did not come in time: it may or may not have been done, and waiting again would
    double the time.
    """

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
    """The server has dropped an answer that was not read to its end, as it does when it
    restarts.
    """


DROPPED = "the server has dropped the open answer; begin the read again"
_EXPLAINED: tuple[
    tuple[frozenset[int], type[HadesError], str], ...
] = (  # what each code means and what to do
    (BUSY, StoreBusy, "another writer holds the same rows ({}); nothing was written, try again"),
    (AWAY, StoreUnavailable, "the server cannot serve this now ({}); try again later"),
    (
        frozenset({1500}),
        QueryTimeout,
        "stopped by the server because it ran too long; ask for less or allow more time",
    ),
    (
        frozenset({1228, 1203, 1924}),
        NotProvisioned,
        "{}; run `hades provision` with an admin endpoint",
    ),
    (
        TRANSACTION_GONE,
        StoreBusy,
        "the server has given up the transaction ({}); nothing of it was kept: "
        "keep transactions shorter than 60 idle seconds and begin again",
    ),
    (CURSOR_GONE, CursorLost, DROPPED),
    (
        frozenset({32}),
        TooLarge,
        "more than the server accepts at once ({}); lower HADES_ARANGO_TRANSACTION_SHARE, "
        "or raise the server's --transaction.streaming-max-transaction-size or "
        "--query.memory-limit",
    ),
)


@contextmanager
def in_our_words(action: str, *, writes: bool) -> Iterator[None]:
    """Turn what the driver raises inside into a `HadesError` that names the action."""
    try:
        yield
    except TransportError as error:
        raise StoreUnavailable(f"{action}: {error}; is the server up?") from error
    except (ArangoServerError, ArangoClientError) as error:
        raise translate(error, action, writes=writes) from error


def translate(
    error: ArangoServerError | ArangoClientError,
    action: str,
    *,
    writes: bool,
) -> HadesError:
    """The error a caller can act on for one of the server, never with a credential."""
    code = error.error_code
    text = error.error_message or error.message

    for codes, kind, explanation in _EXPLAINED:
        if code in codes:
            return kind(f"{action}: {explanation.format(text)}")

    if error.http_code == 401:
        step = "check HADES_ARANGO_USER and HADES_ARANGO_PASSWORD"
        return SettingsError(f"{action}: the server refused the account; {step}")

    if code in _FORBIDDEN or error.http_code == 403:
        if writes:
            return ReadOnly(action)
        return SettingsError(
            f"{action}: the account may not read this ({text}); grant it access to the database"
        )

    if code == _BAD_PARAMETER and "vector" in str(text).lower():
        return StoreError(
            f"{action}: a vector index refuses vectors of another dimension ({text}); run `hades "
            "provision` with "
            "HADES_ARANGO_VECTOR_INDEX=false, write again, then provision with it set"
        )

    return StoreError(f"{action}: the server answered error {code}: {text}")


Result = TypeVar("Result")
# The server did nothing, or dropped the answer of a read, so the same request may be made again.
REPEATABLE_CODES = BUSY | AWAY | CURSOR_GONE
# A unit of work that is as good twice as once is begun again too when the server lost its
# transaction, as it does when it restarts or another server takes over.
UNIT_CODES = REPEATABLE_CODES | TRANSACTION_GONE
PATIENCE_S = 120.0
_MOST_ATTEMPTS = 200  # more than fit into the time of a patient wait


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long. No randomness: the same failures give the same pauses."""

    attempts: int = 6
    first_s: float = 0.05
    factor: float = 2.0
    longest_s: float = 2.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    patience_s: float | None = None

    def patient(self) -> RetryPolicy:
        """The same for builds: about two minutes, which a restart or a failover of the server
        takes, whether the server refuses at once or answers late.
        """
        return replace(
            self,
            attempts=_MOST_ATTEMPTS,
            longest_s=8.0,
            patience_s=PATIENCE_S,
        )

    def pauses(self) -> Iterator[float]:
        """The pause after each failed attempt but the last."""
        pause = self.first_s
        for _ in range(self.attempts - 1):
            yield min(pause, self.longest_s)
            pause *= self.factor

    def run(
        self,
        work: Callable[[], Result],
        may: Callable[[TransportError | ArangoServerError], bool] | None = None,
    ) -> Result:
        """The result of `work`, repeated while it fails in a way that `may` be repeated and
        attempts are left.

        Only for work that is as good twice as once: reads, and writes of rows that carry their
        keys.
        """
        spent_s = 0.0
        for pause in self.pauses():
            began = self.clock()
            try:
                return work()
            except (TransportError, ArangoServerError) as error:
                spent_s += self.clock() - began + pause
                is_over = self.patience_s is not None and spent_s > self.patience_s
                if is_over or not (may or may_repeat)(error):
                    raise

            self.sleep(pause)

        return work()


def may_repeat(
    error: TransportError | ArangoServerError,
    codes: frozenset[int] = REPEATABLE_CODES,
) -> bool:
    """Whether the same request may succeed when it is made again at once."""
    if isinstance(error, TransportError):
        return error.may_repeat
    return error.error_code in codes


def may_repeat_unit(error: TransportError | ArangoServerError) -> bool:
    """Whether a whole unit may succeed when it is begun again."""
    return may_repeat(error, UNIT_CODES)


def may_wait(error: TransportError | ArangoServerError) -> bool:
    """Whether a build waits and begins the unit again, whatever kept the server from answering."""
    if isinstance(error, TransportError):
        return not isinstance(error, NotArango)
    return may_repeat_unit(error)


_MOST_DOUBLINGS = 10


class CircuitBreaker:
    """Opens after `failures` transport failures in a row; then one trial per `cool_down_s` decides
    if it closes. Each trial in vain doubles the time to the next, up to `longest_s`.
    """

    def __init__(
        self,
        *,
        failures: int = 5,
        cool_down_s: float = 10.0,
        longest_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = failures
        self._cool_down_s = cool_down_s
        self._longest_s = cool_down_s if longest_s is None else longest_s
        self._clock = clock
        self._lock = Lock()
        self._in_a_row = 0
        self._next_trial_at: float | None = None

    def before_request(self) -> None:
        """Let a request pass or refuse it with `CircuitOpen`; of several after the cool-down only
        one passes.
        """
        with self._lock:
            if self._next_trial_at is None:
                return

            now = self._clock()
            seconds_left = self._next_trial_at - now
            if seconds_left > 0:
                raise CircuitOpen(
                    f"the server failed {self._in_a_row} times in a row; next try in "
                    f"{seconds_left:.1f} s"
                )

            # Booking the next trial already now keeps a trial that is never heard of again from
            # blocking the rest.
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
            trials_in_vain = self._in_a_row - self._failures
            if trials_in_vain >= 0:
                pause = self._cool_down_s * 2.0 ** min(trials_in_vain, _MOST_DOUBLINGS)
                self._next_trial_at = self._clock() + min(pause, self._longest_s)
