"""Writes in a thread of their own, one at a time, while the caller prepares the next one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self


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
