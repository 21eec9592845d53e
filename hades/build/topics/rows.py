"""Topics as rows: clusters, edges upward, who moved, and the journal of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from hades.build.context import schema_of
from hades.build.topics.cluster import Hierarchy
from hades.build.topics.inputs import VERSION, HierarchyRules, Material
from hades.build.topics.wording import Wording
from hades.ports.store import RowStore, Term, scan_rows, scan_values
from models.topics.cluster import Vectors
from schemas.edges import ClusterEdgeType
from schemas.ids import content_key, edge_key, node_id
from schemas.record import to_table
from schemas.topics import LOST, Cluster, ClusterParams

ALGORITHM = f"hdbscan+leiden consensus/{VERSION}"
AGGLOMERATION = f"ward/{VERSION}"
COLLECTIONS = ("clusters", "cluster_edges", "entities", "cluster_membership_journal", "build_stages")
JOURNAL = "cluster_membership_journal"
EDGE_COLUMNS = ("_key", "_from", "_to", "type", "weight", "noise")
Previous = Mapping[str, Mapping[str, Any]]  # cluster rows of the last build by key, `metadata` as an object


@dataclass(frozen=True)
class Move:
    """One entity, the topic it is in now and the one it left (None: it had none)."""

    entity: str
    topic: str
    left: str | None

    @property
    def reason(self) -> str:
        """What the journal says of it."""
        return "first placed" if self.left is None else "moved by a full build"


@dataclass(frozen=True)
class HierarchyRows:
    """Every cluster and every edge upward, sorted by key, as they are to stand."""

    clusters: list[Cluster]
    edges: list[tuple[Any, ...]]

    @property
    def generation(self) -> str:
        """A hash of the clusters and who is in them."""
        digest = hashlib.sha256()
        for cluster in self.clusters:
            digest.update(cluster.model_dump_json().encode())
        digest.update(orjson.dumps([(key, weight, noise) for key, _, _, _, weight, noise in self.edges]))
        return digest.hexdigest()[:25]


def read_previous(store: RowStore) -> dict[str, dict[str, Any]]:
    """The clusters of the last build by key; empty before the first."""
    rows = {row["_key"]: row for row in scan_rows(store, "clusters")}
    return {key: {**row, "metadata": orjson.loads(row["metadata"])} for key, row in rows.items()}


def moves_between(material: Material, found: Hierarchy) -> list[Move]:
    """Every entity whose topic is another than before, by key."""
    now = [found.topics[label] for label in found.labels.tolist()]
    changed = zip(material.keys, now, material.topic, strict=True)
    return [Move(key, topic, left) for key, topic, left in changed if topic != left]


def gone_by_topic(material: Material, previous: Previous) -> Counter[str]:
    """How many members each topic lost, by what its size was and what ingestion took out."""
    still = Counter(topic for topic in material.topic if topic is not None)
    before = {key: row["size"] + row["metadata"].get(LOST, 0) for key, row in previous.items() if row["level"] == 1}
    return Counter({key: size - still[key] for key, size in before.items() if size > still[key]})


def moving_topics(found: Hierarchy, moves: Sequence[Move], gone: Counter[str]) -> list[dict[str, Any]]:
    """Topics that gained or lost members, most changed first, then by key."""
    gained = Counter(move.topic for move in moves)
    lost = gone + Counter(move.left for move in moves if move.left)
    sizes = dict(zip(found.topics, found.sizes().tolist(), strict=True))
    shares = [
        {"cluster": key, "share": round((gained[key] + lost[key]) / (sizes.get(key, 0) + lost[key]), 4)}
        for key in gained.keys() | lost.keys()
    ]
    return sorted(shares, key=lambda moving: (-moving["share"], moving["cluster"]))


def topic_drift(found: Hierarchy, previous: Previous) -> np.ndarray:
    """For each topic 1 - cosine of its centroid and that of the last build; 0 where either is missing."""
    drift = np.zeros(len(found.topics))
    for number, key in enumerate(found.topics):
        before = previous[key]["centroid"] if key in previous else None
        if before is not None and len(before) == found.centroids.shape[1] and found.centroids[number].any():
            drift[number] = max(0.0, 1.0 - float(found.centroids[number] @ np.asarray(before, np.float32)))
    return drift.round(6)


def make_rows(
    material: Material,
    found: Hierarchy,
    topics: Sequence[Wording],
    above: Sequence[Wording],
    drift: np.ndarray,
    rules: HierarchyRules,
    model: str,
) -> HierarchyRows:
    """Clusters by key, and an edge from each entity to its topic and from each topic to its super-topic."""
    version, sizes = found.centroid_version(model), found.sizes()
    above_sizes = np.bincount(found.parents[found.parents >= 0], sizes[found.parents >= 0], len(found.above))

    def cluster(level: int, key: str, said: Wording, centroid: np.ndarray, **more: Any) -> Cluster:
        return Cluster(
            key=key,
            level=level,
            name=said.name,
            centroid=tuple(centroid.tolist()) if np.any(centroid) else None,
            centroid_version=version,
            embedding_model=model if np.any(centroid) else None,
            summary=said.summary,
            cluster_params=ClusterParams(
                algo=ALGORITHM if level == 1 else AGGLOMERATION,
                min_cluster_size=rules.min_cluster_size,
                min_samples=rules.min_samples,
                seed=rules.seed,
            ),
            metadata=said.metadata(),
            **more,
        )

    clusters = [
        cluster(
            1,
            key,
            topics[number],
            found.centroids[number],
            size=int(sizes[number]),
            parent=found.above[found.parents[number]] if found.above else None,
            drift=float(drift[number]),
        )
        for number, key in enumerate(found.topics)
    ] + [
        cluster(2, key, above[number], found.above_centroids[number], size=int(above_sizes[number]))
        for number, key in enumerate(found.above)
    ]
    edges = [*_memberships(material, found), *_subtopics(found)]
    return HierarchyRows(sorted(clusters, key=lambda one: one.key), sorted(edges))


def write_rows(
    store: RowStore, rows: HierarchyRows, moves: Sequence[Move], *, build: str, at: datetime, present: set[str]
) -> None:
    """Bring the store to these rows, inside the caller's transaction; `present` are the keys of all entities."""
    store.upsert("clusters", to_table(Cluster, rows.clusters))
    columns = list(zip(*rows.edges, strict=True)) or [()] * len(EDGE_COLUMNS)
    store.upsert("cluster_edges", _table("cluster_edges", dict(zip(EDGE_COLUMNS, columns, strict=True))))
    moved: dict[str, Sequence[Any]] = {
        "_key": [move.entity for move in moves],
        "cluster_id": [move.topic for move in moves],
        "prev_cluster_id": [move.left for move in moves],
    }
    store.patch("entities", _table("entities", moved))
    _delete_others(store, "cluster_edges", {edge[0] for edge in rows.edges})
    _delete_others(store, "clusters", {cluster.key for cluster in rows.clusters})
    noted = set(scan_values(store, JOURNAL, "entity"))
    if gone := sorted(noted - present):  # an entity that was forgotten leaves no trace here either
        store.delete(JOURNAL, where=[Term("entity", "in", gone)])
    entries: dict[str, Sequence[Any]] = {
        "_key": [content_key("m", move.entity, build) for move in moves],
        "entity": [move.entity for move in moves],
        "cluster_id": [move.topic for move in moves],
        "prev_cluster_id": [move.left for move in moves],
        "build": [build] * len(moves),
        "at": [at] * len(moves),
        "reason": [move.reason for move in moves],
    }
    store.upsert(JOURNAL, _table(JOURNAL, entries))


