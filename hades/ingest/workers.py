"""Child processes, pipes, background writes."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Lock
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from hades.errors import HadesError
from schemas.record import hide_pandas_from_arrow

# How ingestion uses memory: when Python looks for garbage, and when freed memory goes back to the system.


_OBJECTS = 200_000  # Python's default is 700, after which it looks at all young objects


@contextmanager
def collect_seldom() -> Iterator[None]:
    """Look for cycles after many more new objects than usual: reading papers then takes half the time.

    Ingestion makes millions of objects and hardly a cycle.
    """
    before = gc.get_threshold()
    set_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def set_seldom() -> None:
    """The same for the rest of this process."""
    gc.set_threshold(_OBJECTS, 20, 20)


def give_back_memory() -> None:
    """Return memory that is no longer used to the system, which neither Arrow nor the C library does by itself."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; others have none
        if trim is not None:
            trim(0)


# Messages between a process and its child over pipes: the length, then a pickled value.


_HEADER = struct.Struct("<Q")
_PART_BYTES = 1 << 20


def send_message(stream: IO[bytes], value: object) -> None:
    """Write a whole message; raises `BrokenPipeError` when nobody reads it any more."""
    body = pickle.dumps(value, protocol=5)
    for data in (_HEADER.pack(len(body)), body):
        rest = memoryview(data)
        while rest:
            rest = rest[stream.write(rest) :]
    stream.flush()


def receive_message(stream: IO[bytes], wait_seconds: float | None = None) -> Any:
    """Read a whole message; raises `EOFError` when the other side ends, or is silent for `wait_seconds`."""
    size = _HEADER.unpack(receive_bytes(stream, _HEADER.size, wait_seconds))[0]
    return pickle.loads(receive_bytes(stream, size, wait_seconds))


def receive_bytes(stream: IO[bytes], size: int, wait_seconds: float | None = None) -> bytes:
    """Exactly `size` bytes of an unbuffered stream."""
    parts: list[bytes] = []
    while size:
        if not select.select([stream], [], [], wait_seconds)[0]:
            raise EOFError
        part = os.read(stream.fileno(), min(size, _PART_BYTES))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# Pure work on many documents in child processes; results come in the order of the inputs. A child is a fresh
# interpreter that calls functions named `module:function`: a fork would copy the locks of this process's threads,
# and `multiprocessing` refuses to start children where the process is itself a worker. A child ends when its input
# ends, so none outlives its parent, however the parent ends.


_GRACE_SECONDS = 60.0
# The child looks for modules where its parent does, in whatever way the parent came to look there.
_BOOT = f"import sys; sys.path[:] = sys.argv[1].split(chr(0x1f)); from {__name__} import serve; serve()"


class WorkerDied(HadesError):
    """A child process ended in the middle of its work. Nothing of the batch is written."""


class WorkerPool:
    """At most `workers` child processes, started when they are first needed; with one worker no child is started.

    At most twice as many inputs as workers are in flight, so memory does not follow the corpus.
    """

    def __init__(self, workers: int = 0) -> None:
        """`workers` 0: as many as this process may use cores."""
        self.workers = workers or _usable_cores()
        self._children = [_Child() for _ in range(self.workers)] if self.workers > 1 else []
        self._idle: LifoQueue[_Child] = LifoQueue()
        for child in self._children:
            self._idle.put(child)
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            child.end()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        for child in self._children:
            child.close_pipes()  # now that no thread reads them

    def map(self, function: Callable[..., Any], inputs: Iterable[tuple[object, ...]]) -> Iterator[Any]:
        """`function(*input)` for each input, in their order; the function must be importable by its name."""
        if not self._children:
            for one in inputs:
                yield function(*one)
            return
        waiting: deque[Future[Any]] = deque()
        for one in inputs:
            waiting.append(self.submit(function, *one))
            if len(waiting) >= 2 * self.workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def map_large(
        self, function: Callable[..., Any], inputs: Iterable[tuple[int, tuple[object, ...]]], small_bytes: int
    ) -> Iterator[Any]:
        """As `map`, for inputs that come with their size; children are started only for more than `small_bytes`."""
        iterator = iter(inputs)
        first: list[tuple[object, ...]] = []
        size = 0
        for one_size, one in iterator:
            first.append(one)
            size += one_size
            if size > small_bytes and self._children:
                yield from self.map(function, chain(first, (rest for _, rest in iterator)))
                return
            if not self._children:
                yield function(*first.pop())
        for one in first:
            yield function(*one)

    def end_children(self) -> None:
        """End the children, which hold memory; a later call starts new ones. No call may be under way."""
        for _ in self._children:
            child = self._idle.get()
            child.end()
            child.close_pipes()
        self._children = [_Child() for _ in self._children]
        for child in self._children:
            self._idle.put(child)

    def end_idle_children(self) -> None:
        """As `end_children`, of those that have no call under way."""
        with suppress(Empty):
            while True:
                child = self._idle.get_nowait()
                child.end()
                child.close_pipes()
                self._children.remove(child)
        for _ in range(self.workers - len(self._children) if self.workers > 1 else 0):
            self._children.append(_Child())
            self._idle.put(self._children[-1])

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """One call in a child, while this process goes on; without children it is done at once."""
        if not self._children:
            done: Future[Any] = Future()
            done.set_result(function(*arguments))
            return done
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="hades-worker")
        return self._threads.submit(self._call, f"{function.__module__}:{function.__qualname__}", arguments)

    def _call(self, function: str, arguments: tuple[object, ...]) -> Any:
        child = self._idle.get()
        try:
            return child.call(function, arguments)
        finally:
            self._idle.put(child)


