"""Memory as answers of the graph see it: the port `MemorySearch` over a store that is opened when it is first asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from hades.errors import StoreError
from hades.memory.history.names import AUDIT, STATES
from hades.ports.clock import utc_now
from hades.ports.memory import MemoryHit
from hades.ports.store import GraphStore
from hades.ports.text import Vectors
from hades.text.keywords import day
from schemas.ids import node_id
from schemas.intervals import Mask

NOTHING_REMEMBERED = "0"


class StoredMemorySearch:
    """Searches the memory of a store. A home without a store, or without memory, has nothing to say."""

    def __init__(self, open_store: Callable[[], GraphStore], home: Path | None = None) -> None:
        self._open_store, self._home = open_store, home
        self._store: GraphStore | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Open the store now, and import what searches it where something is remembered, so that a turn need not."""
        store = self._open()
        if store is not None and _count(store, STATES):
            import_module("hades.memory.recall.search")
            import_module("hades.memory.recall.accesses")

    def search(self, text: str, vector: Vectors | None, model: str, mask: Mask, limit: int) -> Sequence[MemoryHit]:
        """See `MemorySearch.search`."""
        store = self._open()
        if store is None or not text.strip() or not _count(store, STATES):
            return []
        from hades.memory.history.reader import Reader
        from hades.memory.recall.search import search_asked
        from hades.memory.recall.similarity import MemoryQuery

        reader = Reader(store, None, utc_now(), mask)
        found = search_asked(reader, MemoryQuery(text, vector, model), most=limit)
        return [
            MemoryHit(
                node_id(STATES, one.state.key),
                one.state.topic,
                one.state.content,
                day(one.state.valid_from),
                one.similarity,
                one.semantic,
            )
            for one in found
        ]

    def note_shown(self, ids: Sequence[str]) -> None:
        """See `MemorySearch.note_shown`."""
        from hades.memory.recall.accesses import log_accesses

        log_accesses(self._home, ids, utc_now())

    def version(self) -> str:
        """See `MemorySearch.version`: every act on memory leaves a record."""
        store = self._open()
        return str(_count(store, AUDIT)) if store is not None else NOTHING_REMEMBERED

    def _open(self) -> GraphStore | None:
        with self._lock:
            if self._store is None:
                try:
                    self._store = self._open_store()
                    self._store.count(STATES)
                except StoreError:  # nothing was ever written here
                    self._store = None
            return self._store


def _count(store: GraphStore, collection: str) -> int:
    try:
        return store.count(collection)
    except StoreError:
        return 0
