"""Tokens, callers, rate, sizes, sockets."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from cachetools import LRUCache

from hades.errors import HadesError
from hades.files import hold_lock, write_whole
from hades.ports.graph import DocumentFilter
from hades.ports.store import Mode
from hades.retrieval.answer.absence_certificate import written_filters
from hades.retrieval.necessity import read_filters
from hades.snapshot.rights_file import OWNER, PUBLIC, Readers
from schemas.ids import sha256_text

# Callers of a service, the socket they came through, and what they may do.
_ORDER = (Mode.READ_ONLY, Mode.READ_WRITE, Mode.ADMIN)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


LIMITED_NEXT = (
    "this caller is limited to a part of the corpus: it may ask (/v1/query, /v1/answer, "
    "pathrag_retrieve, hipporag_retrieve) and nothing else"
)


class CallerRefused(HadesError):
    """A caller without the mode that a call needs."""


@dataclass(frozen=True)
class Caller:
    """A caller: a name for the audit, the mode they may use, their tenant, the part of the corpus
    they may see, and the names that they read by.
    """

    name: str
    mode: Mode
    tenant: str | None = None
    limit: DocumentFilter | None = None
    names: Readers = ()

    @property
    def asker(self) -> Readers:
        """The names that the caller reads by. A token that may change everything reads all, unless
        it says whose it is.
        """
        return self.names or (PUBLIC if self.mode is Mode.READ_ONLY else OWNER)


@dataclass(frozen=True)
class Door:
    """One listening socket: what its service offers, whether it asks for a token, and the tenant
    behind it.

    `hosts` are the only names it answers to; a door without a token that a browser can reach has
    them, so that no page of another site can talk through it. None: any name. `folders` are those
    of this machine that callers may have read. `asker` are the names that callers without a token
    read by.
    """

    mode: Mode
    needs_token: bool = False
    tenant: str | None = None
    hosts: frozenset[str] | None = None
    folders: tuple[Path, ...] = ()
    asker: Readers = PUBLIC


def covers(mode: Mode, needed: Mode) -> bool:
    """Whether a service of this mode has what needs that one."""
    return _ORDER.index(mode) >= _ORDER.index(needed)


def require(caller: Caller, needed: Mode) -> None:
    """Let the caller pass, or say what they would need."""
    if not covers(caller.mode, needed):
        raise CallerRefused(
            f"{caller.name} may use this service as {caller.mode.value!r}, this call needs "
            f"{needed.value!r}; use a token of that mode (`hades token add`)"
        )


# Bearer tokens: 256 random bits each, kept as a hash, compared in constant time. A token is random
# enough that a plain SHA-256 of it cannot be searched; a slow hash would only slow every request.
# The file is small and read for each request, so a token that is revoked is refused from the next
# one on.
FILE = "tokens.json"
_TOKEN = re.compile(r"hades_([0-9a-f]{8})_[A-Za-z0-9_-]{43}")
_ANY_TOKEN = re.compile(r"hades_[0-9a-f]{8}_[A-Za-z0-9_%-]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_NOBODY = sha256_text("nobody")


class TokenError(HadesError):
    """A token that cannot be made, found or read."""


@dataclass(frozen=True)
class Token:
    """What is kept of a token: never its text."""

    id: str
    name: str
    mode: str
    tenant: str | None
    sha256: str
    created_at: str
    only: dict[str, Any] = field(default_factory=dict)  # what it is limited to
    names: Readers = ()  # that its holder reads by


class Tokens:
    """The tokens of a home, in one file that only its owner can read."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def add(
        self,
        name: str,
        mode: Mode,
        at: datetime,
        tenant: str | None = None,
        limit: DocumentFilter | None = None,
        names: Readers = (),
    ) -> tuple[str, Token]:
        """A new token, whose text is shown this once; with a `limit` its holder sees nothing but
        what that selects.
        """
        if (limit is not None or names) and mode is not Mode.READ_ONLY:
            raise TokenError(
                f"a token of mode {mode.value} sees everything; leave the filters and readers out "
                "or use --mode ro"
            )

        if not _NAME.fullmatch(name):
            raise TokenError(
                f"{name!r} cannot name a token; use up to 64 letters, digits, dots, dashes and @"
            )

        if tenant is not None and not _NAME.fullmatch(tenant):
            raise TokenError(
                f"{tenant!r} cannot name a tenant; use up to 64 letters, digits, dots and dashes"
            )

        with self._edit_tokens() as tokens:
            if any(token.name == name for token in tokens.values()):
                raise TokenError(
                    f"there is a token called {name} already; revoke it first or choose another "
                    "name"
                )

            identifier = secrets.token_hex(4)
            text = f"hades_{identifier}_{secrets.token_urlsafe(32)}"
            token = Token(
                id=identifier,
                name=name,
                mode=mode.value,
                tenant=tenant,
                sha256=sha256_text(text),
                created_at=at.isoformat(timespec="seconds"),
                only=written_filters(limit),
                names=names,
            )
            tokens[identifier] = token

        return text, token

    def revoke(self, name: str) -> Token:
        """Let a token, by name or id, open nothing any more."""
        with self._edit_tokens() as tokens:
            token = next(
                (token for token in tokens.values() if name in (token.name, token.id)),
                None,
            )
            if token is None:
                raise TokenError(
                    f"no token is called {name!r}; `hades token list` shows those there are"
                )

            del tokens[token.id]

        return token

    def all(self) -> list[Token]:
        """Every token, by name."""
        return sorted(
            self._load_tokens().values(),
            key=lambda token: token.name,
        )

    def caller(self, text: str) -> Caller | None:
        """Whose token this is; None when it is nobody's. Takes as long for a wrong one as for a
        right one.
        """
        shape = _TOKEN.fullmatch(text)
        token = self._load_tokens().get(shape[1]) if shape else None
        expected = token.sha256 if token else _NOBODY
        is_right = hmac.compare_digest(sha256_text(text), expected)

        if token is None or not is_right:
            return None

        limit = read_filters(token.only)[0]
        return Caller(
            token.name,
            Mode(token.mode),
            token.tenant,
            limit,
            tuple(token.names),
        )

    def _load_tokens(self) -> dict[str, Token]:
        try:
            rows = json.loads(self._path.read_text("utf-8"))["tokens"]
            return {row["id"]: Token(**row) for row in rows}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise TokenError(
                f"{self._path} cannot be read ({error}); fix or remove it, then add tokens"
            ) from error

    @contextmanager
    def _edit_tokens(self) -> Iterator[dict[str, Token]]:
        """The tokens, to be changed in place by one process at a time and put on the disk at the
        end.
        """
        with hold_lock(self._path.with_name(f".{FILE}.lock")):
            by_id = self._load_tokens()
            yield by_id
            tokens = [asdict(token) for _, token in sorted(by_id.items())]
            write_whole(
                self._path,
                json.dumps({"tokens": tokens}, indent=1),
                0o600,
            )


