"""How often a process that answers for long looks for garbage."""

from __future__ import annotations

import gc

_NEW_OBJECTS = 50_000  # between two looks; a turn makes some ten thousand, nearly all of which are freed without one


def collect_seldom() -> None:
    """Look for garbage seldom, and never among modules, routes and what else was made to serve.

    With Python's own limits looking takes 3% of a turn, and now and then a tenth of a second of one.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 10, 10)
