"""Reading states for an answer: from the index of this process where there is one, else from the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from hades.memory.history import rows as records
from hades.memory.history.names import EDGES, topic_key
from hades.memory.history.reader import Reader
from hades.memory.history.states import by_keys
from hades.memory.history.traces import history
from hades.memory.recall.index_holder import index_of
from hades.memory.recall.standing import Standing
from hades.memory.recall.state_index import Times
from schemas.intervals import Mask
from schemas.memory import MemoryEdge, MemoryState


def read_states(reader: Reader, keys: Sequence[str]) -> list[MemoryState]:
    """The versions of these keys that exist and were not erased, in key order."""
    with index_of(reader.rows, model_of(reader)) as index:
        if index is not None:
            return index.states(keys)
    return by_keys(reader.rows, sorted(set(keys)))


def read_current(reader: Reader, topic_keys: Iterable[str]) -> list[MemoryState]:
    """The version of each of these topics that holds for a reader, by topic key."""
    with index_of(reader.rows, model_of(reader)) as index:
        if index is not None:
            standing = Standing.of(reader.mask, reader.now)
            places = (index.current(key, standing) for key in sorted(set(topic_keys)))
            return index.states([index.keys[place] for place in places if place is not None])
    return reader.current(topic_keys)


def read_history(reader: Reader, topic: str, limit: int, mask: Mask, began: Times = (None, None)) -> list[MemoryState]:
    """The last versions of a topic that the mask lets through and that began in the time given, oldest first."""
    with index_of(reader.rows, model_of(reader)) as index:
        if index is not None:
            return index.states(index.last_keys(topic_key(topic), limit, mask, began))
    states = history(reader.rows, topic, limit=limit, mask=mask)
    return [one for one in states if _begins_in(one.valid_from or one.timestamp, *began)]


def read_edges(reader: Reader, keys: Sequence[str]) -> dict[str, MemoryEdge]:
    """The edges of these keys that exist, by key."""
    with index_of(reader.rows, model_of(reader)) as index:
        if index is not None:
            return index.edges.edges(keys)
    return records.fetch(reader.rows, EDGES, sorted(set(keys)), MemoryEdge)


def _begins_in(moment: datetime, start: datetime | None, end: datetime | None) -> bool:
    return (start is None or start <= moment) and (end is None or moment < end)


def model_of(reader: Reader) -> str:
    """The embedding model in use, by which indexes are told apart."""
    return reader.embedder.model.tag if reader.embedder is not None else ""
