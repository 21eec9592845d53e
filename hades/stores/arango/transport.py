"""What can go wrong before the server answers. Not `requests` errors: python-arango resends on those, POST included."""

from __future__ import annotations


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