class _Child:
    """One child process; threads only wait for it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ended = False
        self._lock = Lock()

    def call(self, function: str, arguments: tuple[object, ...]) -> Any:
        """What the function returns in the child; what it raises is raised here."""
        process = self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            send_message(process.stdin, (function, arguments))
            is_done, value = receive_message(process.stdout)
        except (EOFError, OSError):
            raise WorkerDied(
                f"worker process {process.pid} ended with status {_end(process)} in {function}; "
                "memory may have run out. "
                "Run the command again, with HADES_INGEST_WORKERS=1 to work without worker processes"
            ) from None
        if not is_done:
            raise value
        return value

    def end(self) -> None:
        """End the process, whatever it is doing; none is started any more."""
        with self._lock:
            self._is_ended = True
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def close_pipes(self) -> None:
        """Give the pipes of an ended process back."""
        for stream in (self._process.stdin, self._process.stdout) if self._process is not None else ():
            if stream is not None:
                stream.close()

    def _start(self) -> subprocess.Popen[bytes]:
        """The process, started at the first call."""
        with self._lock:
            if self._is_ended:
                raise WorkerDied("the worker pool was closed before its work was done; run the command again")
            if self._process is None:
                places = "\x1f".join(path or os.getcwd() for path in sys.path)
                command = [sys.executable, "-P", "-c", _BOOT, places]
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            return self._process


def _end(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a process that has closed its pipes; one that goes on all the same is killed."""
    try:
        return process.wait(timeout=_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _usable_cores() -> int:
    """Cores that this process may use; not every system says that of a process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def serve() -> None:
    """The child: answers calls until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its children
    set_seldom()
    hide_pandas_from_arrow()  # or Arrow would load it, which takes .6 s
    requests, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)  # whatever a library prints must not look like an answer
    while True:
        try:
            function, arguments = receive_message(requests)
        except EOFError:
            return
        module, _, name = function.partition(":")
        try:
            answer = (True, getattr(importlib.import_module(module), name)(*arguments))
        except Exception as error:  # raised again in the parent, which knows what to do with it
            answer = (False, _portable(error))
        try:
            send_message(answers, answer)
        except BrokenPipeError:
            return


def _portable(error: Exception) -> Exception:
    """The error itself where it can be sent, else its words."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return HadesError(f"{type(error).__name__}: {error}")
    return error


# Tables as bytes, in Arrow's own format: without what a slice leaves out, which a pickle would carry.


def to_bytes(table: pa.Table) -> bytes:
    """The rows and the schema of a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> pa.Table:
    """The table that `to_bytes` wrote."""
    return pa.ipc.open_stream(data).read_all()


def write_file(path: Path, table: pa.Table) -> int:
    """Write a table to a file in one step; returns the checksum of the file."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    with pa.memory_map(str(partial)) as written:
        checksum = zlib.crc32(written.read_buffer())
    partial.replace(path)
    return checksum


def replace_file(path: Path, data: bytes) -> None:
    """Write a file in one step: whoever reads it sees all of the old bytes or all of the new ones."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_bytes(data)
    partial.replace(path)


def read_file(path: Path, checksum: int) -> pa.Table:
    """The table of a file, mapped into memory; ValueError where the file has another checksum."""
    data = pa.memory_map(str(path)).read_buffer()
    if zlib.crc32(data) != checksum:
        raise ValueError(f"{path} is damaged; it is derived again")
    return pa.ipc.open_stream(pa.BufferReader(data)).read_all()


# Writes in a thread of their own, one at a time, while the caller prepares the next one.


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
