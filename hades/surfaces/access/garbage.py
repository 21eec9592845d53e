"""How often a service looks for garbage."""

from __future__ import annotations

import gc

from hades.retrieval.turn.garbage import NEW_OBJECTS


def collect_seldom() -> None:
    """Look for garbage seldom, and never among modules, routes and what else was made to serve.

    With Python's own limits looking takes 3% of a turn, and now and then a tenth of a second of one.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 10, 10)
