"""Listening sockets, with their rights set before anybody can connect; or those that systemd hands over."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

from hades.errors import HadesError
from hades.ports.store import Mode
from hades.surfaces.access.callers import LOOPBACK, Door

RIGHTS = {Mode.READ_ONLY: 0o660, Mode.READ_WRITE: 0o600, Mode.ADMIN: 0o600}
BACKLOG = 1024
_FIRST_HANDED_OVER = 3  # file number of the first socket that systemd passes, by sd_listen_fds(3)


class CannotListen(HadesError):
    """An address that cannot be listened on."""


def unix_socket(path: Path, mode: Mode) -> socket.socket:
    """A listening Unix socket that only those may reach whom its mode allows, from the first moment on.

    A socket that a dead service left behind is replaced; one with a listener, or a file, is not.
    """
    _make_room(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o777 & ~RIGHTS[mode])
    try:
        listening.bind(str(path))
        path.chmod(RIGHTS[mode])
    except OSError as error:
        listening.close()
        raise CannotListen(f"{path} cannot be listened on ({error}); make its folder or choose another path") from error
    finally:
        os.umask(before)
    listening.listen(BACKLOG)
    return listening


def hand_over(path: Path, mode: Mode, env: Mapping[str, str]) -> socket.socket | None:
    """The socket of this path that systemd opened for this process, if it did; one with wider rights is refused."""
    if env.get("LISTEN_PID") != str(os.getpid()):
        return None
    for number in range(_FIRST_HANDED_OVER, _FIRST_HANDED_OVER + int(env.get("LISTEN_FDS", "0"))):
        given = socket.socket(fileno=os.dup(number))
        if given.family == socket.AF_UNIX and given.getsockname() == str(path):
            rights = stat.S_IMODE(path.stat().st_mode)
            if rights & ~RIGHTS[mode]:
                given.close()
                raise CannotListen(
                    f"{path} has the rights {rights:04o}, mode {mode.value} allows {RIGHTS[mode]:04o}; "
                    "set SocketMode= in its unit"
                )
            return given
        given.close()
    return None


def tcp_socket(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one.

    The protocol is named: only then does asyncio send small answers at once instead of waiting for the last one's
    receipt (TCP_NODELAY), which costs 40 ms.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise CannotListen(f"{host}:{port} cannot be listened on ({error}); choose another port") from error
    listening.listen(BACKLOG)
    return listening


def tcp_door(mode: Mode, host: str, *, needs_token: bool, tenant: str | None = None) -> Door:
    """A door on TCP. Without a token only this machine may come, and only by its own name."""
    if not needs_token and host not in LOOPBACK:
        raise CannotListen(f"{host} is reached from other machines, so callers need tokens; leave out --no-token")
    return Door(mode, needs_token, tenant, None if needs_token else LOOPBACK)


def _make_room(path: Path) -> None:
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise CannotListen(f"{path} exists and is not a socket; choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise CannotListen(f"{path} cannot be looked at ({error}); choose another path") from error
    raise CannotListen(f"another process listens on {path}; stop that service first")
