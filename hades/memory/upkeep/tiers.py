"""Storage tiers: which versions are at hand, which are kept as usual, which are put away. All of them are found.

A tier says where a version is kept and what is loaded first; no search, walk or history looks at it.

- working: fewer than a thousand, the strongest of the newest versions; what a working set is filled from
- active: newest versions, summaries, and what began to hold within thirty days
- archived: everything else
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from hades.memory.history.names import EDGES, NEWEST, STATES, key_of, topic_of_key
from hades.memory.history.traces import pointers
from hades.memory.recall.strength import BY_SIMILARITY, StrengthRules, strength
from hades.ports.store import RowStore, Term
from schemas.intervals import Mask, is_visible
from schemas.memory import MemoryRelation, MemoryState, StorageTier

WORKING_MOST = 999
ACTIVE_DAYS = 30
_READ = (
    "topic", "content", "version", "timestamp", "valid_from", "importance_score", "last_accessed", "storage_tier",
    "is_consolidated",
)  # fmt: skip
_RUN = 10_000


@dataclass(frozen=True)
class TierReport:
    """How many versions each tier holds, and how many moved."""

    as_of: str
    working: int = 0
    active: int = 0
    archived: int = 0
    moved: int = 0
    weakest_working: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self)


def place_in_tiers(rows: RowStore, as_of: datetime, *, rules: StrengthRules = BY_SIMILARITY) -> TierReport:
    """Give every version its tier at a moment; the same moment gives the same tiers, and only moves are written.

    Reads all of memory twice and holds of it the keys of the working tier and the counts of edges.
    """
    links = _links(rows, as_of)
    newest = {pointer.latest_state_id for pointer in pointers(rows)}
    strongest = heapq.nlargest(
        WORKING_MOST,
        (
            (strength(state, as_of, links=links.get(topic_of_key(state.key), 0), rules=rules), state.key)
            for state in _states(rows)
            if state.key in newest and not state.is_consolidated
        ),
    )
    at_hand = {key for _, key in strongest}
    counts = dict.fromkeys(StorageTier, 0)
    moves: list[dict[str, str]] = []
    moved = 0
    for state in _states(rows):
        tier = _tier(state, at_hand, newest, as_of)
        counts[tier] += 1
        if tier != state.storage_tier:
            moves.append({"_key": state.key, "storage_tier": str(tier)})
        if len(moves) == _RUN:
            moved += _write(rows, moves)
            moves = []
    moved += _write(rows, moves)
    return TierReport(
        as_of=as_of.isoformat(),
        working=counts[StorageTier.WORKING],
        active=counts[StorageTier.ACTIVE],
        archived=counts[StorageTier.ARCHIVED],
        moved=moved,
        weakest_working=round(strongest[-1][0], 6) if strongest else 0.0,
    )


def _tier(state: MemoryState, at_hand: set[str], newest: set[str], as_of: datetime) -> StorageTier:
    if state.key in at_hand:
        return StorageTier.WORKING
    is_recent = (state.valid_from or state.timestamp) > as_of - timedelta(days=ACTIVE_DAYS)
    if state.key in newest or state.is_consolidated or is_recent:
        return StorageTier.ACTIVE
    return StorageTier.ARCHIVED


def _links(rows: RowStore, as_of: datetime) -> dict[str, int]:
    """How many true edges join each topic to others."""
    mask = Mask(as_of=as_of, known_at=NEWEST)
    counts: dict[str, int] = {}
    columns = ["_from", "_to", "valid_from", "valid_until", "recorded_at", "retracted_at"]
    for batch in rows.scan(EDGES, where=[Term("relationship_type", "!=", MemoryRelation.EVOLVES_TO)], columns=columns):
        for row in batch.to_pylist():
            times = row["valid_from"], row["valid_until"], row["recorded_at"], row["retracted_at"]
            if is_visible(mask, *times):
                for end in (row["_from"], row["_to"]):
                    topic = topic_of_key(key_of(end))
                    counts[topic] = counts.get(topic, 0) + 1
    return counts


def _states(rows: RowStore) -> Iterator[MemoryState]:
    """Every version as far as its tier depends on it; built without validation, the store checked it."""
    for batch in rows.scan(STATES, columns=_READ):
        for row in batch.to_pylist():
            yield MemoryState.model_construct(key=row.pop("_key"), **row)


def _write(rows: RowStore, moves: list[dict[str, str]]) -> int:
    if moves:
        rows.patch(STATES, pa.Table.from_pylist(moves))
    return len(moves)
