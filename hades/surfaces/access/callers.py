"""Callers of a service, the socket they came through, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass

from hades.errors import HadesError
from hades.ports.store import Mode

_ORDER = (Mode.READ_ONLY, Mode.READ_WRITE, Mode.ADMIN)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class CallerRefused(HadesError):
    """A caller without the mode that a call needs."""


@dataclass(frozen=True)
class Caller:
    """A caller: a name for the audit, the mode they may use, and their tenant."""

    name: str
    mode: Mode
    tenant: str | None = None

    def may(self, needed: Mode) -> bool:
        """Whether their mode covers what is needed."""
        return _ORDER.index(self.mode) >= _ORDER.index(needed)


@dataclass(frozen=True)
class Door:
    """One listening socket: what its service offers, whether it asks for a token, and the tenant behind it.

    `hosts` are the only names it answers to; a door without a token that a browser can reach has them, so that no page
    of another site can talk through it. None: any name.
    """

    mode: Mode
    needs_token: bool = False
    tenant: str | None = None
    hosts: frozenset[str] | None = None


def covers(mode: Mode, needed: Mode) -> bool:
    """Whether a service of this mode has what needs that one."""
    return _ORDER.index(mode) >= _ORDER.index(needed)


def require(caller: Caller, needed: Mode) -> None:
    """Let the caller pass, or say what they would need."""
    if not caller.may(needed):
        raise CallerRefused(
            f"{caller.name} may use this service as {caller.mode.value!r}, this call needs {needed.value!r}; "
            "use a token of that mode (`hades token add`)"
        )
