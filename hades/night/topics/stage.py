"""The stage `topics`: found, described, journalled and written in one transaction; skipped on
unchanged inputs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from hades import stage_ledger
from hades.night.context import BuildContext, Mode, derivation
from hades.night.stage import EDGES, TOPICS, NightStage, Rows
from hades.night.topics.cluster import BUCKET, Hierarchy, Previous, find_hierarchy
from hades.night.topics.inputs import VERSION, HierarchyRules, Material, read_material, read_outline
from hades.night.topics.wording import Wording, Writer, describe_clusters
from hades.ports.store import RowStore, Term, scan_rows, scan_values
from models.topics import Vectors
from schemas.catalogue import columns_schema
from schemas.edges import ClusterEdgeType
from schemas.ids import content_key, edge_key, node_id
from schemas.record import JsonObject, to_table
from schemas.topics import LOST, Cluster, ClusterParams

ALGORITHM = f"hdbscan+leiden consensus/{VERSION}"
AGGLOMERATION = f"ward/{VERSION}"
COLLECTIONS = (
    "clusters",
    "cluster_edges",
    "entities",
    "cluster_membership_journal",
    "build_stages",
)
JOURNAL = "cluster_membership_journal"
_PLACED, _MOVED = "first placed", "moved by a full build"  # reasons in the journal
EDGE_COLUMNS = ("_key", "_from", "_to", "type", "weight", "noise")
EdgeRow = tuple[str, str, str, str, float, bool]  # as `EDGE_COLUMNS` names them


class Move(NamedTuple):
    """One entity, the topic it is in now and the one it left (None: it had none)."""

    entity: str
    topic: str
    former_topic: str | None


def read_previous(store: RowStore) -> dict[str, JsonObject]:
    """The clusters of the last build by key; empty before the first."""
    clusters = {}
    for row in scan_rows(store, "clusters"):
        clusters[row["_key"]] = {
            **row,
            "metadata": orjson.loads(row["metadata"]),
        }

    return clusters


def moves_between(material: Material, hierarchy: Hierarchy) -> list[Move]:
    """Every entity whose topic is another than before, by key."""
    current_topics = []
    for label in hierarchy.labels.tolist():
        current_topics.append(hierarchy.topics[label])

    places = zip(
        material.keys,
        current_topics,
        material.topic,
        strict=True,
    )
    moves = []
    for key, topic, previous in places:
        if topic != previous:
            moves.append(Move(key, topic, previous))

    return moves


def gone_by_topic(material: Material, previous: Previous) -> Counter[str]:
    """How many members each topic lost, by what its size was and what ingestion took out."""
    gone: Counter[str] = Counter()
    for key, row in previous.items():
        if row["level"] == 1:
            gone[key] = row["size"] + row["metadata"].get(LOST, 0)

    gone -= Counter(filter(None, material.topic))
    return gone


def moving_topics(
    hierarchy: Hierarchy,
    moves: Sequence[Move],
    gone: Counter[str],
) -> Rows:
    """Topics that gained or lost members, most changed first, then by key."""
    gained = Counter(move.topic for move in moves)
    lost = gone + Counter(move.former_topic for move in moves if move.former_topic)
    sizes = dict(zip(hierarchy.topics, hierarchy.sizes().tolist(), strict=True))

    shares: dict[str, float] = {}
    for key in gained.keys() | lost.keys():
        members = sizes.get(key, 0) + lost[key]
        shares[key] = round((gained[key] + lost[key]) / members, 4)

    ordered = sorted(shares, key=lambda key: (-shares[key], key))
    return [{"cluster": key, "share": shares[key]} for key in ordered]


def topic_drift(hierarchy: Hierarchy, previous: Previous) -> np.ndarray:
    """For each topic 1 - cosine of its centroid and that of the last build; 0 where either is
    missing.
    """
    drift = np.zeros(len(hierarchy.topics))
    for number, key in enumerate(hierarchy.topics):
        centroid = hierarchy.centroids[number]
        if key in previous:
            former = previous[key]["centroid"]
        else:
            former = None

        if former is not None and len(former) == len(centroid) and centroid.any():
            cosine = float(centroid @ np.asarray(former, np.float32))
            drift[number] = max(0.0, 1.0 - cosine)

    return drift.round(6)


def make_rows(
    material: Material,
    hierarchy: Hierarchy,
    topics: Sequence[Wording],
    above: Sequence[Wording],
    drift: np.ndarray,
    rules: HierarchyRules,
    model: str,
) -> tuple[list[Cluster], list[EdgeRow]]:
    """Clusters, and an edge from each entity to its topic and from each topic to its super-topic;
    both by key.
    """
    sizes = hierarchy.sizes()
    above_sizes = np.bincount(
        hierarchy.parents,
        sizes,
        len(hierarchy.above),
    )
    parents = [hierarchy.above[parent] for parent in hierarchy.parents.tolist()]

    settings = {}
    for name in ("min_cluster_size", "min_samples", "seed"):
        settings[name] = getattr(rules, name)

    describe = partial(
        _cluster,
        model=model,
        centroid_version=hierarchy.centroid_version(model),
    )
    params = ClusterParams(algo=ALGORITHM, **settings)
    params_above = ClusterParams(algo=AGGLOMERATION, **settings)

    clusters = []
    for number, wording in enumerate(topics):
        facts = hierarchy.topics[number], wording, hierarchy.centroids[number], sizes[number]
        places = {
            "parent": parents[number],
            "drift": float(drift[number]),
        }
        clusters.append(
            describe(
                *facts,
                level=1,
                cluster_params=params,
                **places,
            )
        )

    for number, wording in enumerate(above):
        centroid = hierarchy.above_centroids[number]
        size = above_sizes[number]
        facts = hierarchy.above[number], wording, centroid, size
        clusters.append(
            describe(
                *facts,
                level=2,
                cluster_params=params_above,
            )
        )

    edges = _member_edges(material, hierarchy)
    joints = _cosines(hierarchy.centroids, hierarchy.above_centroids[hierarchy.parents])
    for edge in zip(hierarchy.topics, parents, joints, strict=True):
        edges.append(
            _edge(
                "clusters",
                ClusterEdgeType.SUBTOPIC_OF,
                *edge,
            )
        )

    return sorted(clusters, key=lambda cluster: cluster.key), sorted(edges)


def _member_edges(material: Material, hierarchy: Hierarchy) -> list[EdgeRow]:
    """The edge from each entity to its topic."""
    if not hierarchy.topics:
        return []

    cosines = _cosines(material.vectors, hierarchy.centroids[hierarchy.labels])
    members = zip(
        material.keys,
        hierarchy.labels,
        cosines,
        hierarchy.noise.tolist(),
        strict=True,
    )

    edges = []
    for key, label, cosine, is_noise in members:
        topic = hierarchy.topics[label]
        edges.append(
            _edge(
                "entities",
                ClusterEdgeType.PART_OF,
                key,
                topic,
                cosine,
                is_noise,
            )
        )

    return edges


def _cluster(
    key: str, wording: Wording, centroid: np.ndarray, size: float, *, model: str, **fields: Any
) -> Cluster:
    """A topic or super-topic as a row; without a centroid no model made one."""
    has_centroid = centroid.any()
    return Cluster(
        key=key,
        name=wording.name,
        summary=wording.summary,
        metadata=wording.metadata(),
        centroid=tuple(centroid.tolist()) if has_centroid else None,
        embedding_model=model if has_centroid else None,
        size=int(size),
        **fields,
    )


def _edge(
    collection: str,
    kind: ClusterEdgeType,
    key: str,
    cluster: str,
    weight: float,
    noise: bool = False,
) -> EdgeRow:
    tail = node_id(collection, key)
    head = node_id("clusters", cluster)
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
    """Bring the store to these rows, inside the caller's transaction; `present` are the keys of all
    entities.
    """
    store.upsert("clusters", to_table(Cluster, clusters))
    store.upsert("cluster_edges", _table("cluster_edges", EDGE_COLUMNS, edges))
    store.patch(
        "entities",
        _table(
            "entities",
            ("_key", "cluster_id", "prev_cluster_id"),
            moves,
        ),
    )
    _delete_others(
        store,
        "cluster_edges",
        {edge[0] for edge in edges},
    )
    _delete_others(
        store,
        "clusters",
        {cluster.key for cluster in clusters},
    )
    noted = set(scan_values(store, JOURNAL, "entity"))

    if gone := sorted(noted - present):  # an entity that was forgotten leaves no trace here either
        store.delete(JOURNAL, where=[Term("entity", "in", gone)])

    entries = []
    for move in moves:
        reason = _MOVED if move.former_topic else _PLACED
        entries.append((content_key("m", move.entity, build), *move, build, at, reason))

    columns = ("_key", "entity", "cluster_id", "prev_cluster_id", "build", "at", "reason")
    store.upsert(JOURNAL, _table(JOURNAL, columns, entries))


def _delete_others(
    store: RowStore,
    collection: str,
    keys: set[str],
) -> None:
    stored = set(scan_values(store, collection, "_key"))
    if stale := sorted(stored - keys):
        store.delete(collection, keys=stale)


def _cosines(first: Vectors, right: Vectors) -> list[float]:
    """Cosine of each pair of rows, within [0, 1]; 0 where either is missing, so that it counts for
    nothing.
    """
    cosines = np.clip(
        np.einsum("ij,ij->i", first, right),
        0.0,
        1.0,
    )
    rounded: list[float] = cosines.astype(np.float64).round(5).tolist()
    return rounded


def _table(
    collection: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
) -> pa.Table:
    schema = columns_schema(collection, columns)
    return pa.Table.from_pylist(
        [dict(zip(columns, row, strict=True)) for row in rows],
        schema,
    )


BIGGEST = 10
STEPS = 5
_CHANGES = (
    "moved",
    "placed",
    "gone",
    "topics_new",
    "topics_gone",
    "summaries_written",
    "summaries_left_out",
)


def build_topics(
    context: BuildContext,
    as_of: datetime,
    mode: Mode = "auto",
    rules: HierarchyRules = HierarchyRules(),
    inputs: str = "",
) -> JsonObject:
    """Give every entity exactly one topic, and every topic a name, a summary and the key of the one
    it continues.

    `inputs` is a digest of everything this stage reads, by default that of the derivation. Nothing
    is done when the last completion had the same, unless `mode` is "full".

    In the report `moved` counts entities that left one topic for another, `placed` those that had
    none. `moving` names the topics whose members changed and the `share` of its members of both
    builds that are not in both, `biggest` the largest by `name` and `size`. `drift` is how far
    centroids moved since the last build, the mean over topics by size.
    """
    store = context.store
    model = context.model
    language_model = context.language_model
    writes = language_model.model if language_model else ""
    digest = stage_ledger.digest_of(
        inputs or derivation(context),
        asdict(rules),
        model,
        writes,
        VERSION,
    )
    last = stage_ledger.last_completion(store, stage_ledger.HIERARCHY)

    if last is not None and last.digest == digest and mode != "full":
        why = "nothing it depends on changed since the last build"
        nothing = {
            **dict.fromkeys(_CHANGES, 0),
            "moving": [],
            "topics_kept": last.report["topics"],
        }
        return {
            **last.report,
            **nothing,
            "mode": "skipped",
            "why": why,
        }

    material = read_material(store, model)
    previous = read_previous(store)
    context.progress("hierarchy", 1, STEPS)
    hierarchy = find_hierarchy(
        material,
        read_outline(store, material, model, rules),
        previous,
        rules,
    )
    context.progress("hierarchy", 2, STEPS)
    writer = Writer(
        store,
        material,
        hierarchy,
        previous,
        rules,
        model=model,
        language_model=language_model,
    )
    topics, above = describe_clusters(writer)
    context.progress("hierarchy", 3, STEPS)
    drift = topic_drift(hierarchy, previous)
    clusters, edges = make_rows(
        material,
        hierarchy,
        topics,
        above,
        drift=drift,
        rules=rules,
        model=model,
    )
    moves = moves_between(material, hierarchy)

    if last:
        why = "something it depends on changed"
    else:
        why = "there is no earlier hierarchy"

    if writer.left_out:
        why += "; summaries are quoted: too many calls for HADES_LLM_MAX_CALLS"

    report: JsonObject = {
        "mode": "full",
        "why": why,
        "build": stage_ledger.digest_of(digest, last.generation if last else "")[:25],
        "generation": generation_of(clusters, edges),
        **_figures(
            material,
            hierarchy,
            previous,
            moves,
            drift,
        ),
        "biggest": _list_biggest(hierarchy, topics),
        "summaries_written": len(writer.written),
        # quoted, because they are more than the model may be asked for
        "summaries_left_out": len(writer.left_out),
    }
    context.progress("hierarchy", 4, STEPS)
    with store.bulk(COLLECTIONS) as inside:
        write_rows(
            inside,
            clusters,
            edges,
            moves,
            build=report["build"],
            at=as_of,
            present=set(material.keys),
        )
        stage_ledger.record(
            inside,
            stage_ledger.HIERARCHY,
            digest,
            report["generation"],
            as_of,
            report,
        )

    context.progress("hierarchy", 5, STEPS)
    return report


def _figures(
    material: Material,
    hierarchy: Hierarchy,
    previous: Previous,
    moves: Sequence[Move],
    drift: np.ndarray,
) -> JsonObject:
    """How many topics and entities there are, and how they differ from those of the last build."""
    sizes = hierarchy.sizes()
    keys = set(hierarchy.topics)

    if BUCKET in keys:
        unplaced = int(sizes[hierarchy.topics.index(BUCKET)])
    else:
        unplaced = 0

    mean_drift = float((drift * sizes).sum() / max(1, sizes.sum()))
    former_keys = set()
    for key, row in previous.items():
        if row["level"] == 1:
            former_keys.add(key)

    gone = gone_by_topic(material, previous)
    moved = sum(move.former_topic is not None for move in moves)
    return {
        "entities": len(material),
        "topics": len(hierarchy.topics),
        "supertopics": len(hierarchy.above),
        "noise": int(np.count_nonzero(hierarchy.noise)),
        "unplaced": unplaced,
        "moved": moved,
        "placed": len(moves) - moved,
        "gone": gone.total(),
        "topics_new": len(keys - former_keys),
        "topics_gone": len(former_keys - keys),
        "topics_kept": len(keys & former_keys),
        "drift": round(mean_drift, 6),
        "moving": moving_topics(hierarchy, moves, gone),
    }


def _list_biggest(hierarchy: Hierarchy, topics: Sequence[Wording]) -> Rows:
    rows = []
    sizes = hierarchy.sizes().tolist()
    for key, wording, size in zip(hierarchy.topics, topics, sizes, strict=True):
        rows.append(
            {
                "cluster": key,
                "name": wording.name,
                "size": size,
            }
        )

    return sorted(rows, key=lambda row: (-row["size"], row["cluster"]))[:BIGGEST]


STAGE = NightStage(
    "topics",
    "build topics",
    # Once the time box is over topics are not built again without need.
    lambda context, ingest, night: build_topics(
        context,
        night.as_of,
        "auto" if night.is_over else night.mode,
    ),
    lambda report: (
        f"{report['mode']}: {report['why']}; {report['topics']:,} topics, {report['moved']:,} moved"
    ),
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
    figures=(
        "entities",
        "topics",
        "supertopics",
        "noise",
        "unplaced",
        "moved",
        "placed",
        "gone",
        "topics_new",
        "topics_gone",
        "topics_kept",
        "drift",
        "summaries_written",
        "summaries_left_out",
    ),
    ledger=stage_ledger.HIERARCHY,
    rows="biggest",
)
