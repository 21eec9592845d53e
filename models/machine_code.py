"""Functions over arrays as machine code: loaded from the cache where there is one, compiled otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numba

_LAST_KNOWN_COMPILER = 22  # an option that a version does not know would end the process

if llvm.llvm_version_info[0] <= _LAST_KNOWN_COMPILER:
    # By itself the compiler fits its registers to the widest number of a loop. Sums of 8-bit codes then leave
    # three quarters of them empty; fitted to the narrowest number they take half the time.
    llvm.set_option("", "-vectorizer-maximize-bandwidth")


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
