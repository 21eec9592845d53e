"""Hierarchy: every entity has exactly one topic, edges point up only, and topics count their members rightly."""

from __future__ import annotations

from schemas.contracts.rule import Contract, Rule, holds, one_of

_BUILD = "run `hades repair hierarchy`"

CONTRACT = Contract(
    "hierarchy",
    "topics, super-topics and who belongs to them",
    (
        Rule(
            "hierarchy.level_known",
            "clusters",
            "a topic is of level 1 or 2",
            one_of("level", [1, 2]),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.size_counts_members",
            "clusters",
            "a topic's size is how many entities belong to it",
            holds("size_matches"),
            ("level", "size", "members"),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.topic_not_empty",
            "clusters",
            "something belongs to every topic",
            holds("has_members"),
            ("level", "members"),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.one_super_topic",
            "clusters",
            "a level 1 topic has exactly one super-topic, where there are any",
            holds("one_super_topic"),
            ("level", "super_topics"),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.parent_agrees_with_edge",
            "clusters",
            "parent names the super-topic that the topic's edge leads to",
            holds("parent_agrees"),
            ("level", "parent", "edge_parent"),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.centroid_finite",
            "clusters",
            "a topic's centroid holds finite numbers only",
            holds("centroid_finite"),
            ("level",),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.ends_exist",
            "cluster_edges",
            "both ends of a cluster edge are stored",
            holds("ends_exist"),
            ("_from", "_to"),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.edges_point_up",
            "cluster_edges",
            "a cluster edge leads one level up; siblings stay on theirs",
            holds("points_up"),
            ("type", "from_level", "to_level"),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.no_cycle",
            "cluster_edges",
            "nothing belongs to itself, however many steps away",
            holds("is_acyclic"),
            ("_from", "_to"),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.one_topic_per_entity",
            "entities",
            "an entity belongs to exactly one level 1 topic",
            holds("one_topic"),
            ("topics",),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.cluster_id_is_topic",
            "entities",
            "cluster_id names a level 1 topic that is stored",
            holds("cluster_is_topic"),
            ("cluster_id",),
            repair=_BUILD,
        ),
        Rule(
            "hierarchy.cluster_id_agrees_with_edge",
            "entities",
            "cluster_id names the topic that the entity's edge leads to",
            holds("cluster_agrees"),
            ("cluster_id", "edge_topic"),
            repair=_BUILD,
        ),
    ),
)
