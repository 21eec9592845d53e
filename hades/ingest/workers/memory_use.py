"""How ingestion uses memory: when Python looks for garbage, and when freed memory goes back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

_OBJECTS = 200_000  # Python's default is 700, after which it looks at all young objects


@contextmanager
def collect_seldom() -> Iterator[None]:
    """Look for cycles after many more new objects than usual: reading papers then takes half the time.

    Ingestion makes millions of objects and hardly a cycle.
    """
    before = gc.get_threshold()
    set_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def set_seldom() -> None:
    """The same for the rest of this process."""
    gc.set_threshold(_OBJECTS, 20, 20)


def give_back_memory() -> None:
    """Return memory that is no longer used to the system, which neither Arrow nor the C library does by itself."""
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; others have none
        if trim is not None:
            trim(0)
