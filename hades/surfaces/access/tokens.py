"""Bearer tokens: 256 random bits each, kept as a hash, compared in constant time.

A token is random enough that a plain SHA-256 of it cannot be searched; a slow hash would only slow every request. The
file is read again when it changes, so a token that is revoked is refused from the next request on.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from hades.errors import HadesError
from hades.ports.store import Mode
from hades.surfaces.access.callers import Caller

FILE = "tokens.json"
_TOKEN = re.compile(r"hades_([0-9a-f]{8})_[A-Za-z0-9_-]{43}")
_ANY_TOKEN = re.compile(r"hades_[0-9a-f]{8}_[A-Za-z0-9_%-]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


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


class Tokens:
    """The tokens of a home, in one file that only its owner can read."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._lock = threading.Lock()
        self._read: tuple[tuple[int, int, int], dict[str, Token]] | None = None

    def add(self, name: str, mode: Mode, at: datetime, tenant: str | None = None) -> tuple[str, Token]:
        """A new token, whose text is shown this once."""
        if not _NAME.fullmatch(name):
            raise TokenError(f"{name!r} cannot name a token; use up to 64 letters, digits, dots, dashes and @")
        if tenant is not None and not _NAME.fullmatch(tenant):
            raise TokenError(f"{tenant!r} cannot name a tenant; use up to 64 letters, digits, dots and dashes")
        with self._changing() as held:
            if any(token.name == name for token in held.values()):
                raise TokenError(f"there is a token called {name} already; revoke it first or choose another name")
            identifier = secrets.token_hex(4)
            text = f"hades_{identifier}_{secrets.token_urlsafe(32)}"
            made = Token(identifier, name, mode.value, tenant, _hash(text), at.isoformat(timespec="seconds"))
            held[identifier] = made
        return text, made

    def revoke(self, name: str) -> Token:
        """Let a token, by name or id, open nothing any more."""
        with self._changing() as held:
            found = next((token for token in held.values() if name in (token.name, token.id)), None)
            if found is None:
                raise TokenError(f"no token is called {name!r}; `hades token list` shows those there are")
            del held[found.id]
        return found

    def all(self) -> list[Token]:
        """Every token, by name."""
        return sorted(self._current().values(), key=lambda token: token.name)

    def caller(self, text: str) -> Caller | None:
        """Whose token this is; None when it is nobody's. Takes as long for a wrong one as for a right one."""
        shape = _TOKEN.fullmatch(text)
        token = self._current().get(shape[1]) if shape else None
        if not hmac.compare_digest(_hash(text), token.sha256 if token else _NOBODY) or token is None:
            return None
        return Caller(token.name, Mode(token.mode), token.tenant)

    def _current(self) -> dict[str, Token]:
        with self._lock:
            try:
                stat = self._path.stat()
            except FileNotFoundError:
                return {}
            version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if self._read is None or self._read[0] != version:
                self._read = (version, self._load())
            return self._read[1]

    def _load(self) -> dict[str, Token]:
        try:
            rows = json.loads(self._path.read_text("utf-8"))["tokens"]
            return {row["id"]: Token(**row) for row in rows}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise TokenError(f"{self._path} cannot be read ({error}); fix or remove it, then add tokens") from error

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Token]]:
        """The tokens, to be changed in place by one process at a time and put on the disk at the end."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_name(f".{FILE}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            held = self._load()
            yield held
            partial = self._path.with_name(f".{FILE}.new")
            partial.unlink(missing_ok=True)
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"tokens": [asdict(token) for _, token in sorted(held.items())]}, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._path)


def without_tokens(text: str) -> str:
    """A text with every token in it masked, for logs."""
    return _ANY_TOKEN.sub("hades_********", text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
