"""Rows and journal."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from hades.build.contracts.check import Written
from hades.build.topics.cluster import Shape
from hades.build.topics.inputs import (
    EDGE_COLUMNS,
    VERSION,
    EdgeRow,
    HierarchyRules,
    Material,
    Moving,
    PreviousHierarchy,
)
from hades.build.topics.wording import Wording
from hades.ports.store import RowStore, Term
from models.topics.cluster import Vectors
from schemas.catalogue import collection_named
from schemas.edges import ClusterEdgeType
from schemas.ids import content_key, edge_key, node_id
from schemas.record import to_table
from schemas.topics import LOST, Cluster, ClusterParams

# Who moved: the difference between where entities were and where they are.


Reason = Literal["first placed", "moved by a full build", "moved by a local change"]


@dataclass(frozen=True)
class Move:
    """One entity, the topic it is in now and the one it left (None: it had none)."""

    entity: str
    topic: str
    left: str | None
    reason: Reason


def moves_between(material: Material, shape: Shape, mode: str) -> list[Move]:
    """Every entity whose topic is another than before, by key."""
    moved: Reason = "moved by a full build" if mode == "full" else "moved by a local change"
    moves = []
    for key, held, label in zip(material.keys, material.held, shape.labels.tolist(), strict=True):
        topic = shape.topics[label]
        if held != topic:
            moves.append(Move(key, topic, held, "first placed" if held is None else moved))
    return moves


def gone_by_topic(material: Material, standing: PreviousHierarchy) -> Counter[str]:
    """How many members of each standing topic are no longer there, by what its size was and what ingestion took out."""
    still = Counter(held for held in material.held if held is not None)
    rows = {key: standing.clusters[key] for key in standing.topics}
    before = {key: row["size"] + row["metadata"].get(LOST, 0) for key, row in rows.items()}
    return Counter({key: size - still[key] for key, size in before.items() if size > still[key]})


def moving_topics(shape: Shape, moves: list[Move], gone: Counter[str]) -> tuple[Moving, ...]:
    """Topics that gained or lost members, most changed first, then by key; what leans on them is due for renewal."""
    gained = Counter(move.topic for move in moves)
    lost = gone + Counter(move.left for move in moves if move.left)
    sizes = dict(zip(shape.topics, shape.sizes().tolist(), strict=True))
    shares = [
        Moving(key, round((gained[key] + lost[key]) / (sizes.get(key, 0) + lost[key]), 4))
        for key in gained.keys() | lost.keys()
    ]
    return tuple(sorted(shares, key=lambda moving: (-moving.share, moving.cluster)))


# The hierarchy as rows, and what of them differs from those that stand.


ALGORITHM = f"hdbscan+leiden consensus/{VERSION}"
AGGLOMERATION = f"ward/{VERSION}"
COLLECTIONS = ("clusters", "cluster_edges", "entities", "cluster_membership_journal", "build_stages")
WRITTEN: Written = {"clusters": None, "cluster_edges": None, "entities": ("cluster_id", "prev_cluster_id")}


@dataclass(frozen=True)
class HierarchyRows:
    """Every cluster and every edge upward, as they are to stand."""

    clusters: list[Cluster]
    edges: dict[str, EdgeRow]

    @property
    def generation(self) -> str:
        """A hash of the clusters and who is in them."""
        summed = hashlib.sha256()
        for cluster in self.clusters:
            summed.update(cluster.model_dump_json().encode())
        keys = sorted(self.edges)
        if keys:
            *_, weight, noise, basis = zip(*map(self.edges.__getitem__, keys), strict=True)
            for texts in (keys, basis):
                summed.update("\n".join(texts).encode())
            summed.update(np.array(weight, "<f8").tobytes() + bytes(noise))
        return summed.hexdigest()[:25]


def make_rows(
    material: Material,
    shape: Shape,
    topics: Sequence[Wording],
    above: Sequence[Wording],
    rules: HierarchyRules,
    model: str,
    standing: PreviousHierarchy,
) -> HierarchyRows:
    """Clusters by key, and an edge from each entity to its topic and from each topic to its super-topic."""
    sizes = shape.sizes()
    above_sizes = np.bincount(shape.parents[shape.parents >= 0], sizes[shape.parents >= 0], len(shape.above))
    clusters = [
        _cluster(1, key, topics[number], shape.centroids[number], int(sizes[number]), shape, rules, model).model_copy(
            update={
                "parent": shape.above[shape.parents[number]] if shape.above else None,
                "drift": float(shape.drift[number]),
            }
        )
        for number, key in enumerate(shape.topics)
    ] + [
        _cluster(2, key, above[number], shape.above_centroids[number], int(above_sizes[number]), shape, rules, model)
        for number, key in enumerate(shape.above)
    ]
    edges = dict(_memberships(material, shape, standing))
    edges |= {edge_key(row[0], row[2], row[1]): row for row in _subtopics(shape)}
    return HierarchyRows(sorted(clusters, key=lambda cluster: cluster.key), edges)


@dataclass(frozen=True)
class Entry:
    """What the journal notes of a build: its name, its moment, and who is there."""

    build: str
    at: datetime
    present: set[str]


def write_rows(
    store: RowStore, rows: HierarchyRows, standing: PreviousHierarchy, moves: Sequence[Move], entry: Entry
) -> None:
    """Bring the store to these rows, inside the caller's transaction; what is right already is not touched."""
    wanted = {cluster.key for cluster in rows.clusters}
    changed = [cluster for cluster in rows.clusters if not _stands(cluster, standing)]
    if changed:
        store.upsert("clusters", to_table(Cluster, changed))
    stale = sorted(standing.edges.keys() - rows.edges.keys())
    if stale:
        store.delete("cluster_edges", keys=stale)
    fresh = dict(sorted((key, row) for key, row in rows.edges.items() if standing.edges.get(key) != row))
    if fresh:
        columns = dict(zip(EDGE_COLUMNS, zip(*fresh.values(), strict=True), strict=True))
        store.upsert("cluster_edges", _table("cluster_edges", {"_key": list(fresh), **columns}))
    _patch_entities(store, moves)
    stale = sorted(standing.clusters.keys() - wanted)
    if stale:
        store.delete("clusters", keys=stale)
    _journal(store, moves, entry)


