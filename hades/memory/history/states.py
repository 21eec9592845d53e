"""Versions of topics: written without gaps, each with its parent, the newest found by look-up.

A version, the topic's newest version, the edge from its parent and the record of the act are one transaction. The row
of the newest version is whole; when the next one comes it shrinks to what it added to its parent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from hades.errors import HadesError
from hades.memory.history import rows as records
from hades.memory.history.audit import Act
from hades.memory.history.delta_chains import WITHOUT_VECTOR, make_whole, outward, shrunk, stored
from hades.memory.history.names import (
    EDGES,
    LATEST,
    STATES,
    MemoryRefused,
    aware,
    check_text,
    check_topic,
    check_user_topic,
    edge_id,
    revision_key,
    state_id,
    state_key,
    topic_key,
)
from hades.ports.store import RowStore
from schemas.columns import to_table
from schemas.memory import LatestState, MemoryEdge, MemoryEdgeKind, MemoryRelation, MemoryState

INSTANT = timedelta(microseconds=1)
DEFAULT_IMPORTANCE = 0.5


@dataclass(frozen=True)
class NewState:
    """A version to be written: what is said, about what, since when it holds, and how sure it is."""

    topic: str
    content: str
    tags: tuple[str, ...] = ()
    confidence: float = 1.0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    importance: float | None = None
    consolidated_from: tuple[str, ...] = ()
    consolidation_level: int = 0
    vector: tuple[float, ...] | None = None
    model: str | None = None
    after: int | None = None  # the version it must follow, where it was made from that one


def append(rows: RowStore, new: Sequence[NewState], act: Act) -> list[MemoryState]:
    """Write versions in order, inside the caller's transaction; each follows the topic's newest at that moment."""
    topics = list(dict.fromkeys(check(one).topic for one in new))
    heads = Heads.read(rows, topics)
    written = [heads.follow(one, act) for one in new]
    records.put(rows, STATES, heads.rows())
    heads.point(rows)
    records.put(rows, EDGES, [edge for edge in map(evolution, written) if edge])
    return written


def check(new: NewState) -> NewState:
    """The version, or a refusal naming what is wrong with it."""
    topic = check_topic(new.topic) if new.consolidation_level else check_user_topic(new.topic)
    for text in (new.content, *new.tags):
        check_text(f"the text for {topic!r}", text)
    if not new.content.strip():
        raise MemoryRefused(f"the content for {topic!r} is blank; say what is known, or `erase` what was")
    for name in ("confidence", "importance"):
        value = getattr(new, name)
        if value is not None and not 0.0 <= value <= 1.0:
            raise MemoryRefused(f"{name} {value} of {topic!r} is not between 0 and 1; give a share")
    if (
        new.valid_from
        and new.valid_until
        and aware("valid_until", new.valid_until) <= aware("valid_from", new.valid_from)
    ):
        raise MemoryRefused(
            f"{topic!r} would be true until {new.valid_until}, which is not after {new.valid_from}; swap or leave one"
        )
    return new


class Overtaken(HadesError):
    """Another version came between reading one and writing what follows from it; read again and decide."""

    def __init__(self, topic: str, expected: int, found: int) -> None:
        super().__init__(f"{topic!r} is at version {found}, not {expected}; nothing was written: read it again")


class Heads:
    """The newest version of some topics, as they grow inside one transaction."""

    def __init__(self, pointers: dict[str, tuple[LatestState, str]], newest: dict[str, MemoryState]) -> None:
        self._revisions = {key: revision for key, (_, revision) in pointers.items()}
        self._counts = {key: pointer.version for key, (pointer, _) in pointers.items()}
        self._times = {key: pointer.updated_at for key, (pointer, _) in pointers.items()}
        self._began = {key: pointer.began for key, (pointer, _) in pointers.items()}
        self._in_order = {key: pointer.in_order for key, (pointer, _) in pointers.items()}
        self._newest = newest  # by topic key; the newest version is stored whole
        self._written: dict[str, MemoryState] = {}
        self._moved: dict[str, MemoryState] = {}

    @classmethod
    def read(cls, rows: RowStore, topics: Sequence[str]) -> Heads:
        """What there is of these topics."""
        table = rows.get(LATEST, [topic_key(check_topic(topic)) for topic in topics], with_rev=True)
        revisions = table.column("_rev").to_pylist()
        pointers = records.read(table.drop_columns(["_rev"]), LatestState)
        known = {pointer.key: (pointer, revision) for pointer, revision in zip(pointers, revisions, strict=True)}
        states = records.fetch(rows, STATES, [pointer.latest_state_id for pointer in pointers], MemoryState)
        return cls(known, {pointer.key: states[pointer.latest_state_id] for pointer in pointers})

    def follow(self, new: NewState, act: Act) -> MemoryState:
        """The next version of a topic; its time is later than its parent's, whatever the clocks say."""
        topic = check_topic(new.topic)
        key = topic_key(topic)
        parent = self._newest.get(key)
        version = self._counts.get(key, 0) + 1
        if new.after is not None and new.after != version - 1:
            raise Overtaken(topic, new.after, version - 1)
        at = max(act.at, self._times[key] + INSTANT) if key in self._times else act.at
        state = MemoryState(
            key=state_key(topic, version),
            topic=topic,
            content=new.content,
            version=version,
            timestamp=at,
            valid_from=aware("valid_from", new.valid_from) if new.valid_from else at,
            valid_until=aware("valid_until", new.valid_until) if new.valid_until else None,
            embedding=new.vector,
            embedding_model=new.model,
            parent_state_id=state_key(topic, version - 1) if version > 1 else None,
            metadata=dict(new.metadata),
            tags=tuple(new.tags),
            confidence=new.confidence,
            importance_score=_importance(new, parent),
            consolidated_from=new.consolidated_from,
            is_consolidated=new.consolidation_level > 0,
            consolidation_level=new.consolidation_level,
        )
        state = stored(state, parent if parent and parent.version == version - 1 else None)
        if parent and parent.is_delta:
            self._written[parent.key] = shrunk(parent)
        self._written[state.key] = state
        self._newest[key] = self._moved[key] = state
        self._counts[key], self._times[key] = version, at
        self._order(key, state)
        act.note("add", state.key, {"topic": topic, "version": version})
        return outward(state)

    def _order(self, key: str, state: MemoryState) -> None:
        """Note whether the newest version is still sure to be the current one."""
        assert state.valid_from is not None
        began = self._began.get(key)
        follows = state.version == 1 or (self._in_order.get(key, False) and began is not None)
        self._in_order[key] = follows and state.valid_until is None and (began is None or began <= state.valid_from)
        self._began[key] = state.valid_from

    def rows(self) -> list[MemoryState]:
        """What is to be written, as it is stored."""
        return list(self._written.values())

    def point(self, rows: RowStore) -> None:
        """Let the topics point at their newest version; another writer's step in between raises `LostUpdate`."""
        pointers = [
            LatestState(
                key=key,
                topic=state.topic,
                latest_state_id=state.key,
                version=state.version,
                updated_at=state.timestamp,
                began=self._began[key],
                in_order=self._in_order[key],
            )
            for key, state in self._moved.items()
        ]
        if pointers:
            table = to_table(LatestState, pointers)
            revisions = pa.array([self._revisions.get(pointer.key) for pointer in pointers], pa.string())
            rows.upsert(LATEST, table.append_column("_rev", revisions), check_rev=True)


