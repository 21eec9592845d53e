"""Work on several inputs at a time with results in the order of the inputs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_In = TypeVar("_In")
_Out = TypeVar("_Out")

_MOST = 4  # of the default: reading waits for the disk beyond that
_AHEAD = 4  # inputs a worker may be ahead of the reader: enough to stay busy, few enough to stay small


def reading_workers(workers: int = 0) -> int:
    """How many files are read at a time: as the setting says, with 0 one for each core but at most four."""
    return workers or min(_MOST, os.cpu_count() or 1)


def in_order(work: Callable[[_In], _Out], inputs: Iterable[_In], workers: int) -> Iterator[_Out]:
    """`map`, with up to `workers` at work; threads suffice, because they wait for children that parse."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="read")
    waiting: deque[Future[_Out]] = deque()
    try:
        for one in inputs:
            waiting.append(pool.submit(work, one))
            if len(waiting) > _AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)  # a reader that stops early does not wait for what it will not read
