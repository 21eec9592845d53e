"""The index of each store that this process searches: built when it pays, one for each embedding model in use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from hades.memory.history.names import STATES
from hades.memory.recall.state_index import StateIndex
from hades.ports.store import RowStore

MOST = 400_000  # states beyond which an index would take more than a gigabyte
_MODELS = 2  # indexes that one store has at a time


@dataclass
class _Held:
    """The indexes of one store."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    fresh: dict[str, StateIndex | None] = field(default_factory=dict)  # what the thread that holds the lock looked at
    depth: int = 0
    indexes: dict[str, StateIndex] = field(default_factory=dict)


_held: WeakKeyDictionary[RowStore, _Held] = WeakKeyDictionary()
_guard = threading.Lock()


@contextmanager
def index_of(rows: RowStore, model: str) -> Iterator[StateIndex | None]:
    """The index of a store for a model, fresh; None where the store's own search serves better or must.

    Calls within one another see the store as the outermost found it: a question that reads several times wraps them.
    """
    with _guard:
        held = _held.setdefault(rows, _Held())
    with held.lock:
        held.depth += 1
        try:
            if model not in held.fresh:
                held.fresh[model] = _fresh(rows, held, model)
            yield held.fresh[model]
        finally:
            held.depth -= 1
            if not held.depth:
                held.fresh.clear()


def _fresh(rows: RowStore, held: _Held, model: str) -> StateIndex | None:
    index = held.indexes.get(model)
    if index is None:
        if rows.count(STATES) > MOST:
            return None
        index = StateIndex(model)
    if not index.refresh(rows):
        return None
    held.indexes.pop(model, None)
    held.indexes[model] = index
    while len(held.indexes) > _MODELS:
        del held.indexes[next(iter(held.indexes))]
    return index
