"""Functions over arrays: interpreted in a process that asks once, machine code in one that asks on.

Loading the compiler takes about a second, interpreting the walks of one question about a tenth of one. Both run the
same function on the same arrays in the same order, so the numbers are the same to the last bit. Machine code is kept
on the disk where there is a place for it; that of a walk also in a form that needs no compiler (`kept_machine_code`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

from hades.retrieval.walks.kept_machine_code import read_code, write_code

_wanted = threading.Event()


def want_machine_code() -> None:
    """From now on every kernel runs as machine code; each is loaded, or compiled, when it is first called."""
    _wanted.set()


def is_interpreted() -> bool:
    """Whether kernels are interpreted."""
    return not _wanted.is_set()


class Kernel:
    """A function that can be interpreted and compiled."""

    def __init__(self, function: FunctionType, *, takes_views: bool) -> None:
        self._function, self._takes_views = function, takes_views
        self._kept: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if _wanted.is_set():
            return self.machine_code(*arguments)
        result = None if self._kept is None else self._kept(*arguments)
        return self.interpret(*arguments) if result is None else result

    def write_code(self, *arguments: Any) -> None:
        """Keep machine code for arguments of these types in a file, for processes that ask once."""
        write_code(self._function, arguments)

    def read_code(self) -> None:
        """Run as the machine code that is kept in a file, where there is one; it need not be compiled for that."""
        self._kept = self._kept or read_code(self._function)

    def interpret(self, *arguments: Any) -> Any:
        """Run the function as it is written; through a memory view, elements of an array are plain numbers."""
        if self._takes_views:
            arguments = tuple(one.data if isinstance(one, np.ndarray) else one for one in arguments)
        return self._function(*arguments)

    @cached_property
    def machine_code(self) -> Callable[..., Any]:
        """The function compiled at its first call, or read from the cache, beside its module or in the user's folder.

        On a system without a folder that can be written it is compiled again in each process, which is slow but
        answers.
        """
        import numba

        function, world = self._function, self._function.__globals__
        called = {name: world[name].machine_code for name in _kernels_called(function)}
        if called:  # the compiler knows compiled functions, not kernels
            function = FunctionType(function.__code__, {**world, **called}, function.__name__, function.__defaults__)
        try:
            return numba.njit(cache=True, nogil=True)(function)
        except RuntimeError:  # numba says so when no place for a cache can be written
            return numba.njit(nogil=True)(function)


def compiled(function: Callable[..., Any]) -> Kernel:
    """A kernel that makes arrays or calls functions of numpy."""
    assert isinstance(function, FunctionType)
    return Kernel(function, takes_views=False)


def compiled_loop(function: Callable[..., Any]) -> Kernel:
    """A kernel that only reads and writes elements of the arrays it is given: nothing else of numpy stands in it."""
    assert isinstance(function, FunctionType)
    return Kernel(function, takes_views=True)


def _kernels_called(function: FunctionType) -> list[str]:
    return [name for name in function.__code__.co_names if isinstance(function.__globals__.get(name), Kernel)]
