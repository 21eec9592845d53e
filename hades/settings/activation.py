"""What the environment says to a process beside the settings: sockets of systemd, and what a child inherits."""

from __future__ import annotations

import os


def socket_activation() -> dict[str, str]:
    """`LISTEN_PID` and `LISTEN_FDS`, where they are set: sockets that were opened for this process."""
    return {name: os.environ[name] for name in ("LISTEN_PID", "LISTEN_FDS") if name in os.environ}


def child_environment(without: str) -> dict[str, str]:
    """The environment for a child process, without the variables whose names begin so."""
    return {name: value for name, value in os.environ.items() if not name.startswith(without)}
