"""Whether a service lives, for health checks of containers and units: asks it, over its socket or
an address.

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
    """Leave with 0 when the service answers well, with 1 and one line on stderr when not, with 2
    for bad usage.
    """
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
    connection = http.client.HTTPConnection(
        parts.hostname or "localhost",
        parts.port or 80,
        timeout=SECONDS,
    )

    try:
        if not parts.scheme:  # one that has its socket connects to no host
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(SECONDS)
            connection.sock.connect(where)

        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"{where} does not answer: {error}"
    finally:
        connection.close()

    if 200 <= status < 300:
        return ""

    return f"{where} answers {status} to {path}"


if __name__ == "__main__":
    main()
