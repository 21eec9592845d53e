"""A small change: topics and centroids stand, only entities that changed are placed again, by their surroundings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hades.stages.topics.drift import topic_drift
from hades.stages.topics.previous_hierarchy import PreviousHierarchy
from hades.stages.topics.topic_inputs import Material
from hades.stages.topics.topic_points import core_rows, points_of
from hades.stages.topics.topic_rules import HierarchyRules
from hades.stages.topics.tree_shape import BUCKET, BUCKET_ABOVE, Shape, with_bucket
from models.hierarchy.arrays import NONE, Flags, Labels, Vectors
from models.hierarchy.placement import place


@dataclass(frozen=True)
class Changes:
    """What is not as it was when the standing hierarchy was made."""

    asked: Flags  # new entities, those whose vector or relations differ, and those that had no place
    fresh: int
    altered: int
    gone: int

    @property
    def total(self) -> int:
        """Entities new, altered or gone."""
        return self.fresh + self.altered + self.gone


def changes_since(material: Material, standing: PreviousHierarchy, gone: int) -> Changes:
    """Compare every entity with what its place was decided from; `gone` are those there is nothing to compare with."""
    fresh = altered = 0
    asked = np.zeros(len(material), bool)
    for row, (key, basis) in enumerate(zip(material.keys, material.basis, strict=True)):
        member = standing.members.get(key)
        if member is None:
            fresh += 1
        elif member.basis != basis:
            altered += 1
        asked[row] = member is None or member.basis != basis or member.topic == BUCKET
    return Changes(asked, fresh, altered, gone)


def reassign(material: Material, standing: PreviousHierarchy, rules: HierarchyRules, changes: Changes) -> Shape:
    """The standing hierarchy with the changed entities in the topic that now speaks for them most."""
    topics = [key for key in standing.topics if key != BUCKET]
    place_of = {key: place for place, key in enumerate(topics)}
    dimension = material.vectors.shape[1]
    middles = _stack([standing.centroid(key, dimension) for key in topics], dimension)
    members = [standing.members.get(key) for key in material.keys]
    before: Labels = np.array([place_of.get(member.topic, NONE) if member else NONE for member in members], np.int64)
    noise: Flags = np.array([member is not None and member.noise for member in members], bool)
    is_core = np.zeros(len(material), bool)
    is_core[core_rows(material, rules)] = True
    points = points_of(material, rules, changes.asked, is_core)
    labels = place(points, before, middles, changes.asked, loyalty=rules.loyalty)
    labels, topics, middles = with_bucket(labels, topics, middles)
    labels, topics, middles = _without_empty(labels, topics, middles)
    parents, above = _parents(topics, standing, rules)
    return Shape(
        labels=labels,
        noise=noise,
        is_core=is_core,
        topics=topics,
        centroids=middles,
        parents=parents,
        above=above,
        above_centroids=_stack(
            [standing.centroid(key, dimension) if key in standing.clusters else np.zeros(dimension) for key in above],
            dimension,
        ),
        drift=topic_drift(material.vectors, np.where(is_core, labels, NONE), middles),
        centroid_version=next((row["centroid_version"] for _, row in sorted(standing.clusters.items())), ""),
    )


def _without_empty(labels: Labels, topics: list[str], middles: Vectors) -> tuple[Labels, list[str], Vectors]:
    held = np.flatnonzero(np.bincount(labels, minlength=len(topics)))
    place = np.full(len(topics), NONE, np.int64)
    place[held] = np.arange(len(held))
    return place[labels], [topics[number] for number in held], middles[held]


def _parents(topics: list[str], standing: PreviousHierarchy, rules: HierarchyRules) -> tuple[Labels, list[str]]:
    """The super-topics that still have a topic; a bucket that appears brings its own."""
    if rules.depth == 1:
        return np.full(len(topics), NONE, np.int64), []
    named = [BUCKET_ABOVE if key == BUCKET else standing.clusters[key]["parent"] for key in topics]
    above = sorted(set(named))
    return np.array([above.index(key) for key in named], np.int64), above


def _stack(rows: list[np.ndarray], dimension: int) -> Vectors:
    return np.asarray(rows, np.float32).reshape(len(rows), dimension)