def _delete_others(store: RowStore, collection: str, keys: set[str]) -> None:
    stored = set(scan_values(store, collection, "_key"))
    if stale := sorted(stored - keys):
        store.delete(collection, keys=stale)


def _memberships(material: Material, found: Hierarchy) -> Iterator[tuple[Any, ...]]:
    part_of = str(ClusterEdgeType.PART_OF)
    weights = _cosines(material.vectors, found.centroids[found.labels] if len(found.topics) else found.centroids)
    topics = [node_id("clusters", key) for key in found.topics]
    for key, label, weight, noise in zip(
        material.keys, found.labels.tolist(), weights, found.noise.tolist(), strict=True
    ):
        entity, topic = node_id("entities", key), topics[label]
        yield edge_key(entity, part_of, topic), entity, topic, part_of, weight, noise


def _subtopics(found: Hierarchy) -> Iterator[tuple[Any, ...]]:
    if not found.above:
        return
    subtopic_of = str(ClusterEdgeType.SUBTOPIC_OF)
    weights = _cosines(found.centroids, found.above_centroids[found.parents])
    for key, parent, weight in zip(found.topics, found.parents.tolist(), weights, strict=True):
        topic, above = node_id("clusters", key), node_id("clusters", found.above[parent])
        yield edge_key(topic, subtopic_of, above), topic, above, subtopic_of, weight, False


def _cosines(left: Vectors, right: Vectors) -> list[float]:
    """Cosine of each pair of rows, within [0, 1]; 0 where either is missing, so that it counts for nothing."""
    cosines: list[float] = np.clip(np.einsum("ij,ij->i", left, right), 0.0, 1.0).astype(np.float64).round(5).tolist()
    return cosines


def _table(collection: str, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    schema = schema_of(collection, list(columns))
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
