"""Faults on demand: conflicts, HTTP errors, delays and dropped connections, for tests of retries
and lost updates.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass

from tests.arango_double.errors import http_status

Matching = str | Callable[["Sent"], bool] | None


@dataclass(slots=True)
class Sent:
    """A request that reached the server."""

    method: str
    path: str
    database: str
    query: str = ""

    def is_write(self) -> bool:
        """Whether the request changes documents."""
        return self.method in ("POST", "PUT", "PATCH", "DELETE") and self.path.startswith(
            "/_api/document"
        )


@dataclass(slots=True)
class Fault:
    """One thing to go wrong, `left` more times, for requests that match."""

    kind: str
    left: int
    matching: Matching
    status: int = 0
    number: int = 0
    seconds: float = 0.0
    message: str = "injected by the test"

    def fits(self, sent: Sent) -> bool:
        if self.matching is None:
            return sent.is_write() if self.number == 1200 else True
        if isinstance(self.matching, str):
            return self.matching in f"{sent.method} {sent.path}" or self.matching in sent.query
        return self.matching(sent)


class Faults:
    """The faults waiting to happen, oldest first. `matching` is text in "METHOD /path" or in the
    AQL, or a function.
    """

    def __init__(self) -> None:
        self._waiting: list[Fault] = []
        self._lock = threading.Lock()

    def conflict(self, times: int = 1, matching: Matching = None) -> None:
        """Answer writes with 409 and error 1200, without executing them."""
        self._add(Fault("error", times, matching, 409, 1200, message="write-write conflict"))

    def http_error(
        self, status: int, error_num: int | None = None, times: int = 1, matching: Matching = None
    ) -> None:
        """Answer with an HTTP status and an error number, without executing."""
        self._add(
            Fault("error", times, matching, status, error_num if error_num is not None else status)
        )

    def error(self, error_num: int, times: int = 1, matching: Matching = None) -> None:
        """Answer with an error number and the HTTP status that belongs to it."""
        self.http_error(http_status(error_num), error_num, times, matching)

    def drop_before(self, times: int = 1, matching: Matching = None) -> None:
        """Close the connection instead of executing the request."""
        self._add(Fault("drop_before", times, matching))

    def drop_after(self, times: int = 1, matching: Matching = None) -> None:
        """Execute the request, then close the connection instead of answering."""
        self._add(Fault("drop_after", times, matching))

    def delay(self, seconds: float, times: int = 1, matching: Matching = None) -> None:
        """Wait before executing the request."""
        self._add(Fault("delay", times, matching, seconds=seconds))

    def clear(self) -> None:
        with self._lock:
            self._waiting.clear()

    def pending(self) -> int:
        """How many faults have not happened yet."""
        with self._lock:
            return sum(fault.left for fault in self._waiting)

    def take(self, sent: Sent) -> list[Fault]:
        """The faults that hit this request: any delays, and at most one of another kind."""
        hits: list[Fault] = []
        with self._lock:
            for fault in self._waiting:
                if fault.left > 0 and fault.fits(sent) and all(hit.kind == "delay" for hit in hits):
                    fault.left -= 1
                    hits.append(fault)
            self._waiting = [fault for fault in self._waiting if fault.left > 0]
        return hits

    def _add(self, fault: Fault) -> None:
        with self._lock:
            self._waiting.append(fault)


def every(
    step: int, text: str = "", before: Callable[[], None] | None = None
) -> Callable[[Sent], bool]:
    """Hits each `step`-th request that matches the text; `before` is done first."""
    count = itertools.count(1)

    def hits(sent: Sent) -> bool:
        if text not in f"{sent.method} {sent.path}" or next(count) % step:
            return False
        if before is not None:
            before()
        return True

    return hits
