"""Writes in a thread of their own, one at a time, while the caller prepares the next one; and how large each is."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

FIRST_BYTES, MOST_BYTES = 48 << 20, 96 << 20  # of rows in one transaction


class BatchSize:
    """How many bytes of rows are written together: few at first, so that writing begins while others are prepared.

    Keys are hashes, so each transaction writes nearly all pages of a collection again: later ones take half of what was
    written before, up to a bound that memory sets.
    """

    def __init__(self) -> None:
        self._written = 0

    def is_reached(self, size: int) -> bool:
        """Whether rows of this size are to be written now; they then count as written."""
        if size <= min(MOST_BYTES, max(FIRST_BYTES, self._written // 2)):
            return False
        self._written += size
        return True


class WriteAhead:
    """Runs writes in order. An error of a write is raised by the next call or at the end; then nothing more is written.

    The store's libraries leave other threads running while they work. Without `in_thread` each write is done at once.
    """

    def __init__(self, *, in_thread: bool) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hades-write") if in_thread else None
        self._last: Future[object] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._thread.shutdown()
        if error is None and self._last is not None:
            self._last.result()

    def run(self, write: Callable[[], object]) -> None:
        """Start a write once the one before it has ended."""
        if self._thread is None:
            write()
            return
        if self._last is not None:
            self._last.result()
        self._last = self._thread.submit(write)
