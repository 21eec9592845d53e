"""A full build: topics found from nothing, then given the keys of those they continue."""

from __future__ import annotations

import numpy as np

from hades.stages.topics.match_topics import match_keys
from hades.stages.topics.previous_hierarchy import PreviousHierarchy
from hades.stages.topics.topic_inputs import Material
from hades.stages.topics.topic_rules import HierarchyRules
from hades.stages.topics.topic_tree import find_topics
from hades.stages.topics.tree_shape import BUCKET, BUCKET_ABOVE, L1, L2, Shape, members_of, version_of, with_bucket
from models.hierarchy.arrays import NONE, Labels, centroids
from models.hierarchy.supertopics import supertopics


def build_whole_hierarchy(material: Material, standing: PreviousHierarchy, rules: HierarchyRules, model: str) -> Shape:
    """The hierarchy of the material; keys of the standing one go on where most members do."""
    found = find_topics(material, rules)
    real = len(found.centroids)
    labels, _, middles = with_bucket(found.labels, [""] * real, found.centroids)
    members = members_of(material, labels, len(middles))
    before = {entity: member.topic for entity, member in standing.members.items() if member.topic != BUCKET}
    topics = match_keys(L1, members[:real], before, match_share=rules.match_share)
    topics += [BUCKET] * (len(middles) - real)
    parents, above = _above(material, standing, rules, labels, middles, real)
    core_above = np.where(found.is_core, parents[labels], NONE) if len(labels) else labels
    return Shape(
        labels=labels,
        noise=found.noise,
        is_core=found.is_core,
        topics=topics,
        centroids=middles,
        parents=parents,
        above=above,
        above_centroids=centroids(material.vectors, core_above, len(above)),
        drift=np.zeros(len(topics)),
        centroid_version=version_of(model, middles),
    )


def _above(
    material: Material,
    standing: PreviousHierarchy,
    rules: HierarchyRules,
    labels: Labels,
    middles: np.ndarray,
    real: int,
) -> tuple[Labels, list[str]]:
    """Each topic's super-topic and their keys; whoever could not be placed has one of its own."""
    if rules.depth == 1:
        return np.full(len(middles), NONE, np.int64), []
    groups = supertopics(middles[:real], max_fanout=rules.max_fanout)
    count = int(groups.max()) + 1 if real else 0
    parents = np.concatenate([groups, np.full(len(middles) - real, count, np.int64)])
    members = members_of(material, parents[labels], count + len(middles) - real)
    before = {}
    for entity, member in standing.members.items():
        parent = standing.clusters[member.topic]["parent"] if member.topic in standing.clusters else None
        if parent is not None and parent != BUCKET_ABOVE:
            before[entity] = parent
    above = match_keys(L2, members[:count], before, match_share=rules.match_share)
    return parents, above + [BUCKET_ABOVE] * (len(middles) - real)
