"""The warm process of a home: it holds the imports, the embedding model and the snapshot that
serves, and answers the questions of new processes.

`hades watch` and `hades serve` start it, and it ends with them. Each question runs in a copy of it
(a fork), which takes the streams, folder and environment of the process that asks and runs the very
command that this process would have run. So questions do not wait for each other, nothing of one
reaches the next, and a copy that fails costs nothing: the asking process answers by itself.
"""

from __future__ import annotations

import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from hades.errors import HadesError
from hades.files import keep_files_private
from hades.ports.store import Mode
from hades.settings.load import keep_libraries_quiet, load_settings
from hades.settings.tree import Settings
from hades.snapshot.pointer import served
from hades.surfaces.access.contexts import CallContext
from hades.surfaces.access.limits import CannotListen, unix_socket
from hades.surfaces.capabilities import questions
from hades.surfaces.cli import commands
from hades.surfaces.cli.start import ACCEPTED, QUESTIONS, SOCKET, describe_installation, peer_user
from hades.surfaces.cli.views import VIEWS
from hades.wiring import lend_graph, open_answers, open_embedder, open_view
from schemas.record import JsonObject

_BOOT = (
    "import sys; sys.path[:] = sys.argv[1].split(chr(0x1f)); from "
    "hades.surfaces.cli.warm import serve_warm; serve_warm()"
)
_REHEARSAL = "Which page says how this works?"
_LONGEST_PATH = 107  # bytes of a Unix socket's path
_LOOK_SECONDS = 1.0  # between two looks for a new snapshot
_PAUSE_SECONDS = 0.01
_CALL_SECONDS = 10.0  # in which a call has arrived
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}  # none before a fork
_STDERR = 2


@contextmanager
def keep_warm(settings: Settings) -> Iterator[None]:
    """Let a warm process answer questions meanwhile, where all they need is on this machine.

    Connections and threads do not survive a fork: a server's store or model and spans have none.
    """
    is_local = settings.store == "sqlite" and settings.embedder != "openai"
    is_short = len(os.fsencode(settings.home / SOCKET)) <= _LONGEST_PATH

    if not (settings.warm and is_local and is_short) or settings.otlp_endpoint is not None:
        yield
        return

    places = "\x1f".join(path or os.getcwd() for path in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _BOOT, places],
        stdin=subprocess.PIPE,  # ends with this process, however that ends
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for this process
    )
    try:
        yield
    finally:
        process.terminate()
        process.communicate()


