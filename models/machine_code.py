"""Functions over arrays as machine code: loaded from the cache where there is one, compiled otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compile_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function compiled at its first call; without a folder that can be written, again in each process."""
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba says so when no place for a cache can be written
        compiled = numba.njit(nogil=True)(function)
    return compiled


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """A small function for use inside a loop: its lines become lines of the loop."""
    small: Callable[..., Any] = numba.njit(inline="always")(function)
    return small
