"""Checks of what a caller gives, and retries of work that another writer overtook."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from hades.memory.history.names import MemoryRefused
from hades.memory.history.states import Overtaken
from schemas.memory import RELATION_PATTERN

Result = TypeVar("Result")
_TRIES = 20


def repeat(once: Callable[[], Result]) -> Result:
    """What `once` returns, retried while another writer overtakes it between its read and its write."""
    for _ in range(_TRIES):
        try:
            return once()
        except Overtaken:
            continue
    return once()


def check_relation(relation: str) -> str:
    """A relation's name in the form that the stores keep."""
    if not re.fullmatch(RELATION_PATTERN, relation):
        raise MemoryRefused(f"{relation!r} is not a relation; use small letters, digits and _, for example blocked_by")
    return relation


def check_share(name: str, value: float) -> float:
    """A number between 0 and 1."""
    if not 0.0 <= value <= 1.0:
        raise MemoryRefused(f"{name} {value} is not between 0 and 1; give a share")
    return float(value)
