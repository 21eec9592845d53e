"""Parsers in a child process with bounded memory and processor time, because input may be hostile.

Measured on the parsers used here: 100 kB of `a<a<a<` makes the Java grammar take all memory, 300 kB
of f-string fields keep `ast.parse` busy for 20 s, and a PDF page of a few kB can inflate without
end. None of that can be stopped from inside the process, so the kernel stops the child and the file
is set aside. This module loads little more than the standard library: a child starts in a tenth of
a second.
"""

from __future__ import annotations

import importlib
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import LifoQueue
from threading import Timer
from typing import Any, Self, TypeVar

from hades.errors import HadesError

MEMORY_BYTES = 1 << 30
# For a child that waits instead of working; processor time is the limit that matters.
_WALL_SECONDS = 120.0
_OUT_OF_MEMORY = 3
_READY = b"ready"
# The child looks for modules where its parent does, in whatever way the parent came to look there.
_BOOT = (
    "import sys; sys.path[:] = sys.argv[2].split(chr(0x1f)); from "
    "hades.ingest.sources.confined import serve; serve()"
)


class ParserStopped(Exception):
    """The child was ended or died; the message says why, in words for a report."""


class ConfinedPool:
    """One function, named `module:function`, called in children that are started as they are
    needed.

    Calls may come from as many threads as there are children; one that was stopped is replaced.
    """

    def __init__(self, function: str, size: int = 1) -> None:
        self._children = [_Child(function) for _ in range(size)]
        self._idle: LifoQueue[_Child] = LifoQueue()
        for child in self._children:
            self._idle.put(child)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for child in self._children:
            child.close()

    def call(self, *arguments: object, cpu_seconds: float) -> Any:
        """What the function returns; raises `ParserStopped` when it needs more than it may or
        dies.
        """
        child = self._idle.get()
        try:
            return child.call(arguments, cpu_seconds)
        finally:
            self._idle.put(child)


class _Child:
    """One process; messages are pickles over its standard streams."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._process: subprocess.Popen[bytes] | None = None

    def call(self, arguments: tuple[object, ...], cpu_seconds: float) -> Any:
        child = self._process = self._process or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        limit = Timer(_WALL_SECONDS, child.kill)
        limit.start()
        is_answered = False

        try:
            pickle.dump(
                (cpu_seconds, arguments),
                child.stdin,
                protocol=5,
            )
            child.stdin.flush()
            answer = pickle.load(child.stdout)
            is_answered = True
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise ParserStopped(_reason_of_death(child, cpu_seconds)) from None
        finally:
            limit.cancel()
            if not is_answered:
                self.close()  # what it may still say would be taken for the next answer

        return answer

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        child, self._process = self._process, None
        if child is None:
            return

        child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # what was not sent yet
                    stream.close()

        child.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        places = "\x1f".join(path or os.getcwd() for path in sys.path)
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, self._function, places],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert child.stdout is not None

        if child.stdout.read(len(_READY)) != _READY:
            child.kill()
            child.wait()
            module = self._function.partition(":")[0]
            raise HadesError(
                f"the parser process for {self._function} did not start; `python -c 'import "
                f"{module}'` shows why"
            )

        return child


def serve() -> None:
    """The child: answers calls until its input ends. Nothing is caught but memory: any other
    failure is a death.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests = os.fdopen(0, "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a parser prints must not look like an answer
    module, _, name = sys.argv[1].partition(":")
    function = getattr(importlib.import_module(module), name)
    answers.write(_READY)
    answers.flush()

    while True:
        try:
            cpu_seconds, arguments = pickle.load(requests)
        except EOFError:
            return

        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        try:
            pickle.dump(
                function(*arguments),
                answers,
                protocol=5,
            )
            answers.flush()
        except MemoryError:
            os._exit(_OUT_OF_MEMORY)

        signal.setitimer(signal.ITIMER_PROF, 0)


def _reason_of_death(child: subprocess.Popen[bytes], cpu_seconds: float) -> str:
    try:
        code = child.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        code = -signal.SIGPROF

    if code in (-signal.SIGPROF, -signal.SIGKILL):  # by processor time, or by the clock
        return f"parsing takes more than {cpu_seconds:.1f} s"
    if code == _OUT_OF_MEMORY:
        return f"parsing takes more than {MEMORY_BYTES >> 20} MiB of memory"

    return "the parser crashed on it"


_In = TypeVar("_In")
_Out = TypeVar("_Out")
_MOST = 4  # of the default: reading waits for the disk beyond that
# Inputs a worker may be ahead of the reader: enough to stay busy, few enough to stay small.
_AHEAD = 4


def reading_workers(workers: int = 0) -> int:
    """How many files are read at a time: as the setting says, with 0 one for each core but at most
    four.
    """
    return workers or min(_MOST, os.cpu_count() or 1)


def in_order(
    work: Callable[[_In], _Out],
    inputs: Iterable[_In],
    workers: int,
) -> Iterator[_Out]:
    """`map`, with up to `workers` at work; threads suffice, because they wait for children that
    parse.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="read")
    waiting: deque[Future[_Out]] = deque()

    try:
        for argument in inputs:
            waiting.append(pool.submit(work, argument))
            if len(waiting) > _AHEAD * workers:
                yield waiting.popleft().result()

        while waiting:
            yield waiting.popleft().result()
    finally:
        # A reader that stops early does not wait for what it will not read.
        pool.shutdown(cancel_futures=True)
