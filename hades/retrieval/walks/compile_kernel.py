"""Functions as machine code, kept on the disk where there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Any:
    """The function compiled at its first call, or read from the cache, beside its module or in the user's folder.

    On a system without a folder that can be written it is compiled again in each process, which is slow but answers.
    """
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba says so when no place for a cache can be written
        return numba.njit(nogil=True)(function)
