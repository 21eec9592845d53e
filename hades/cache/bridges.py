"""Bridges as the store keeps them: looked up before a search, and never handed out stale.

A generation and an expiry rule out most of what is old. What remains is compared with the edges as they stand now, so
that a bridge with an edge that is gone or weighs something else cannot be a hit, whoever changed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
import pyarrow as pa

from hades.ports.store import RowStore, Term
from schemas.bridges import Bridge


@dataclass
class Counts:
    """What a cache was asked: look-ups, those that found something, bridges given, bridges held back as stale."""

    asked: int = 0
    hits: int = 0
    given: int = 0
    stale: int = 0


class BridgeCache:
    """Look-ups in `bridge_cache`, counted."""

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self.counts = Counts()

    def hit(
        self, from_clusters: Sequence[str], to_clusters: Sequence[str], generation: str, as_of: datetime
    ) -> list[Bridge]:
        """Bridges between two groups of topics (keys), in either direction, heaviest first, then by key.

        Only those of exactly this generation that have not expired at `as_of` and whose edges all stand unchanged.
        """
        rows = self._between(from_clusters, to_clusters) | self._between(to_clusters, from_clusters)
        fresh = [row for row in rows.values() if row["generation"] == generation and not _is_expired(row, as_of)]
        standing = self._standing(fresh)
        self.counts.asked += 1
        self.counts.hits += bool(standing)
        self.counts.given += len(standing)
        self.counts.stale += len(rows) - len(standing)
        return sorted(standing, key=lambda bridge: (-bridge.weight, bridge.key))

    def _between(self, starts: Sequence[str], ends: Sequence[str]) -> dict[str, dict[str, Any]]:
        where = [Term("from_cluster", "in", list(starts)), Term("to_cluster", "in", list(ends))]
        return {
            row["_key"]: row for batch in self._store.scan("bridge_cache", where=where) for row in batch.to_pylist()
        }

    def _standing(self, rows: Sequence[dict[str, Any]]) -> list[Bridge]:
        bridges = [Bridge(**{**row, "provenance": orjson.loads(row["provenance"])}) for row in rows]
        names = sorted({name.removeprefix("relations/") for bridge in bridges for name in bridge.edges})
        edges = self._store.get("relations", names, columns=["_key", "weight", "valid_until", "retracted_at"])
        weights = {
            f"relations/{edge['_key']}": edge["weight"]
            for edge in edges.to_pylist()
            if edge["valid_until"] is None and edge["retracted_at"] is None
        }
        return [
            bridge
            for bridge in bridges
            if all(weights.get(step["id"]) == step["weight"] for step in bridge.provenance["edges"])
        ]


def pin(store: RowStore, key: str, pinned: bool = True) -> None:
    """Keep a bridge as long as its edges stand, or let the next build decide again; an unknown key raises `BadRows`."""
    store.patch("bridge_cache", pa.table({"_key": [key], "pinned": [pinned]}))


def prune_expired(store: RowStore, as_of: datetime) -> int:
    """Remove bridges whose time is over at `as_of`; pinned ones stay. Returns how many went."""
    return store.delete("bridge_cache", where=[Term("expires", "<=", as_of), Term("pinned", "==", False)])


def _is_expired(row: dict[str, Any], as_of: datetime) -> bool:
    return not row["pinned"] and row["expires"] is not None and row["expires"] <= as_of