def _cluster(
    level: int,
    key: str,
    said: Wording,
    centroid: np.ndarray,
    size: int,
    shape: Shape,
    rules: HierarchyRules,
    model: str,
) -> Cluster:
    return Cluster(
        key=key,
        level=level,
        name=said.name,
        centroid=tuple(centroid.tolist()) if np.any(centroid) else None,
        centroid_version=shape.centroid_version,
        embedding_model=model if np.any(centroid) else None,
        summary=said.summary,
        cluster_params=ClusterParams(
            algo=ALGORITHM if level == 1 else AGGLOMERATION,
            min_cluster_size=rules.min_cluster_size,
            min_samples=rules.min_samples,
            seed=rules.seed,
        ),
        size=size,
        metadata=said.metadata(),
    )


def _memberships(material: Material, shape: Shape, standing: PreviousHierarchy) -> Iterator[tuple[str, EdgeRow]]:
    """The edge of each entity by its key, which is a hash; whoever stays in a topic has it already."""
    part_of = str(ClusterEdgeType.PART_OF)
    weights = _cosines(material.vectors, shape.centroids[shape.labels] if len(shape.topics) else shape.centroids)
    topics = [node_id("clusters", key) for key in shape.topics]
    columns = (material.keys, shape.labels.tolist(), weights, shape.noise.tolist(), material.basis)
    for key, label, weight, noise, basis in zip(*columns, strict=True):
        entity, topic, before = node_id("entities", key), topics[label], standing.members.get(key)
        stays = before is not None and before.topic == shape.topics[label]
        edge = before.edge if before is not None and stays else edge_key(entity, part_of, topic)
        yield edge, (entity, topic, part_of, weight, noise, basis)


def _subtopics(shape: Shape) -> Iterator[EdgeRow]:
    if not shape.above:
        return
    weights = _cosines(shape.centroids, shape.above_centroids[shape.parents])
    for key, parent, weight in zip(shape.topics, shape.parents.tolist(), weights, strict=True):
        above = node_id("clusters", shape.above[parent])
        yield node_id("clusters", key), above, str(ClusterEdgeType.SUBTOPIC_OF), weight, False, ""


def _cosines(left: Vectors, right: Vectors) -> list[float]:
    """Cosine of each pair of rows, within [0, 1]; 0 where either is missing, so that it counts for nothing."""
    cosines: list[float] = np.clip(np.einsum("ij,ij->i", left, right), 0.0, 1.0).astype(np.float64).round(5).tolist()
    return cosines


def _stands(cluster: Cluster, standing: PreviousHierarchy) -> bool:
    before = standing.clusters.get(cluster.key)
    if before is None:
        return False
    now = cluster.model_dump(by_alias=True)
    vectors = [
        None if row is None else np.asarray(row, np.float32).tobytes() for row in (before["centroid"], now["centroid"])
    ]
    return vectors[0] == vectors[1] and all(before[name] == value for name, value in now.items() if name != "centroid")


def _patch_entities(store: RowStore, moves: Sequence[Move]) -> None:
    """`cluster_id` of whoever changed it; `prev_cluster_id` where there was one before."""
    if moves:
        columns: dict[str, Sequence[Any]] = {
            "_key": [move.entity for move in moves],
            "cluster_id": [move.topic for move in moves],
            "prev_cluster_id": [move.left for move in moves],
        }
        store.patch("entities", _table("entities", columns))


def _journal(store: RowStore, moves: Sequence[Move], entry: Entry) -> None:
    """One row for each entity that changed its topic; an entity that was forgotten leaves no trace here either."""
    name = "cluster_membership_journal"
    noted = {entity for batch in store.scan(name, columns=["entity"]) for entity in batch.column("entity").to_pylist()}
    gone = sorted(noted - entry.present)
    if gone:
        store.delete(name, where=[Term("entity", "in", gone)])
    if moves:
        columns: dict[str, Sequence[Any]] = {
            "_key": [content_key("m", move.entity, entry.build) for move in moves],
            "entity": [move.entity for move in moves],
            "cluster_id": [move.topic for move in moves],
            "prev_cluster_id": [move.left for move in moves],
            "build": [entry.build] * len(moves),
            "at": [entry.at] * len(moves),
            "reason": [move.reason for move in moves],
        }
        store.upsert(name, _table(name, columns))


def _table(collection: str, columns: dict[str, Sequence[Any]]) -> pa.Table:
    declared = collection_named(collection)
    assert declared is not None
    return pa.table(
        {name: pa.array(values, declared.schema.field(name).type) for name, values in columns.items()},
        schema=pa.schema([declared.schema.field(name) for name in columns]),
    )