def without_tokens(text: str) -> str:
    """A text with every token in it masked, for logs."""
    return _ANY_TOKEN.sub("hades_********", text)


# Limits of one request, one connection and one client.


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds.

    `arrive_seconds` is the limit for receiving a whole request, however slowly its bytes arrive.
    `threads` calls run at the same time; at most `waiting` calls run or wait, further ones get
    status 503.
    """

    body_bytes: int = 256 * 1024
    header_bytes: int = 16 * 1024
    arrive_seconds: float = 10.0
    request_seconds: float = 30.0
    idle_seconds: float = 15.0
    connections: int = 1024
    per_second: float = 1000.0
    burst: float = 2000.0
    threads: int = 0
    waiting: int = 512
    cache_bytes: int = 64 * 1024 * 1024

    @property
    def answering(self) -> int:
        """Number of threads: as set, or one for each core."""
        return self.threads or max(2, os.cpu_count() or 1)


# How often a client may come: a bucket of permits each, filled at a steady rate.
_CLIENTS = 10_000  # buckets held; a flood of made-up clients must not fill the memory


class Rates:
    """At most `per_second` calls of a client in the long run, `burst` at once. 0 a second: no
    limit.
    """

    def __init__(
        self,
        per_second: float,
        burst: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._burst = max(1.0, burst)
        self._clock = clock
        self._buckets: LRUCache[str, tuple[float, float]] = LRUCache(_CLIENTS)
        self._lock = threading.Lock()

    def wait(self, client: str) -> float:
        """Take a permit and return 0.0; or, when there is none, the seconds until there would be
        one.
        """
        if self._per_second <= 0:
            return 0.0

        now = self._clock()
        with self._lock:
            permits, last_moment = self._buckets.get(client, (self._burst, now))
            permits = min(self._burst, permits + (now - last_moment) * self._per_second)
            missing_permits = 1.0 - permits
            self._buckets[client] = (permits if missing_permits > 0 else permits - 1.0, now)

        return max(0.0, missing_permits / self._per_second)


# Listening sockets, with their rights set before anybody can connect; or those that systemd hands
# over.
RIGHTS = {
    Mode.READ_ONLY: 0o660,
    Mode.READ_WRITE: 0o600,
    Mode.ADMIN: 0o600,
}
BACKLOG = 1024
_FIRST_HANDED_OVER = 3  # file number of the first socket that systemd passes, by sd_listen_fds(3)


class CannotListen(HadesError):
    """An address that cannot be listened on."""


def unix_socket(path: Path, mode: Mode) -> socket.socket:
    """A listening Unix socket that only those may reach whom its mode allows, from the first moment
    on.

    A socket that a dead service left behind is replaced; one with a listener, or a file, is not.
    """
    _remove_dead_socket(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o777 & ~RIGHTS[mode])

    try:
        listening.bind(str(path))
        path.chmod(RIGHTS[mode])
    except OSError as error:
        listening.close()
        raise CannotListen(
            f"{path} cannot be listened on ({error}); make its folder or choose another path"
        ) from error
    finally:
        os.umask(umask)

    listening.listen(BACKLOG)
    return listening


def hand_over(
    path: Path,
    mode: Mode,
    env: Mapping[str, str],
) -> socket.socket | None:
    """The socket of this path that systemd opened for this process, if it did; one with wider
    rights is refused.
    """
    if env.get("LISTEN_PID") != str(os.getpid()):
        return None

    for number in range(_FIRST_HANDED_OVER, _FIRST_HANDED_OVER + int(env.get("LISTEN_FDS", "0"))):
        listening = socket.socket(fileno=os.dup(number))
        if listening.family == socket.AF_UNIX and listening.getsockname() == str(path):
            rights = stat.S_IMODE(path.stat().st_mode)
            if rights & ~RIGHTS[mode]:
                listening.close()
                raise CannotListen(
                    f"{path} has the rights {rights:04o}, mode {mode.value} allows "
                    f"{RIGHTS[mode]:04o}; set SocketMode= in its unit"
                )

            return listening

        listening.close()

    return None


def tcp_socket(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one.

    The protocol is named: only then does asyncio send small answers at once instead of waiting for
    the last one's receipt (TCP_NODELAY), which costs 40 ms.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(
        family,
        socket.SOCK_STREAM,
        socket.IPPROTO_TCP,
    )
    listening.setsockopt(
        socket.SOL_SOCKET,
        socket.SO_REUSEADDR,
        1,
    )

    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise CannotListen(
            f"{host}:{port} cannot be listened on ({error}); choose another port"
        ) from error

    listening.listen(BACKLOG)
    return listening


def tcp_door(
    mode: Mode,
    host: str,
    *,
    needs_token: bool,
    tenant: str | None = None,
    folders: tuple[Path, ...] = (),
) -> Door:
    """A door on TCP. Without a token only this machine may come, and only by its own name."""
    if not needs_token and host not in LOOPBACK:
        raise CannotListen(
            f"{host} is reached from other machines, so callers need tokens; leave out --no-token"
        )

    return Door(
        mode,
        needs_token,
        tenant,
        None if needs_token else LOOPBACK,
        folders,
    )


def _remove_dead_socket(path: Path) -> None:
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
            raise CannotListen(
                f"{path} cannot be looked at ({error}); choose another path"
            ) from error

    raise CannotListen(f"another process listens on {path}; stop that service first")
