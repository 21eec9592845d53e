"""Several processes behind one socket: the kernel hands each connection to one, and all map the same snapshot.

Each is a new interpreter that is given the socket. A fork would copy locks and thread pools as they happen to be, so
that a worker could wait for a thread that its process does not have. One that dies is started again. A client's rate
limit is divided among them, because each counts by itself.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from hades.errors import HadesError
from hades.settings import Settings
from hades.settings.activation import child_environment
from hades.surfaces.access.callers import Door
from hades.surfaces.access.limits import Limits
from hades.telemetry.structured import configure_logs

_SHORT_LIFE = 2.0  # seconds; a worker that ends sooner has not started
_FAILED_STARTS = 3  # in a row, after which the service gives up


class WorkersFailed(HadesError):
    """Workers that end as soon as they are started."""


def serve_with_workers(
    settings: Settings, door: Door, listening: socket.socket, limits: Limits = Limits(), workers: int = 1
) -> None:
    """Answer on the socket with this number of processes until this one is told to stop."""
    share = share_of(limits, workers)
    if workers == 1:
        work(settings, door, listening, share)
        return
    os.set_inheritable(listening.fileno(), True)
    given = pickle.dumps((settings, door, share, listening.fileno()))
    supervise(lambda: _start(given), workers)


def work(settings: Settings, door: Door, listening: socket.socket, limits: Limits) -> None:
    """Answer on the socket in this process."""
    from hades.surfaces.rest.serve import serve

    serve(settings, door, listening, limits)


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


def supervise(start: Callable[[], int], workers: int) -> None:
    """Keep child processes running, which `start` starts; stop all when this process is told to stop."""
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
            running[start()] = time.monotonic()
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
            running[start()] = time.monotonic()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _start(given: bytes) -> int:
    """Start an interpreter that works; it reads what it is given from its standard input, and inherits the socket."""
    reading, writing = os.pipe()
    try:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(given)  # a few kilobytes, which a pipe holds
        environment = {**child_environment("PYTHONPATH"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        program = [sys.executable, "-c", f"from {__name__} import work_as_given; work_as_given()"]
        at_start = [(os.POSIX_SPAWN_DUP2, reading, 0)]
        return os.posix_spawn(sys.executable, program, environment, file_actions=at_start)
    finally:
        os.close(reading)


def work_as_given() -> None:
    """What a worker does: answer until it is told to stop."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends a worker that has not begun to answer
    settings, door, limits, handle = pickle.loads(sys.stdin.buffer.read())
    configure_logs(settings.log_format, settings.log_level, settings.secrets())
    work(settings, door, socket.socket(fileno=handle), limits)


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