def _importance(new: NewState, parent: MemoryState | None) -> float:
    """What is said, else what the version before has: a topic does not become ordinary by being continued."""
    if new.importance is not None:
        return new.importance
    return DEFAULT_IMPORTANCE if parent is None else parent.importance_score


def evolution(state: MemoryState) -> MemoryEdge | None:
    """The edge from a version's parent to it; none for the first."""
    if state.parent_state_id is None:
        return None
    source, target = state_id(state.parent_state_id), state_id(state.key)
    return MemoryEdge(
        key=revision_key(edge_id(source, MemoryRelation.EVOLVES_TO, target, state.timestamp), 1),
        source=source,
        target=target,
        relationship_type=MemoryRelation.EVOLVES_TO,
        kind=MemoryEdgeKind.TEMPORAL,
        timestamp=state.timestamp,
        valid_from=state.timestamp,
        recorded_at=state.timestamp,
    )


def pointer_to(rows: RowStore, topic: str) -> LatestState | None:
    """Which version of a topic is the newest."""
    found = records.read(rows.get(LATEST, [topic_key(check_topic(topic))]), LatestState)
    return found[0] if found else None


def by_keys(rows: RowStore, keys: Sequence[str]) -> list[MemoryState]:
    """The versions of these keys that exist and were not erased, in key order, whole, without their vectors."""
    found = records.read(rows.get(STATES, keys, columns=WITHOUT_VECTOR), MemoryState) if keys else []
    return make_whole(rows, [state for state in found if not is_erased(state)])


def is_erased(state: MemoryState) -> bool:
    """Whether only the place of this version is left."""
    return "erased" in state.metadata and not state.content
