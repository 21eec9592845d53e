"""Who asks memory, and where in time they stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from hades.memory.history.current import states_at
from hades.memory.history.names import NEWEST
from hades.ports.store import RowStore
from hades.ports.text import Embedder
from schemas.intervals import Mask
from schemas.memory import MemoryState


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
        """The version of each of these topics that holds for them, by topic key."""
        return states_at(self.rows, topic_keys, self.mask, self.now)
