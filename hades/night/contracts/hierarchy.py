"""The contract of topics."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from hades import stage_ledger
from hades.night.columns import (
    Frames,
    at,
    column,
    count,
    flags,
    ids,
    per_row,
    place_ends,
    read,
    texts_at,
    with_columns,
)
from hades.night.contracts.rule import (
    contract,
    one_of,
)
from hades.ports.store import RowStore
from hades.snapshot.files import integers, places_of
from models.arrays import Flags, Longs
from schemas.edges import ClusterEdgeType

HIERARCHY_CONTRACT = contract(
    "hierarchy",
    "topics, super-topics and who belongs to them",
    "run `hades repair hierarchy`",
    {
        "clusters": [
            ("level_known", "a topic is of level 1 or 2", one_of("level", [1, 2])),
            (
                "size_counts_members",
                "a topic's size is how many entities belong to it",
                "level",
                "size",
                "members",
            ),
            ("topic_not_empty", "something belongs to every topic", "level", "members"),
            (
                "one_super_topic",
                "a level 1 topic has exactly one super-topic, where there are any",
                "level",
                "super_topics",
            ),
            (
                "parent_agrees_with_edge",
                "parent names the super-topic that the topic's edge leads to",
                "level",
                "parent",
                "edge_parent",
            ),
            ("centroid_finite", "a topic's centroid holds finite numbers only", "level"),
        ],
        "cluster_edges": [
            ("ends_exist", "both ends of a cluster edge are stored", "_from", "_to"),
            (
                "edges_point_up",
                "a cluster edge leads one level up; siblings stay on theirs",
                "type",
                "from_level",
                "to_level",
            ),
            ("no_cycle", "nothing belongs to itself, however many steps away", "_from", "_to"),
        ],
        "entities": [
            ("one_topic_per_entity", "an entity belongs to exactly one level 1 topic", "topics"),
            (
                "cluster_id_is_topic",
                "cluster_id names a level 1 topic that is stored",
                "cluster_id",
            ),
            (
                "cluster_id_agrees_with_edge",
                "cluster_id names the topic that the entity's edge leads to",
                "cluster_id",
                "edge_topic",
            ),
        ],
    },
)
_NOWHERE = -1


def hierarchy_frames(store: RowStore) -> Frames:
    """Topics, the edges up to them, and entities with the topic they say and the topic their edge
    leads to.
    """
    clusters = read(
        store,
        "clusters",
        "level",
        "size",
        "parent",
        "centroid",
    )
    if (
        not clusters.num_rows
        and stage_ledger.last_completion(store, stage_ledger.HIERARCHY) is None
    ):
        return Frames({}, ("no topics have been built yet",))

    entities = read(store, "entities", "cluster_id")
    entity_ids = ids("entities", column(entities, "_key"))
    cluster_ids = ids("clusters", column(clusters, "_key"))
    levels = integers(column(clusters, "level"), _NOWHERE)
    stored_edges = read(store, "cluster_edges", "_from", "_to", "type")
    edges = _cluster_edges(
        stored_edges,
        entity_ids,
        cluster_ids,
        levels,
    )
    part_of = _of_type(edges, ClusterEdgeType.PART_OF)
    frames = {
        "clusters": _clusters(clusters, levels, edges, cluster_ids),
        "cluster_edges": edges,
        "entities": _placed_entities(
            entities,
            entity_ids,
            clusters,
            levels,
            part_of,
        ),
    }
    return Frames(frames)


def _of_type(edges: pa.Table, kind: ClusterEdgeType) -> pa.Table:
    return edges.filter(pc.equal(edges.column("type"), str(kind))).combine_chunks()


def _cluster_edges(
    edges: pa.Table,
    entity_ids: pa.Array,
    cluster_ids: pa.Array,
    levels: Longs,
) -> pa.Table:
    tails = column(edges, "_from")
    heads = column(edges, "_to")
    from_entity = places_of(tails, entity_ids) >= 0
    from_level = np.where(
        from_entity,
        0,
        at(levels, places_of(tails, cluster_ids), _NOWHERE),
    )
    to_level = at(levels, places_of(heads, cluster_ids), _NOWHERE)
    sibling = flags(pc.equal(column(edges, "type"), str(ClusterEdgeType.SIBLING_OF)))
    member = flags(pc.equal(column(edges, "type"), str(ClusterEdgeType.PART_OF)))
    exists = (from_level >= 0) & (to_level >= 0)
    up = (to_level == from_level + 1) & (member == (from_level == 0))
    return with_columns(
        edges,
        from_level=from_level,
        to_level=to_level,
        ends_exist=exists,
        edges_point_up=np.where(sibling, from_level == to_level, up) | ~exists,
        no_cycle=_acyclic(tails, heads, sibling),
    )


def _acyclic(
    tails: pa.Array,
    heads: pa.Array,
    sibling: Flags,
) -> Flags:
    """Which edges are on no cycle: the ends of one that is lie in one strongly connected
    component.
    """
    nodes = pc.unique(pa.concat_arrays([tails, heads]))
    source = places_of(tails, nodes)
    target = places_of(heads, nodes)
    ends = (source[~sibling], target[~sibling])
    size = len(nodes) + 1
    joined = sparse.coo_array(
        (np.ones(len(ends[0])), ends),
        shape=(size, size),
    )
    component = connected_components(joined.tocsr(), connection="strong")[1]
    apart: Flags = component[source] != component[target]
    return sibling | apart


def _clusters(
    clusters: pa.Table,
    levels: Longs,
    edges: pa.Table,
    cluster_ids: pa.Array,
) -> pa.Table:
    """A topic's members are the entities below it, a super-topic's those of its topics."""
    subtopic = _of_type(edges, ClusterEdgeType.SUBTOPIC_OF)
    members = count(column(_of_type(edges, ClusterEdgeType.PART_OF), "_to"), cluster_ids)
    below, above = place_ends(subtopic, cluster_ids)
    joined = (below >= 0) & (above >= 0)
    from_topics = np.bincount(
        above[joined],
        members[below[joined]],
        len(members),
    )
    members = members + from_topics.astype(np.int64)
    super_topics = count(column(subtopic, "_from"), cluster_ids)
    led = np.full(clusters.num_rows, _NOWHERE, dtype=np.int64)
    led[below[joined]] = above[joined]
    parent_places = places_of(column(clusters, "parent"), column(clusters, "_key"))
    centroids = column(clusters, "centroid")
    is_finite = np.isfinite(pc.list_flatten(centroids).to_numpy())
    topic = levels == 1
    has_none_above = not (levels == 2).any()
    return with_columns(
        clusters.drop_columns(["centroid"]),
        members=members,
        super_topics=super_topics,
        edge_parent=texts_at(column(clusters, "_key"), led),
        size_counts_members=integers(column(clusters, "size"), _NOWHERE) == members,
        topic_not_empty=members > 0,
        one_super_topic=(super_topics == 1) | ~topic | has_none_above,
        parent_agrees_with_edge=(parent_places == led) | ~topic | (super_topics > 1),
        centroid_finite=per_row(centroids, is_finite, np.logical_and, True),
    )


def _placed_entities(
    entities: pa.Table,
    entity_ids: pa.Array,
    clusters: pa.Table,
    levels: Longs,
    part_of: pa.Table,
) -> pa.Table:
    keys = column(clusters, "_key")
    topic_places = places_of(column(entities, "cluster_id"), keys)
    topics = count(column(part_of, "_from"), entity_ids)
    led = np.full(entities.num_rows, _NOWHERE, dtype=np.int64)
    rows = places_of(column(part_of, "_from"), entity_ids)
    led[rows[rows >= 0]] = places_of(column(part_of, "_to"), ids("clusters", keys))[rows >= 0]
    is_topic = at(levels, topic_places, _NOWHERE) == 1
    return with_columns(
        entities,
        topics=topics,
        edge_topic=texts_at(keys, led),
        one_topic_per_entity=topics == 1,
        cluster_id_is_topic=is_topic,
        cluster_id_agrees_with_edge=(topic_places == led) | ~is_topic | (topics != 1),
    )
