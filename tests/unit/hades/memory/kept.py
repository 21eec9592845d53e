"""A memory on a real store with a clock that the test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hades.memory.memory import Memory
from hades.ports.services import Embedder, LanguageModel
from hades.ports.store import GraphStore

T1 = datetime(2024, 1, 10, tzinfo=UTC)
T2 = datetime(2024, 3, 5, tzinfo=UTC)
T3 = datetime(2024, 6, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class Clock:
    """Stands still until it is set; each look is a microsecond later, as looks are."""

    def __init__(self, at: datetime = T1) -> None:
        self.at = at

    def __call__(self) -> datetime:
        self.at += timedelta(microseconds=1)
        return self.at


def memory_on(
    store: GraphStore,
    clock: Clock,
    embedder: Embedder | None = None,
    language_model: LanguageModel | None = None,
) -> Memory:
    """A memory that reads this clock."""
    return Memory(store, embedder, clock, language_model)
