"""What systemd says to a process that it started for a socket."""

from __future__ import annotations

import os


def socket_activation() -> dict[str, str]:
    """`LISTEN_PID` and `LISTEN_FDS`, where they are set: sockets that were opened for this process."""
    return {name: os.environ[name] for name in ("LISTEN_PID", "LISTEN_FDS") if name in os.environ}
