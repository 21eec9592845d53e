"""The edges of memory in this process: which topics they join, how strongly and when; asking reads no rows."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson
import pyarrow as pa

from hades.memory.history.names import key_of, topic_of_key
from hades.memory.recall.standing import ALWAYS, NEVER, Standing, to_micros
from schemas.columns import columns_of
from schemas.memory import MemoryEdge

EDGE_COLUMNS = tuple(column.name for column in columns_of(MemoryEdge) if column.name != "_key")


class Bond(NamedTuple):
    """An edge as seen from one of its topics."""

    state: str  # key of the version at the other end
    edge: str
    strength: float
    kind: tuple[str, bool]  # relation, and whether it leads away
    began: int


class _Edge(NamedTuple):
    source: str
    target: str
    relation: str
    strength: float
    begins: int
    ends: int
    recorded: int
    retracted: int
    row: bytes


class EdgeIndex:
    """Edges by their key and by the topics at their ends; those between versions of one topic are left out."""

    def __init__(self) -> None:
        self._edges: dict[str, _Edge] = {}
        self._at: dict[str, dict[str, None]] = {}  # keys of edges by topic key

    def add(self, batch: pa.RecordBatch) -> None:
        """Hold the edges of some rows."""
        for row in batch.to_pylist():
            source, target = key_of(row["_from"]), key_of(row["_to"])
            ends = topic_of_key(source), topic_of_key(target)
            if ends[0] == ends[1]:
                continue
            begins, recorded = (ALWAYS if row[n] is None else to_micros(row[n]) for n in ("valid_from", "recorded_at"))
            until, retracted = (NEVER if row[n] is None else to_micros(row[n]) for n in ("valid_until", "retracted_at"))
            strength = 1.0 if row["strength"] is None else float(row["strength"])
            held = pickle.dumps({**row, "metadata": orjson.loads(row["metadata"])}, pickle.HIGHEST_PROTOCOL)
            times = begins, until, recorded, retracted
            self._edges[row["_key"]] = _Edge(source, target, row["relationship_type"], strength, *times, held)
            for end in ends:
                self._at.setdefault(end, {})[row["_key"]] = None

    def drop(self, keys: Iterable[str]) -> None:
        """Forget edges."""
        for key in keys:
            edge = self._edges.pop(key, None)
            if edge is not None:
                for end in (edge.source, edge.target):
                    self._at[topic_of_key(end)].pop(key, None)

    def links(self, topic: str, reader: Standing) -> int:
        """How many edges that are true for a reader join a topic, by its key, to others."""
        return sum(1 for _ in self._visible(topic, reader))

    def bonds(self, topic: str, reader: Standing, types: Sequence[str] | None = None) -> list[Bond]:
        """The edges of a topic that are true for a reader, heaviest first, then by key."""
        found = []
        for key, edge in self._visible(topic, reader):
            if types is None or edge.relation in types:
                outbound = topic_of_key(edge.source) == topic
                other = edge.target if outbound else edge.source
                found.append(Bond(other, key, edge.strength, (edge.relation, outbound), edge.begins))
        return sorted(found, key=lambda bond: (-bond.strength, bond.edge))

    def edges(self, keys: Iterable[str]) -> dict[str, MemoryEdge]:
        """The edges of these keys that are held, by key."""
        return {key: MemoryEdge(**pickle.loads(self._edges[key].row)) for key in keys if key in self._edges}

    def _visible(self, topic: str, reader: Standing) -> Iterator[tuple[str, _Edge]]:
        moment, known = reader.moment, reader.known
        for key in self._at.get(topic, ()):
            edge = self._edges[key]
            if edge.begins <= moment < edge.ends and edge.recorded <= known < edge.retracted:
                yield key, edge
