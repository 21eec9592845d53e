"""Reading states for an answer: from the index of this process where there is one, else from the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hades.memory.history.names import topic_key
from hades.memory.history.reader import Reader
from hades.memory.history.states import by_keys
from hades.memory.history.traces import history
from hades.memory.recall.index_holder import index_of
from schemas.intervals import Mask
from schemas.memory import MemoryState


def read_states(reader: Reader, keys: Sequence[str]) -> list[MemoryState]:
    """The versions of these keys that exist and were not erased, in key order."""
    with index_of(reader.rows, _model(reader)) as index:
        if index is not None:
            return index.states(keys)
    return by_keys(reader.rows, sorted(set(keys)))


def read_current(reader: Reader, topic_keys: Iterable[str]) -> list[MemoryState]:
    """The version of each of these topics that holds for a reader, by topic key."""
    with index_of(reader.rows, _model(reader)) as index:
        if index is not None:
            places = (index.current(key, reader.mask, reader.now) for key in sorted(set(topic_keys)))
            return index.states([index.keys[place] for place in places if place is not None])
    return reader.current(topic_keys)


def read_history(reader: Reader, topic: str, limit: int, mask: Mask) -> list[MemoryState]:
    """The last versions of a topic that the mask lets through, oldest first."""
    with index_of(reader.rows, _model(reader)) as index:
        if index is not None:
            return index.states(index.last_keys(topic_key(topic), limit, mask))
    return history(reader.rows, topic, limit=limit, mask=mask)


def _model(reader: Reader) -> str:
    return reader.embedder.model.tag if reader.embedder is not None else ""
