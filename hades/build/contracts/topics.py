"""The contract `hierarchy`: every entity has one topic, edges point up only, topics count their members."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades import build_state
from hades.build.columns import (
    Flags,
    Frames,
    Longs,
    at,
    column,
    count,
    flags,
    ids,
    per_row,
    place,
    read,
    texts_at,
    wholes,
    with_columns,
)
from hades.build.contracts.rule import contract, holds, one_of
from hades.ports.store import RowStore
from schemas.edges import ClusterEdgeType

# fmt: off
CONTRACT = contract(
    "hierarchy",
    "topics, super-topics and who belongs to them",
    "run `hades repair hierarchy`",
    {
        "clusters": [
            ("level_known", "a topic is of level 1 or 2", one_of("level", [1, 2])),
            ("size_counts_members", "a topic's size is how many entities belong to it",
             holds("size_matches"), "level", "size", "members"),
            ("topic_not_empty", "something belongs to every topic", holds("has_members"), "level", "members"),
            ("one_super_topic", "a level 1 topic has exactly one super-topic, where there are any",
             holds("one_super_topic"), "level", "super_topics"),
            ("parent_agrees_with_edge", "parent names the super-topic that the topic's edge leads to",
             holds("parent_agrees"), "level", "parent", "edge_parent"),
            ("centroid_finite", "a topic's centroid holds finite numbers only", holds("centroid_finite"), "level"),
        ],
        "cluster_edges": [
            ("ends_exist", "both ends of a cluster edge are stored", holds("ends_exist"), "_from", "_to"),
            ("edges_point_up", "a cluster edge leads one level up; siblings stay on theirs",
             holds("points_up"), "type", "from_level", "to_level"),
            ("no_cycle", "nothing belongs to itself, however many steps away", holds("is_acyclic"), "_from", "_to"),
        ],
        "entities": [
            ("one_topic_per_entity", "an entity belongs to exactly one level 1 topic", holds("one_topic"), "topics"),
            ("cluster_id_is_topic", "cluster_id names a level 1 topic that is stored",
             holds("cluster_is_topic"), "cluster_id"),
            ("cluster_id_agrees_with_edge", "cluster_id names the topic that the entity's edge leads to",
             holds("cluster_agrees"), "cluster_id", "edge_topic"),
        ],
    },
)
# fmt: on
_NOWHERE = -1


def hierarchy_frames(store: RowStore) -> Frames:
    """Topics, the edges up to them, and entities with the topic they say and the topic their edge leads to."""
    clusters = read(store, "clusters", "level", "size", "parent", "centroid")
    if not clusters.num_rows and build_state.complete(store, build_state.HIERARCHY) is None:
        return Frames({}, absent="no topics have been built yet")
    entities = read(store, "entities", "cluster_id")
    entity_ids, cluster_ids = (
        ids(name, column(table, "_key")) for name, table in (("entities", entities), ("clusters", clusters))
    )
    levels = wholes(column(clusters, "level"), _NOWHERE)
    edges = _edges(read(store, "cluster_edges", "_from", "_to", "type"), entity_ids, cluster_ids, levels)
    part_of = edges.filter(pc.equal(edges.column("type"), str(ClusterEdgeType.PART_OF))).combine_chunks()
    frames = {
        "clusters": _clusters(clusters, levels, edges, cluster_ids),
        "cluster_edges": edges,
        "entities": _entities(entities, entity_ids, clusters, levels, part_of),
    }
    return Frames(frames)


def _edges(edges: pa.Table, entity_ids: pa.Array, cluster_ids: pa.Array, levels: Longs) -> pa.Table:
    tails, heads = column(edges, "_from"), column(edges, "_to")
    from_entity = place(tails, entity_ids) >= 0
    from_level = np.where(from_entity, 0, at(levels, place(tails, cluster_ids), _NOWHERE))
    to_level = at(levels, place(heads, cluster_ids), _NOWHERE)
    sibling = flags(pc.equal(column(edges, "type"), str(ClusterEdgeType.SIBLING_OF)))
    member = flags(pc.equal(column(edges, "type"), str(ClusterEdgeType.PART_OF)))
    exists = (from_level >= 0) & (to_level >= 0)
    up = (to_level == from_level + 1) & (member == (from_level == 0))
    return with_columns(
        edges,
        from_level=from_level,
        to_level=to_level,
        ends_exist=exists,
        points_up=np.where(sibling, from_level == to_level, up) | ~exists,
        is_acyclic=_acyclic(tails, heads, sibling),
    )


def _acyclic(tails: pa.Array, heads: pa.Array, sibling: Flags) -> Flags:
    """Which edges are on no cycle: those that lead only to ends are taken away, round by round, until none is left."""
    nodes = pc.unique(pa.concat_arrays([tails, heads]))
    source, target = place(tails, nodes), place(heads, nodes)
    left = ~sibling
    while left.any():
        leads_on = np.zeros(len(nodes), dtype=np.bool_)
        leads_on[source[left]] = True
        kept = left & leads_on[target]
        if kept.sum() == left.sum():
            break
        left = kept
    return ~left


def _clusters(clusters: pa.Table, levels: Longs, edges: pa.Table, cluster_ids: pa.Array) -> pa.Table:
    """A topic's members are the entities below it, a super-topic's those of its topics."""
    kinds = column(edges, "type")
    part_of, subtopic = (
        edges.filter(pc.equal(kinds, str(kind))).combine_chunks()
        for kind in (ClusterEdgeType.PART_OF, ClusterEdgeType.SUBTOPIC_OF)
    )
    members = count(column(part_of, "_to"), cluster_ids)
    below, above = (place(column(subtopic, end), cluster_ids) for end in ("_from", "_to"))
    joined = (below >= 0) & (above >= 0)
    members = members + np.bincount(above[joined], members[below[joined]], len(members)).astype(np.int64)
    super_topics = count(column(subtopic, "_from"), cluster_ids)
    led = np.full(clusters.num_rows, _NOWHERE, dtype=np.int64)
    led[below[joined]] = above[joined]
    said = place(column(clusters, "parent"), column(clusters, "_key"))
    centroids = column(clusters, "centroid")
    topic = levels == 1
    return with_columns(
        clusters.drop_columns(["centroid"]),
        members=members,
        super_topics=super_topics,
        edge_parent=texts_at(column(clusters, "_key"), led),
        size_matches=wholes(column(clusters, "size"), _NOWHERE) == members,
        has_members=members > 0,
        one_super_topic=(super_topics == 1) | ~topic | (not (levels == 2).any()),
        parent_agrees=(said == led) | ~topic | (super_topics > 1),
        centroid_finite=per_row(centroids, np.isfinite(pc.list_flatten(centroids).to_numpy()), np.logical_and, True),
    )


def _entities(
    entities: pa.Table, entity_ids: pa.Array, clusters: pa.Table, levels: Longs, part_of: pa.Table
) -> pa.Table:
    keys = column(clusters, "_key")
    said = place(column(entities, "cluster_id"), keys)
    topics = count(column(part_of, "_from"), entity_ids)
    led = np.full(entities.num_rows, _NOWHERE, dtype=np.int64)
    rows = place(column(part_of, "_from"), entity_ids)
    led[rows[rows >= 0]] = place(column(part_of, "_to"), ids("clusters", keys))[rows >= 0]
    is_topic = at(levels, said, _NOWHERE) == 1
    return with_columns(
        entities,
        topics=topics,
        edge_topic=texts_at(keys, led),
        one_topic=topics == 1,
        cluster_is_topic=is_topic,
        cluster_agrees=(said == led) | ~is_topic | (topics != 1),
    )
