"""The garbage collector of Python during work that makes millions of objects and hardly a cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 200_000  # Python's default is 700, after which it looks at all young objects


@contextmanager
def collect_seldom() -> Iterator[None]:
    """Look for cycles after many more new objects than usual: reading papers then takes half the time."""
    before = gc.get_threshold()
    set_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def set_seldom() -> None:
    """The same for the rest of this process."""
    gc.set_threshold(_OBJECTS, 20, 20)