def serve_warm() -> None:
    """The process: answers at the socket of its home until the process that started it ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for a copy
    installation = describe_installation()
    settings = load_settings()
    os.environ |= _ONE_THREAD
    keep_libraries_quiet()
    keep_files_private(settings.home)
    graph = WarmGraph(settings, installation)

    with _listen(settings.home / SOCKET) as listening:
        while True:
            graph.refresh()
            ready = _wait_for(listening)
            if 0 in ready:
                return

            if ready:
                connection, _ = listening.accept()
                with connection:
                    if peer_user(connection) == os.getuid() and os.fork() == 0:
                        _answer(connection, graph)


@contextmanager
def _listen(path: Path) -> Iterator[socket.socket]:
    """The socket, as soon as there is a home and no other process that listens there."""
    while True:
        try:
            listening = unix_socket(path, Mode.READ_WRITE)
            break
        except CannotListen:
            if _wait_for():
                sys.exit()

    try:
        with listening:
            yield listening
    finally:
        path.unlink(missing_ok=True)


def _wait_for(*sockets: socket.socket) -> list[Any]:
    """What has come within a moment: a call, or the end (0) of the process that started this."""
    sources: list[Any] = [0, *sockets]
    return select.select(sources, (), (), _LOOK_SECONDS)[0]


class WarmGraph:
    """What the copies of this process are lent, and what they must agree with."""

    def __init__(self, settings: Settings, installation: Sequence[str]) -> None:
        self._settings = settings
        self._installation = installation
        self._embedder = open_embedder(settings)
        self._snapshot: str | None = None
        self._files: dict[str, tuple[int, int]] = {}

    def refresh(self) -> None:
        """Open the snapshot that serves, if it is a new one, and ask it once, so that all that a
        question loads is loaded. No connection stays open.
        """
        snapshot = served(self._settings.home)
        if snapshot == self._snapshot:
            return

        self._snapshot = snapshot
        with suppress(HadesError):  # the copies say what is wrong with it
            if snapshot:
                lend_graph(self._embedder, open_view(self._settings))
                self._rehearse()

        while threading.active_count() > 1:
            time.sleep(_PAUSE_SECONDS)  # a copy lacks other threads, and waits for what they hold

        # what was loaded before keeps the mark that it had then
        self._files = {file: _mark_of(file) for file in _loaded_files()} | self._files
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # a copy does not look through what it shares

    def _rehearse(self) -> None:
        """Ask as a copy will; without memory, whose search keeps its store open."""
        answers = open_answers(self._settings, self._embedder)
        answers.tools = replace(answers.tools, memory=None)
        context = CallContext(
            self._settings,
            "",
            lend_answers=lambda: answers,
            logs_turns=False,
            mode=Mode.READ_ONLY,
        )
        request = questions.answer.check({"query": _REHEARSAL, "quote": True})

        with closing(context):
            document = questions.answer.call(request, context)

        Console(file=io.StringIO()).print(*VIEWS["answer"](document))
        for name in QUESTIONS:
            commands.load_command(
                name,
                "capabilities.questions",
                None,
            )

    def may_answer(self, installation: Sequence[str]) -> bool:
        """Whether the process that asks would run the same program with the same settings."""
        if list(installation) != list(self._installation):
            return False
        if any(_mark_of(file) != mark for file, mark in self._files.items()):
            return False  # another version was installed meanwhile

        settings = load_settings()
        # benchmarks alone read `data`, which depends on the folder of the command
        return settings.model_copy(update={"data": self._settings.data}) == self._settings


def _loaded_files() -> set[str]:
    """The files of every module that is loaded."""
    files = set()
    for module in list(sys.modules.values()):
        files.add(getattr(module, "__file__", None))

    return {file for file in files if file is not None and os.path.isfile(file)}


def _mark_of(file: str) -> tuple[int, int]:
    """What differs once a file was written again; of one that is gone, what no file has."""
    try:
        status = os.stat(file)
    except OSError:
        return (0, 0)

    return (status.st_mtime_ns, status.st_ino)


def _answer(connection: socket.socket, graph: WarmGraph) -> NoReturn:
    """Be the process that asks: run its command and send what it prints, then end."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection.settimeout(_CALL_SECONDS)
        call = _take_over(connection)

        if graph.may_answer(call["installation"]):
            connection.settimeout(None)
            connection.sendall(ACCEPTED)
            end = threading.Thread(
                target=_end_with_caller,
                args=(connection,),
                daemon=True,
            )
            end.start()
            reply = _run_command(call)
            connection.sendall(json.dumps(reply).encode() + b"\n")
    finally:
        os._exit(0)  # without a word: the caller, who has no answer then, runs the command


def _take_over(connection: socket.socket) -> JsonObject:
    """Take the streams, environment, folder and rights of the process that asks."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        call: JsonObject = json.loads(lines.readline())

    for number, stream in enumerate(streams):
        os.dup2(stream, number)

    os.environ.clear()
    os.environ.update(call["environment"])
    time.tzset()
    os.umask(call["umask"])
    os.chdir(call["folder"])
    return call


def _end_with_caller(connection: socket.socket) -> None:
    """End where the process that asks has ended, as by Ctrl-C."""
    with suppress(OSError):
        connection.recv(1)

    os._exit(1)


def _run_command(call: Mapping[str, Any]) -> JsonObject:
    """The status of the command and what it wrote, each piece with the number of its stream."""
    output: list[tuple[int, str]] = []
    _, *encodings = call["encodings"]
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (
        _record(number, output, encoding, errors)
        for number, (encoding, errors) in enumerate(encodings, 1)
    )
    sys.argv = ["hades", *call["arguments"]]
    status: object = 0

    try:
        commands.main()
    except SystemExit as end:
        status = end.code or 0

    sys.stdout.flush()
    sys.stderr.flush()
    return {"status": status, "output": output}


def _record(
    number: int,
    output: list[tuple[int, str]],
    encoding: str,
    errors: str,
) -> io.TextIOWrapper:
    """A stream as Python opens it for a process that writes there, but that keeps what is
    written.
    """
    stream = io.BufferedWriter(_Recorder(number, output))
    is_line = number == _STDERR or os.isatty(number)
    return io.TextIOWrapper(
        stream,
        encoding,
        errors,
        line_buffering=is_line,
    )


class _Recorder(io.RawIOBase):
    """Keeps what is written; in all else it is the stream of that number."""

    def __init__(self, number: int, output: list[tuple[int, str]]) -> None:
        super().__init__()
        self._number = number
        self._output = output

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, text: Any) -> int:
        self._output.append((self._number, bytes(text).decode("latin-1")))
        return len(text)
