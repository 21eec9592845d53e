"""Commands in copies of one warm process: each is a process of its own, forked where the imports are already done.

A page of the documentation runs many short commands, and most of the time of a short command is its imports.
The first test of a run that needs it starts one process that imports what commands import, for all workers of the run,
and writes programs named `hades`, `prefect` and `python` to a folder for the path. Such a program hands its arguments,
folder, environment and standard streams to the warm process, which forks; the copy runs the command as the console
script would. A signal to the program reaches the copy, which is killed where it does not end, and a copy ends when its
program does. `python` does so for a program on standard input only, and is the interpreter itself for the rest.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path

from hades.providers.registry_files import hold_lock

VARIABLE = "HADES_TEST_WARM"  # the folder that the workers of a run share
STARTED: list[subprocess.Popen[str]] = []  # not collected while it runs
PROGRAM = """#!{python} -IS
import json, os, signal, socket, struct, sys
name = os.path.basename(sys.argv[0])
if name == "python" and sys.argv[1:] != ["-"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
talk = socket.socket(socket.AF_UNIX)
talk.connect({address!r})
said = json.dumps([name, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(talk, [struct.pack("!I", len(said))], [0, 1, 2])
talk.sendall(said)
child = struct.unpack("!I", talk.recv(4))[0]
def tell(number, frame):
    os.kill(child, number)
    signal.alarm(20)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, tell)
signal.signal(signal.SIGALRM, lambda number, frame: os.kill(child, signal.SIGKILL))
code = talk.recv(4)
sys.exit(struct.unpack("!i", code)[0] if code else 70)
"""
ROOT = Path(__file__).resolve().parents[2]
LOADED_LATER = ("__main__", "ranker", "frameworks")  # programs, and what imports torch
LIBRARIES = (  # that functions import when they need them
    "pandas", "mlflow", "great_expectations", "igraph", "hdbscan",
    "mlflow.store.tracking.sqlalchemy_store", "mlflow.store.model_registry.sqlalchemy_store",
)  # fmt: skip
SECONDS_BETWEEN_LOOKS = 0.02


def open_room() -> int:
    """Make the folder that the workers of this run share. The warm process lives as long as this descriptor is open."""
    room = Path(tempfile.mkdtemp(prefix="hades-warm-"))
    os.environ[VARIABLE] = str(room)
    os.mkfifo(room / "alive")
    return os.open(room / "alive", os.O_RDWR)  # also for reading: nobody reads yet, and writers alone would wait


def close_room(alive: int) -> None:
    """The warm process reads the end of its standard input, and ends."""
    os.close(alive)
    shutil.rmtree(os.environ.pop(VARIABLE), ignore_errors=True)


def warm_commands() -> Path:
    """A folder with the programs; the process that serves them is started where none is."""
    room = Path(os.environ[VARIABLE])
    folder = room / "bin"
    address = folder / "talk"
    with hold_lock(room / "lock"):
        if not address.exists():
            folder.mkdir()
            for name in ("hades", "prefect", "python"):
                program = folder / name
                program.write_text(PROGRAM.format(python=sys.executable, address=str(address)), encoding="utf-8")
                program.chmod(0o755)
            _start(room, str(address))
    return folder


def _start(room: Path, address: str) -> None:
    """Start the warm process; it outlives the worker that did, as others may still need it."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PREFECT_HOME": str(room / "prefect")}
    command = [sys.executable, "-m", "tests.e2e.warm_process", address]
    with (room / "alive").open("rb", buffering=0) as alive:
        process = subprocess.Popen(command, env=environment, stdin=alive, stdout=subprocess.PIPE, text=True)
    STARTED.append(process)
    if process.stdout is None or process.stdout.readline() != "ready\n":
        raise RuntimeError("the warm process ended before it was ready; its message stands above")


def serve(address: str) -> Callable[[], object]:
    """Fork for each request. Returns in the copies only, with what the copy is to run."""
    import_what_commands_import()
    if threading.active_count() != 1:
        raise RuntimeError(f"imports left threads behind, a copy would lack them: {threading.enumerate()}")
    children: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as watch:
        listener.bind(address)
        listener.listen()
        watch.register(listener, selectors.EVENT_READ)
        watch.register(sys.stdin, selectors.EVENT_READ)  # ends when the run does
        os.write(1, b"ready\n")
        while True:
            for key, _ in watch.select(SECONDS_BETWEEN_LOOKS if children else None):
                talk = key.fileobj
                if talk is sys.stdin:
                    os._exit(0)
                if talk is listener:
                    accepted, _ = listener.accept()
                    job, child = _fork(accepted)
                    if job is not None:
                        return job
                    children[child] = accepted
                    watch.register(accepted, selectors.EVENT_READ)
                else:  # its program is gone
                    gone = next(pid for pid, other in children.items() if other is talk)
                    os.kill(gone, signal.SIGKILL)
                    watch.unregister(talk)
            _report_ends(children, watch)


def import_what_commands_import() -> None:
    """Modules of the project and their libraries, without torch; compiled walks; the tokenizer; what conftest sets."""
    for package in ("hades", "tasks", "flows"):
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not any(word in module.name for word in LOADED_LATER):
                importlib.import_module(module.name)
    for name in LIBRARIES:
        importlib.import_module(name)
    importlib.import_module("sqlalchemy.orm").configure_mappers()
    importlib.import_module("hades.retrieval.turn.warm_up").main()
    importlib.import_module("hades.providers.tokens").share_pieces()
    importlib.import_module("tests.registry_template").copy_new_registries()
    importlib.import_module("hades.telemetry.turn").read_clock = time.process_time
    gc.collect()
    gc.freeze()  # a copy does not look through what it shares


def _fork(talk: socket.socket) -> tuple[Callable[[], object] | None, int]:
    head, streams, _, _ = socket.recv_fds(talk, 4, 3)
    wanted = struct.unpack("!I", head)[0]
    said = b""
    while len(said) < wanted:
        said += talk.recv(wanted - len(said))
    child = os.fork()
    if child:
        for stream in streams:
            os.close(stream)
        talk.sendall(struct.pack("!I", child))
        return None, child
    name, arguments, folder, environment = json.loads(said)
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # as in a new process, whatever a library set
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0, closefd=False), open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [name, *arguments]
    return {"hades": _run_hades, "prefect": _run_prefect, "python": _run_standard_input}[name], 0


def _run_hades() -> None:
    from hades.surfaces.cli import main

    sys.modules["__main__"] = main
    main.main()


def _run_prefect() -> None:
    context = importlib.import_module("prefect.context")
    context.refresh_global_settings_context()  # the settings of this environment
    runpy.run_module("prefect", run_name="__main__", alter_sys=True)


def _run_standard_input() -> None:
    program = types.ModuleType("__main__")
    sys.modules["__main__"] = program
    exec(compile(sys.stdin.read(), "<stdin>", "exec"), program.__dict__)


def _report_ends(children: dict[int, socket.socket], watch: selectors.BaseSelector) -> None:
    for child, talk in list(children.items()):
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended:
            continue
        with contextlib.suppress(OSError):
            talk.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status) & 0xFF))
        with contextlib.suppress(KeyError):
            watch.unregister(talk)
        talk.close()
        del children[child]


def _run(job: Callable[[], object]) -> int:
    """The exit code of a copy: exit handlers have run, threads have ended, and what it wrote is out."""
    code = 0
    try:
        job()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    os._exit(_run(serve(sys.argv[1])))  # without freeing, piece by piece, what the copies share
