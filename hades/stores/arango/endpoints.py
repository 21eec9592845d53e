"""Where the server is, per mode: an AF_UNIX socket when one is named, else the URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from hades.errors import SettingsError
from hades.ports.store import Mode
from hades.settings.tree import DATABASE

_SOCKET_VARIABLE = {
    Mode.READ_ONLY: "ARANGO_RO_UDS",
    Mode.READ_WRITE: "ARANGO_RW_UDS",
    Mode.ADMIN: "ARANGO_ADMIN_UDS",
}


@dataclass(frozen=True)
class Endpoint:
    """One place to talk to: a base URL, and the socket to reach it by when it is not TCP."""

    url: str
    unix_socket: Path | None = None

    def __str__(self) -> str:
        return f"unix:{self.unix_socket}" if self.unix_socket else self.url


@dataclass(frozen=True)
class Account:
    """A user that `hades provision` makes; `right` is what it may do with the database: `rw` or `ro`."""

    user: str
    password: str = field(repr=False)
    right: Literal["rw", "ro"]


@dataclass(frozen=True)
class ArangoEndpoints:
    """The server's addresses and the account; the password never shows in a text of it."""

    url: str | None = None
    database: str = DATABASE
    user: str | None = None
    password: SecretStr | str | None = field(default=None, repr=False)
    ro_socket: Path | str | None = None
    rw_socket: Path | str | None = None
    admin_socket: Path | str | None = None
    accounts: tuple[Account, ...] = ()

    def __post_init__(self) -> None:
        if self.url is None:
            return
        parts = urlsplit(self.url)
        if parts.username is not None or parts.password is not None:
            raise SettingsError(
                "HADES_ARANGO_URL holds a user or password; put them in HADES_ARANGO_USER and HADES_ARANGO_PASSWORD"
            )
        if parts.scheme not in ("http", "https") or not parts.hostname or "," in parts.netloc:
            raise SettingsError(
                "HADES_ARANGO_URL must be one address that begins with http:// or https:// and names a host"
            )

    def of(self, mode: Mode) -> Endpoint:
        """The endpoint that serves a mode, or `SettingsError` naming what to set."""
        socket = {
            Mode.READ_ONLY: self.ro_socket,
            Mode.READ_WRITE: self.rw_socket,
            Mode.ADMIN: self.admin_socket,
        }[mode]
        if socket is not None:
            return Endpoint("http://localhost", Path(socket))
        if self.url is not None:
            return Endpoint(self.url.rstrip("/"))
        raise SettingsError(
            f"there is no ArangoDB endpoint for mode {mode.value!r}; set {_SOCKET_VARIABLE[mode]} to a socket, "
            "or HADES_ARANGO_URL to an address"
        )

    @property
    def account(self) -> tuple[str, str]:
        """User and password as the driver wants them."""
        held = self.password
        secret = held.get_secret_value() if isinstance(held, SecretStr) else held
        return self.user or "root", secret or ""
