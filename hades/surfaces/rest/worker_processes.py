"""Several processes behind one socket: the kernel hands each connection to one, and all map the same snapshot.

The processes are forked before anything is opened, so that each has its own handles. One that dies is started again. A
client's rate limit is divided among them, because each counts by itself.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from hades.errors import HadesError
from hades.settings import Settings
from hades.surfaces.access.callers import Door
from hades.surfaces.access.limits import Limits

_SHORT_LIFE = 2.0  # seconds; a worker that ends sooner has not started
_FAILED_STARTS = 3  # in a row, after which the service gives up


class WorkersFailed(HadesError):
    """Workers that end as soon as they are started."""


def serve_with_workers(
    settings: Settings, door: Door, listening: socket.socket, limits: Limits = Limits(), workers: int = 1
) -> None:
    """Answer on the socket with this number of processes until this one is told to stop."""

    def work() -> None:
        from hades.surfaces.rest.serve import serve

        serve(settings, door, listening, share_of(limits, workers))

    if workers == 1:
        work()
    else:
        supervise(work, workers)


def share_of(limits: Limits, workers: int) -> Limits:
    """The limits of one of several workers: rates, waiting calls and the memory for answers are divided."""
    return replace(
        limits,
        per_second=limits.per_second / workers,
        burst=max(1.0, limits.burst / workers),
        threads=limits.threads or max(1, (os.cpu_count() or 1) // workers),
        waiting=max(1, limits.waiting // workers),
        cache_bytes=limits.cache_bytes // workers,
    )


def supervise(work: Callable[[], None], workers: int) -> None:
    """Run `work` in child processes; replace one that dies, and stop all when this process is told to stop."""
    running: dict[int, float] = {}
    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        _tell(running, signal.SIGTERM)

    before = {one: signal.signal(one, stop) for one in (signal.SIGTERM, signal.SIGINT)}
    failed = 0
    try:
        while not stopping and len(running) < workers:
            running[_start(work)] = time.monotonic()
        while running:
            process, _ = os.wait()
            lived = time.monotonic() - running.pop(process, 0.0)
            if stopping:
                continue
            failed = failed + 1 if lived < _SHORT_LIFE else 0
            if failed >= _FAILED_STARTS:
                stop(signal.SIGTERM, None)
                _wait_for(running)
                raise WorkersFailed(
                    f"{failed} workers ended within {_SHORT_LIFE:.0f} s of their start; "
                    "run `hades serve` without --workers to see why"
                )
            running[_start(work)] = time.monotonic()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _start(work: Callable[[], None]) -> int:
    """Fork; the child works and ends without returning. A signal that comes in between reaches parent or child."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, signal.SIG_DFL)
        work()
        code = 0
    except KeyboardInterrupt:
        code = 0
    finally:
        os._exit(code)


def _tell(running: dict[int, float], signal_number: int) -> None:
    for process in running:
        try:
            os.kill(process, signal_number)
        except ProcessLookupError:
            continue


def _wait_for(running: dict[int, float]) -> None:
    for process in list(running):
        os.waitpid(process, 0)
        running.pop(process)
