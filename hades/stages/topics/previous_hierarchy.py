"""The hierarchy that stands in the store: what the last build left."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import orjson

from hades.ports.store import RowStore
from schemas.edges import ClusterEdgeType

EDGE_COLUMNS = ("_from", "_to", "type", "weight", "noise", "basis")
_ENTITIES, _CLUSTERS = "entities/", "clusters/"
EdgeRow: TypeAlias = tuple[str, str, str, float, bool, str]  # in the order of the columns


class Member(NamedTuple):
    """Where an entity is, what that was decided from, whether density called it noise, and the edge that says so."""

    topic: str
    basis: str
    noise: bool
    edge: str


@dataclass(frozen=True)
class PreviousHierarchy:
    """Cluster rows by key (`metadata` as an object), members by entity key, edge rows by edge key."""

    clusters: dict[str, dict[str, Any]]
    members: dict[str, Member]
    edges: dict[str, EdgeRow]

    @cached_property
    def topics(self) -> list[str]:
        """Keys of the L1 topics, sorted."""
        return sorted(key for key, row in self.clusters.items() if row["level"] == 1)

    @cached_property
    def above(self) -> list[str]:
        """Keys of the L2 super-topics, sorted."""
        return sorted(key for key, row in self.clusters.items() if row["level"] == 2)

    def centroid(self, key: str, dimension: int) -> np.ndarray:
        """The centroid of a cluster; zero when it has none of that dimension."""
        row = self.clusters[key]["centroid"]
        return np.asarray(row if row is not None and len(row) == dimension else np.zeros(dimension), np.float32)


def read_standing(store: RowStore) -> PreviousHierarchy:
    """Everything the last build wrote of topics and membership; empty before the first."""
    clusters = {row["_key"]: row for batch in store.scan("clusters") for row in batch.to_pylist()}
    for row in clusters.values():
        row["metadata"] = orjson.loads(row["metadata"])
    edges: dict[str, EdgeRow] = {}
    for batch in store.scan("cluster_edges", columns=["_key", *EDGE_COLUMNS]):
        columns = (batch.column(name).to_pylist() for name in EDGE_COLUMNS)
        edges.update(zip(batch.column("_key").to_pylist(), zip(*columns, strict=True), strict=True))
    part_of = str(ClusterEdgeType.PART_OF)
    members = {
        source[len(_ENTITIES) :]: Member(target[len(_CLUSTERS) :], basis, noise, key)
        for key, (source, target, kind, _, noise, basis) in edges.items()
        if kind == part_of
    }
    return PreviousHierarchy(clusters, members, edges)
