"""Functions that worker processes call in tests: they must be importable by their name, and loaded at once."""

from __future__ import annotations

import os
import signal

from hades.errors import HadesError


def square(number: int) -> int:
    """The number times itself."""
    return number * number


def process_id() -> int:
    """The process that this runs in."""
    return os.getpid()


def refuse(document: str) -> None:
    """An error that any process can raise."""
    raise HadesError(f"document {document} has no text")


def find_unusable() -> None:
    """An error whose constructor takes other arguments than it is made of, so that it cannot be sent."""
    from hades.ingest.sources.files import Unusable
    from hades.ingest.sources.material import RejectReason

    raise Unusable(RejectReason.EMPTY, "no text")


def die() -> None:
    """As a process that the system ends for want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_of(*_: object) -> None:
    """As `die`, whatever it is called with."""
    die()
