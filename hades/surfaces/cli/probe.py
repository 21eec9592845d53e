"""Whether a service lives, for health checks of containers and units: asks it, over its socket or an address.

    python -m hades.surfaces.cli.probe /run/hades/readonly/hades.sock
    python -m hades.surfaces.cli.probe http://127.0.0.1:8377/ready

Loads nothing but the standard library: a check every few seconds must cost nothing.
"""

from __future__ import annotations

import http.client
import socket
import sys
from urllib.parse import urlsplit

SECONDS = 4.0
PATH = "/health"


def main() -> None:
    """Leave with 0 when the service answers well, with 1 and one line on stderr when not, with 2 for bad usage."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m hades.surfaces.cli.probe SOCKET|URL\n")
        raise SystemExit(2)
    problem = ask(sys.argv[1])
    if problem:
        sys.stderr.write(f"{problem}\n")
    raise SystemExit(1 if problem else 0)


def ask(where: str) -> str:
    """What is wrong with the service at a socket's path or an address; empty when nothing is."""
    parts = urlsplit(where)
    path = (parts.path if parts.scheme else "") or PATH
    connection = _connection(where)
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"{where} does not answer: {error}"
    finally:
        connection.close()
    return "" if 200 <= status < 300 else f"{where} answers {status} to {path}"


def _connection(where: str) -> http.client.HTTPConnection:
    parts = urlsplit(where)
    if parts.scheme:
        return http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=SECONDS)
    return _UnixConnection(where)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect to the path instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self._path)


if __name__ == "__main__":
    main()
