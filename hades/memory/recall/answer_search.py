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
    """Searches the memory of a store. A home without a store, or without memory, has nothing to say.

    `count_rows` counts the rows of a collection without opening the store, or returns None where it cannot: most homes
    remember nothing, and opening a store loads Arrow.
    """

    def __init__(
        self,
        open_store: Callable[[], GraphStore],
        home: Path | None = None,
        count_rows: Callable[[str], int | None] = lambda collection: None,
    ) -> None:
        self._open_store, self._home, self._count_rows = open_store, home, count_rows
        self._store: GraphStore | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Open the store and import what searches it where something is remembered, so that a turn need not."""
        if self._count(STATES):
            self._open()
            import_module("hades.memory.recall.search")
            import_module("hades.memory.recall.accesses")

    def search(self, text: str, vector: Vectors | None, model: str, mask: Mask, limit: int) -> Sequence[MemoryHit]:
        """See `MemorySearch.search`."""
        store = self._open() if text.strip() and self._count(STATES) else None
        if store is None:
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
        return str(self._count(AUDIT))

    def _count(self, collection: str) -> int:
        known = self._count_rows(collection) if self._store is None else None
        if known is not None:
            return known
        store = self._open()
        if store is None:
            return 0
        try:
            return store.count(collection)
        except StoreError:
            return 0

    def _open(self) -> GraphStore | None:
        with self._lock:
            if self._store is None:
                try:
                    self._store = self._open_store()
                    self._store.count(STATES)
                except StoreError:  # nothing was ever written here
                    self._store = None
            return self._store
