"""Who asks memory, and where in time they stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from hades.memory.history import rows as records
from hades.memory.history.as_of import state_at
from hades.memory.history.names import LATEST, NEWEST
from hades.memory.history.states import by_keys
from hades.ports.store import RowStore
from hades.ports.text import Embedder
from schemas.intervals import Mask
from schemas.memory import LatestState, MemoryState


@dataclass(frozen=True)
class Reader:
    """A reader stands in the present, `now`, unless the mask puts them elsewhere."""

    rows: RowStore
    embedder: Embedder | None
    now: datetime
    mask: Mask = field(default_factory=Mask)

    @property
    def moment(self) -> datetime:
        """The moment that counts as now for them."""
        return self.mask.as_of or self.mask.known_at or self.now

    @property
    def edges(self) -> Mask:
        """The mask that lets through the edges that are true for them."""
        return Mask(as_of=self.moment, known_at=self.mask.known_at or NEWEST)

    def current(self, topic_keys: Iterable[str]) -> list[MemoryState]:
        """What each of these topics is for them, by topic key: the newest version by look-up, or the one of then."""
        pointers = records.fetch(self.rows, LATEST, sorted(set(topic_keys)), LatestState)
        if self.mask.is_open:
            return by_keys(self.rows, sorted(pointer.latest_state_id for pointer in pointers.values()))
        known_at = self.mask.known_at or NEWEST
        then = (state_at(self.rows, one.topic, self.moment, known_at) for _, one in sorted(pointers.items()))
        return [state for state in then if state is not None]
