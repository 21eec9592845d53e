"""The stage `topics`: found, described, journalled and written in one transaction; skipped on unchanged inputs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from hades import build_state
from hades.build.context import BuildContext, Mode, derivation
from hades.build.stage import EDGES, TOPICS, Stage
from hades.build.topics.cluster import BUCKET, Hierarchy, find_hierarchy
from hades.build.topics.inputs import VERSION, HierarchyRules, Material, read_material, read_outline
from hades.build.topics.wording import Wording, Writer, describe_clusters
from hades.ports.store import RowStore, Term, scan_rows, scan_values
from models.topics import Vectors
from schemas.catalogue import columns_schema
from schemas.edges import ClusterEdgeType
from schemas.ids import content_key, edge_key, node_id
from schemas.record import to_table
from schemas.topics import LOST, Cluster, ClusterParams

ALGORITHM = f"hdbscan+leiden consensus/{VERSION}"
AGGLOMERATION = f"ward/{VERSION}"
COLLECTIONS = ("clusters", "cluster_edges", "entities", "cluster_membership_journal", "build_stages")
JOURNAL = "cluster_membership_journal"
_PLACED, _MOVED = "first placed", "moved by a full build"  # reasons in the journal
EDGE_COLUMNS = ("_key", "_from", "_to", "type", "weight", "noise")
Previous = Mapping[str, Mapping[str, Any]]  # cluster rows of the last build by key, `metadata` as an object
EdgeRow = tuple[str, str, str, str, float, bool]  # as `EDGE_COLUMNS` names them


class Move(NamedTuple):
    """One entity, the topic it is in now and the one it left (None: it had none)."""

    entity: str
    topic: str
    left: str | None


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
) -> tuple[list[Cluster], list[EdgeRow]]:
    """Clusters, and an edge from each entity to its topic and from each topic to its super-topic; both by key."""
    version, sizes = found.centroid_version(model), found.sizes()
    above_sizes = np.bincount(found.parents, sizes, len(found.above))
    parents = [found.above[parent] for parent in found.parents.tolist()]
    made_by = {name: getattr(rules, name) for name in ("min_cluster_size", "min_samples", "seed")}
    nothing = [None] * len(found.above), [0.0] * len(found.above)
    clusters = [
        Cluster(
            key=key,
            level=level,
            name=said.name,
            parent=parent,
            centroid=tuple(centroid.tolist()) if centroid.any() else None,
            centroid_version=version,
            embedding_model=model if centroid.any() else None,
            summary=said.summary,
            cluster_params=ClusterParams(algo=algorithm, **made_by),
            size=int(size),
            drift=float(moved),
            metadata=said.metadata(),
        )
        for level, algorithm, *columns in (
            (1, ALGORITHM, found.topics, topics, found.centroids, sizes, parents, drift),
            (2, AGGLOMERATION, found.above, above, found.above_centroids, above_sizes, *nothing),
        )
        for key, said, centroid, size, parent, moved in zip(*columns, strict=True)
    ]
    of_entity = found.centroids[found.labels] if len(found.topics) else found.centroids
    members = _cosines(material.vectors, of_entity)
    joints = _cosines(found.centroids, found.above_centroids[found.parents])
    of_topics = [found.topics[label] for label in found.labels.tolist()]
    edges = [
        *map(
            partial(_edge, "entities", ClusterEdgeType.PART_OF), material.keys, of_topics, members, found.noise.tolist()
        ),
        *map(partial(_edge, "clusters", ClusterEdgeType.SUBTOPIC_OF), found.topics, parents, joints),
    ]
    return sorted(clusters, key=lambda one: one.key), sorted(edges)


def _edge(
    collection: str, kind: ClusterEdgeType, key: str, cluster: str, weight: float, noise: bool = False
) -> EdgeRow:
    tail, head = node_id(collection, key), node_id("clusters", cluster)
    return edge_key(tail, str(kind), head), tail, head, str(kind), weight, noise


def generation_of(clusters: Sequence[Cluster], edges: Sequence[EdgeRow]) -> str:
    """A hash of the clusters and who is in them."""
    digest = hashlib.sha256()
    for cluster in clusters:
        digest.update(cluster.model_dump_json().encode())
    digest.update(orjson.dumps([(key, weight, noise) for key, _, _, _, weight, noise in edges]))
    return digest.hexdigest()[:25]


def write_rows(
    store: RowStore,
    clusters: Sequence[Cluster],
    edges: Sequence[EdgeRow],
    moves: Sequence[Move],
    *,
    build: str,
    at: datetime,
    present: set[str],
) -> None:
    """Bring the store to these rows, inside the caller's transaction; `present` are the keys of all entities."""
    store.upsert("clusters", to_table(Cluster, clusters))
    store.upsert("cluster_edges", _table("cluster_edges", EDGE_COLUMNS, edges))
    store.patch("entities", _table("entities", ("_key", "cluster_id", "prev_cluster_id"), moves))
    _delete_others(store, "cluster_edges", {edge[0] for edge in edges})
    _delete_others(store, "clusters", {cluster.key for cluster in clusters})
    noted = set(scan_values(store, JOURNAL, "entity"))
    if gone := sorted(noted - present):  # an entity that was forgotten leaves no trace here either
        store.delete(JOURNAL, where=[Term("entity", "in", gone)])
    entries = [
        (content_key("m", move.entity, build), *move, build, at, _MOVED if move.left else _PLACED) for move in moves
    ]
    columns = ("_key", "entity", "cluster_id", "prev_cluster_id", "build", "at", "reason")
    store.upsert(JOURNAL, _table(JOURNAL, columns, entries))


