"""Memory as answers see it; accesses."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from hades.errors import StoreError
from hades.memory.history.rows import AUDIT, STATES, key_of
from hades.memory.recall.index import MemoryQuery, Reader, index_of
from hades.memory.recall.search import search_asked
from hades.ports.services import MemoryHit, Vectors, utc_now
from hades.ports.store import GraphStore
from hades.text.sentences import day
from schemas.ids import Mask, node_id

# Memory as answers of the graph see it: the port `MemorySearch` over a store that is opened when it is first asked.


NOTHING_REMEMBERED = "0"


class StoredMemorySearch:
    """Searches the memory of a store. A home without a store, or without memory, has nothing to say."""

    def __init__(self, open_store: Callable[[], GraphStore], home: Path | None = None) -> None:
        self._open_store, self._home = open_store, home
        self._store: GraphStore | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Read what is remembered, so that a turn need not."""
        store = self._open() if self._count(STATES) else None
        if store is not None:
            index_of(store)

    def search(self, text: str, vector: Vectors | None, model: str, mask: Mask, limit: int) -> Sequence[MemoryHit]:
        """See `MemorySearch.search`."""
        store = self._open() if text.strip() and self._count(STATES) else None
        if store is None:
            return []
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
        log_accesses(self._home, ids, utc_now())

    def version(self) -> str:
        """See `MemorySearch.version`: every act on memory leaves a record."""
        return str(self._count(AUDIT))

    def _count(self, collection: str) -> int:
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


# Which states were shown: one line a reading in `logs/memory_accesses.jsonl`, counted into the store by upkeep.
# Readers append to a file and wait for nobody. A line holds keys, which tell nothing of what was read. Counting is
# a separate step, so that looking something up never writes to the store.


FILE = Path("logs") / "memory_accesses.jsonl"
_LARGEST_BYTES = 64 << 20  # beyond it nothing is added until upkeep has counted what is there


@dataclass(frozen=True)
class Accesses:
    """How often states were shown, by key, and when last."""

    counts: Counter[str]
    last: dict[str, datetime]


def log_accesses(home: Path | None, state_ids: Sequence[str], at: datetime) -> None:
    """Note that these versions were shown. A home that cannot be written costs the note, never the answer."""
    if home is None or not state_ids:
        return
    line = json.dumps({"at": at.isoformat(), "keys": [key_of(one) for one in state_ids]}) + "\n"
    path = home / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > _LARGEST_BYTES:
            return
        with path.open("a", encoding="utf-8") as file:
            file.write(line)
    except OSError:
        return


@contextmanager
def take_accesses(home: Path | None) -> Iterator[Accesses]:
    """All that was noted since the last time; it is forgotten at the end, unless counting it failed."""
    taken = Accesses(Counter(), {})
    files = [home / FILE, (home / FILE).with_suffix(".counted")] if home is not None else []
    if files and files[0].exists():
        with files[1].open("ab") as aside:  # what an attempt before could not count comes first
            aside.write(files[0].read_bytes())
        files[0].unlink()
    lines = files[1].read_text(encoding="utf-8").splitlines() if files and files[1].exists() else []
    for line in lines:
        try:
            noted = json.loads(line)
            at, keys = datetime.fromisoformat(noted["at"]), [str(key) for key in noted["keys"]]
        except (ValueError, KeyError, TypeError):
            continue  # a line that was cut off
        taken.counts.update(keys)
        taken.last.update(dict.fromkeys(keys, at))
    yield taken
    for path in files[1:]:
        path.unlink(missing_ok=True)
