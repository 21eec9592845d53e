"""The whole history of a topic: read by the keys of its versions, as the pointer counts them; nothing is kept twice."""

from __future__ import annotations

from collections.abc import Iterator

from hades.memory.history import rows as records
from hades.memory.history.names import LATEST, STATES, UnknownMemory, check_topic, state_key, topic_key
from hades.memory.history.states import by_keys, pointer_to
from hades.ports.store import RowStore, Term
from schemas.intervals import Mask, is_visible
from schemas.memory import LatestState, MemoryState, MemoryTrace

_RUN = 1_000  # versions read at a time


def trace(rows: RowStore, topic: str) -> MemoryTrace:
    """The topic's versions by id, oldest first."""
    pointer = pointer_to(rows, topic)
    if pointer is None:
        raise UnknownMemory(f"memory holds no topic {topic!r}; `hades memory topics` lists what there is")
    first = records.read(rows.get(STATES, [state_key(pointer.topic, 1)]), MemoryState)[0]
    return MemoryTrace(
        key=pointer.key,
        topic=pointer.topic,
        states=tuple(state_key(pointer.topic, version) for version in range(1, pointer.version + 1)),
        created_at=first.timestamp,
        updated_at=pointer.updated_at,
    )


def history(rows: RowStore, topic: str, *, limit: int | None = None, mask: Mask = Mask()) -> list[MemoryState]:
    """The versions a reader at the mask sees, oldest first; of more than `limit`, the newest ones."""
    kept: list[MemoryState] = []
    for run in _backwards(rows, check_topic(topic), limit or _RUN):
        seen = [
            one for one in run if is_visible(mask, one.valid_from, one.valid_until, one.timestamp, one.retracted_at)
        ]
        kept = seen + kept
        if limit is not None and len(kept) >= limit:
            return kept[-limit:]
    return kept


def topics(rows: RowStore, prefix: str = "") -> list[str]:
    """The names of topics that begin with the prefix, sorted."""
    where = [Term("topic", "starts_with", prefix)] if prefix else []
    return sorted(
        name
        for batch in rows.scan(LATEST, where=where, columns=["topic"])
        for name in batch.column("topic").to_pylist()
    )


def pointers(rows: RowStore) -> Iterator[LatestState]:
    """Every topic with its newest version, in key order."""
    for batch in rows.scan(LATEST):
        yield from records.read(batch, LatestState)


def _backwards(rows: RowStore, topic: str, run: int) -> Iterator[list[MemoryState]]:
    """Runs of versions, newest run first, each in order."""
    pointer = pointer_to(rows, topic)
    end = pointer.version if pointer else 0
    while end > 0:
        start = max(0, end - run)
        yield by_keys(rows, [state_key(topic, version) for version in range(start + 1, end + 1)])
        end = start
        run = _RUN


def key_of_topic(topic: str) -> str:
    """The key of a topic's trace."""
    return topic_key(check_topic(topic))
