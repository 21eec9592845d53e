"""One unit of writing: a transaction over all of memory, repeated when another writer was faster."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from hades.errors import LostUpdate, StoreBusy
from hades.memory.history.names import COLLECTIONS
from hades.ports.store import GraphStore, RowStore

Result = TypeVar("Result")
ATTEMPTS = 40
_FIRST_S, _LONGEST_S = 0.005, 0.5


def in_unit(
    store: GraphStore, work: Callable[[RowStore], Result], *, sleep: Callable[[float], None] = time.sleep
) -> Result:
    """What `work` returns, all of it kept or nothing; it must be as good twice as once.

    Pauses grow and are random, so that writers that met once do not meet again.
    """
    longest = _FIRST_S
    for _ in range(ATTEMPTS - 1):
        try:
            return _once(store, work)
        except (LostUpdate, StoreBusy):
            sleep(random.uniform(0, longest))
            longest = min(longest * 2, _LONGEST_S)
    return _once(store, work)


def _once(store: GraphStore, work: Callable[[RowStore], Result]) -> Result:
    with store.transaction(COLLECTIONS) as rows:
        return work(rows)
