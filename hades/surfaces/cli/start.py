"""The program `hades`: a question goes to the warm process of its home, where there is one, and
every other command runs here.

Only the standard library is imported before: the warm process answers sooner than this one could
import what an answer needs. What keeps it from answering, keeps it silently: the command runs here.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
from importlib import import_module
from typing import Any

SOCKET = ".warm"
QUESTIONS = frozenset({"answer", "explain", "query"})
ACCEPTED = b"+"
_ACCEPT_SECONDS = 2.0
_ONLY_HERE = ("HADES_TENANT", "_HADES_COMPLETE")
_INTERRUPTED = 130


def main() -> None:
    """Entry point of the console script."""
    status = ask_warm_process(sys.argv[1:])
    if status is None:
        if sys.argv[1:2] and sys.argv[1] in QUESTIONS:
            sys.meta_path.insert(0, _WithoutPandas())
        import_module("hades.surfaces.cli.commands").main()

    sys.exit(status)


class _WithoutPandas:
    """Arrow imports pandas, where it is installed, at its first conversion: a fifth of a second
    that no question needs.
    """

    def find_spec(
        self,
        name: str,
        path: Any = None,
        target: Any = None,
    ) -> None:
        """Say that there is no pandas; others look for every other module."""
        if name == "pandas":
            raise ModuleNotFoundError(
                "a question works without pandas",
                name=name,
            )


def ask_warm_process(arguments: list[str]) -> int | None:
    """The exit status of a question that the warm process answered; None where none did."""
    is_question = bool(arguments) and arguments[0] in QUESTIONS
    if not is_question or sys.platform != "linux" or os.environ.get("HADES_WARM") == "0":
        return None
    if any(os.environ.get(name) for name in _ONLY_HERE):
        return None

    try:
        reply = _exchange(_describe_call(arguments))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (OSError, ValueError):
        return None

    return _write_output(reply["output"]) or int(reply["status"])


def peer_user(connection: socket.socket) -> int:
    """The user at the other end of a Unix socket, as the kernel knows it."""
    credentials = connection.getsockopt(
        socket.SOL_SOCKET,
        socket.SO_PEERCRED,
        struct.calcsize("3i"),
    )
    return int(struct.unpack("3i", credentials)[1])


def describe_installation() -> list[str]:
    """What must be equal for two processes to run the same program: interpreter, code, and what
    changes how Python runs.
    """
    variables = sorted(
        f"{name}={value}" for name, value in os.environ.items() if name.startswith("PYTHON")
    )
    return [sys.executable, os.path.abspath(__file__), *variables]


def _describe_call(arguments: list[str]) -> dict[str, Any]:
    """Everything of this process that a command can see."""
    umask = os.umask(0o077)
    os.umask(umask)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return {
        "installation": describe_installation(),
        "arguments": arguments,
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "umask": umask,
        "encodings": [(stream.encoding, stream.errors) for stream in streams],
    }


def _exchange(call: dict[str, Any]) -> Any:
    """The reply of the warm process of the home that the environment names."""
    home = os.path.expanduser(os.environ.get("HADES_HOME") or ".hades")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ACCEPT_SECONDS)
        connection.connect(os.path.join(home, SOCKET))
        if peer_user(connection) != os.getuid():
            raise PermissionError(f"{home} is served by another user")

        socket.send_fds(connection, [b"."], [0, 1, 2])
        connection.sendall(json.dumps(call).encode() + b"\n")
        if connection.recv(1) != ACCEPTED:
            raise ConnectionError("the warm process is of another version or has other settings")

        connection.settimeout(None)
        with connection.makefile("rb") as lines:
            return json.loads(lines.readline())


def _write_output(output: list[tuple[int, str]]) -> int:
    """Write what the command wrote, in its order; 1 where nobody reads it any more."""
    streams = {
        1: sys.stdout.buffer,
        2: sys.stderr.buffer,
    }
    try:
        for number, text in output:
            streams[number].write(text.encode("latin-1"))
            streams[number].flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter flushes once more
        return 1

    return 0


if __name__ == "__main__":
    main()
