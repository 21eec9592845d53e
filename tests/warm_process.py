"""`hades` and `python -` as copies of one process that has its imports: a start takes milliseconds,
not seconds.

Each command is still a process of its own. The programs that `start_warm_process` writes hand their
arguments, folder, environment and standard streams to the warm process, which forks; the copy runs
the command as the console script does. A signal to the program reaches its copy, and a copy ends
when its program is gone. Imports, and what fails without them, are tested by real starts: `hades
serve`, the Prefect server, `tests/wheel`, `tests/architecture`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from tests.installation import set_up_process

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """#!{python} -IS
import json, os, signal, socket, sys
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
if name == "python" and arguments != ["-"]:
    os.execv({python!r}, [{python!r}, *arguments])
talk = socket.socket(socket.AF_UNIX)
talk.connect({address!r})
socket.send_fds(talk, [b"."], [0, 1, 2])
lines = talk.makefile("rw")
print(json.dumps([name, arguments, os.getcwd(), dict(os.environ)]), file=lines, flush=True)
copy = int(lines.readline())
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, frame: os.kill(copy, number))
sys.exit(int(lines.readline() or 137))
"""
RUN = "HADES_TEST_RUN"  # the first process of the run, whose workers share one warm process
LOADED_LATER = ("__main__", "ranker", "frameworks")  # programs, and what imports torch
LIBRARIES = ("pandas", "sklearn.feature_extraction", "mlflow", "great_expectations", "igraph")
LIBRARIES += tuple(
    f"mlflow.store.{kind}.sqlalchemy_store" for kind in ("tracking", "model_registry")
)
_started: list[subprocess.Popen[bytes]] = []  # they outlive this process


def start_warm_process(folder: Path) -> None:
    """Write the programs to the folder and start what serves them; it ends with the process that
    RUN names.
    """
    address = folder / "talk"
    (folder / "prefect").mkdir(parents=True)
    for name in ("hades", "python"):
        program = folder / name
        program.write_text(
            PROGRAM.format(python=sys.executable, address=str(address)), encoding="utf-8"
        )
        program.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder / "prefect")}
    command = [sys.executable, "-m", "tests.warm_process", str(address)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True
    )
    with process.stdout as said:
        assert said.readline() == b"ready\n"  # its message stands above
    _started.append(process)


def start_program(
    programs: Path, text: str, *arguments: object, **options: Any
) -> subprocess.Popen[str]:
    """Python with this program and these arguments, a copy of the warm process."""
    with tempfile.TemporaryFile("w+") as file:
        file.write(f"import sys\nsys.argv = {['-', *map(str, arguments)]!r}\n{text}")
        file.seek(0)
        return subprocess.Popen(
            [programs / "python", "-"], stdin=file, cwd=ROOT, text=True, **options
        )


class Forking(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """The warm process: a copy for each request, and an end when the tests are gone."""

    max_children, request_queue_size = 1_000, 100

    def service_actions(self) -> None:
        super().service_actions()
        if not psutil.pid_exists(int(os.environ[RUN])):
            os._exit(0)


class Copy(socketserver.BaseRequestHandler):
    """What a copy does: take the streams, the folder and the environment of its program, and run
    the command.
    """

    def handle(self) -> None:
        _, streams, _, _ = socket.recv_fds(self.request, 1, 3)
        lines = self.request.makefile("rw")
        name, arguments, folder, environment = json.loads(lines.readline())
        os.setsid()
        for number in (
            signal.SIGTERM,
            signal.SIGHUP,
            signal.SIGCHLD,
        ):  # as in a new process, whatever a library set
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [name, *arguments]
        print(os.getpid(), file=lines, flush=True)
        threading.Thread(target=self.end_with_program, daemon=True).start()
        code = run_hades() if name == "hades" else run_standard_input()
        print(code, file=lines, flush=True)
        os._exit(code)  # without freeing, piece by piece, what the copies share

    def end_with_program(self) -> None:
        if not self.request.recv(1):
            os.kill(os.getpid(), signal.SIGKILL)


def run_hades() -> int:
    commands = sys.modules["__main__"] = import_module("hades.surfaces.cli.commands")
    return exit_code(commands.main)


def run_standard_input() -> int:
    program = sys.modules["__main__"] = type(sys)("__main__")
    return exit_code(lambda: exec(compile(sys.stdin.read(), "<stdin>", "exec"), program.__dict__))


def exit_code(command) -> int:
    """The code after the command: threads have ended, exit handlers have run, and what it wrote is
    out.
    """
    code = 0
    try:
        command()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code & 0xFF


def import_what_commands_import() -> None:
    """Modules of the project and their libraries, without torch; what tests set."""
    for package in ("hades", "tasks", "flows"):
        for module in pkgutil.walk_packages([str(ROOT / package)], f"{package}."):
            if not any(word in module.name for word in LOADED_LATER):
                import_module(module.name)
    for name in LIBRARIES:
        import_module(name)
    import_module("sqlalchemy.orm").configure_mappers()
    set_up_process()
    gc.collect()
    gc.freeze()  # a copy does not look through what it shares


if __name__ == "__main__":
    import_what_commands_import()
    assert threading.active_count() == 1, (
        f"a copy would lack these threads: {threading.enumerate()}"
    )
    with Forking(sys.argv[1], Copy) as server:
        os.write(1, b"ready\n")
        server.serve_forever()