def _delete_others(store: RowStore, collection: str, keys: set[str]) -> None:
    stored = set(scan_values(store, collection, "_key"))
    if stale := sorted(stored - keys):
        store.delete(collection, keys=stale)


def _cosines(left: Vectors, right: Vectors) -> list[float]:
    """Cosine of each pair of rows, within [0, 1]; 0 where either is missing, so that it counts for nothing."""
    cosines: list[float] = np.clip(np.einsum("ij,ij->i", left, right), 0.0, 1.0).astype(np.float64).round(5).tolist()
    return cosines


def _table(collection: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    schema = columns_schema(collection, columns)
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pa.table([pa.array(one, field.type) for one, field in zip(values, schema, strict=True)], schema=schema)


BIGGEST = 10
STEPS = 5
_CHANGES = ("moved", "placed", "gone", "topics_new", "topics_gone", "summaries_written", "summaries_left_out")


def build_topics(
    context: BuildContext,
    as_of: datetime,
    mode: Mode = "auto",
    rules: HierarchyRules = HierarchyRules(),
    inputs: str = "",
) -> dict[str, Any]:
    """Give every entity exactly one topic, and every topic a name, a summary and the key of the one it continues.

    `inputs` is a digest of everything this stage reads, by default that of the derivation. Nothing is done when the
    last completion had the same, unless `mode` is "full".

    In the report `moved` counts entities that left one topic for another, `placed` those that had none. `moving` names
    the topics whose members changed and the `share` of its members of both builds that are not in both, `biggest` the
    largest by `name` and `size`. `drift` is how far centroids moved since the last build, the mean over topics by size.
    """
    store, model, language_model = context.store, context.model, context.language_model
    writes = language_model.model if language_model else ""
    digest = build_state.digest_of(inputs or derivation(context), asdict(rules), model, writes, VERSION)
    last = build_state.complete(store, build_state.HIERARCHY)
    if last is not None and last.digest == digest and mode != "full":
        why = "nothing it depends on changed since the last build"
        nothing = {**dict.fromkeys(_CHANGES, 0), "moving": [], "topics_kept": last.report["topics"]}
        return {**last.report, **nothing, "mode": "skipped", "why": why}
    material, previous = read_material(store, model), read_previous(store)
    context.progress("hierarchy", 1, STEPS)
    found = find_hierarchy(material, read_outline(store, material, model, rules), previous, rules)
    context.progress("hierarchy", 2, STEPS)
    writer = Writer(store, material, found, previous, rules, model, language_model)
    topics, above = describe_clusters(writer)
    context.progress("hierarchy", 3, STEPS)
    drift, sizes = topic_drift(found, previous), found.sizes()
    clusters, edges = make_rows(material, found, topics, above, drift, rules, model)
    moves, gone = moves_between(material, found), gone_by_topic(material, previous)
    now, before = set(found.topics), {key for key, row in previous.items() if row["level"] == 1}
    report: dict[str, Any] = {
        "mode": "full",
        "why": ("something it depends on changed" if last else "there is no earlier hierarchy")
        + ("; summaries are quoted: too many calls for HADES_LLM_MAX_CALLS" if writer.left_out else ""),
        "build": build_state.digest_of(digest, last.generation if last else "")[:25],
        "generation": generation_of(clusters, edges),
        "entities": len(material),
        "topics": len(found.topics),
        "supertopics": len(found.above),
        "noise": int(np.count_nonzero(found.noise)),
        "unplaced": int(sizes[found.topics.index(BUCKET)]) if BUCKET in now else 0,
        "moved": sum(move.left is not None for move in moves),
        "placed": sum(move.left is None for move in moves),
        "gone": gone.total(),
        "topics_new": len(now - before),
        "topics_gone": len(before - now),
        "topics_kept": len(now & before),
        "drift": round(float((drift * sizes).sum() / max(1, sizes.sum())), 6),
        "moving": moving_topics(found, moves, gone),
        "biggest": _list_biggest(found, topics),
        "summaries_written": len(writer.written),
        "summaries_left_out": len(writer.left_out),  # quoted, because they are more than the model may be asked for
    }
    context.progress("hierarchy", 4, STEPS)
    with store.bulk(COLLECTIONS) as inside:
        write_rows(inside, clusters, edges, moves, build=report["build"], at=as_of, present=set(material.keys))
        build_state.record(inside, build_state.HIERARCHY, digest, report["generation"], as_of, report)
    context.progress("hierarchy", 5, STEPS)
    return report


def _list_biggest(found: Hierarchy, topics: Sequence[Wording]) -> list[dict[str, Any]]:
    rows = [
        {"cluster": key, "name": said.name, "size": size}
        for key, said, size in zip(found.topics, topics, found.sizes().tolist(), strict=True)
    ]
    return sorted(rows, key=lambda row: (-row["size"], row["cluster"]))[:BIGGEST]


STAGE = Stage(
    "topics",
    "build topics",
    # Once the time box is over topics are not built again without need.
    lambda context, ingest, night: build_topics(context, night.as_of, "auto" if night.is_over else night.mode),
    lambda report: f"{report['mode']}: {report['why']}; {report['topics']:,} topics, {report['moved']:,} moved",
    reads=("doc_chunks", *EDGES),
    writes=TOPICS,
    needs=("edges",),
    contracts=("hierarchy",),
    made_of={
        "clusters.centroid": ("entities.embedding",),
        "clusters.name": ("entities.name", "mentions.count"),
        "clusters.summary": ("doc_chunks.text", "mentions.count"),
        "cluster_membership_journal.cluster_id": ("entities.embedding", "relations.type"),
    },
    ledger=build_state.HIERARCHY,
    rows="biggest",
)
