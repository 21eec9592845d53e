"""How often a process that answers question after question looks for garbage."""

from __future__ import annotations

import gc

NEW_OBJECTS = 50_000  # between two looks; a turn makes some ten thousand, nearly all of which are freed without one
_LIMITS_OF_PYTHON = (700, 10, 10)


def pass_over_loaded() -> None:
    """Never look among what is loaded by now, and seldom among what comes, unless the process has limits of its own.

    A turn leaves no garbage but some hundred records of passages that are remembered. With Python's own limits looking
    through them takes 3% of the turns, and a sixth of the time of one in ten.
    """
    gc.freeze()
    if gc.get_threshold() == _LIMITS_OF_PYTHON:
        gc.set_threshold(NEW_OBJECTS, 10, 10)
