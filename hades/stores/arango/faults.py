"""The server's errors in HADES's words: which thing, what was expected, what to do. Never a credential."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
        return SettingsError(
            f"{action}: the server refused the account; check HADES_ARANGO_USER and HADES_ARANGO_PASSWORD"
        )
    if code in _FORBIDDEN or error.http_code == 403:
        return _explain_forbidden(action, text, writes)
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


def _explain_forbidden(action: str, text: str | None, writes: bool) -> HadesError:
    if writes:
        return ReadOnly(action)
    return SettingsError(f"{action}: the account may not read this ({text}); grant it access to the database")
