"""A hierarchy as decided, before it is worded and written: who is in which topic, which topic is below which."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from hades.stages.topics.topic_inputs import Material
from models.hierarchy.arrays import NONE, Flags, Labels, Vectors
from schemas.ids import content_key

L1, L2 = "t1", "t2"
UNPLACED = "unplaced"
BUCKET = content_key(L1, UNPLACED)  # who has neither a vector nor a placed neighbour
BUCKET_ABOVE = content_key(L2, UNPLACED)


@dataclass(frozen=True)
class Shape:
    """Each entity's topic as a place in `topics`, each topic's super-topic as a place in `above`.

    `centroids` and `above_centroids` are unit rows, zero where there is nothing to average; `parents` is -1 where the
    hierarchy has one level. `is_core` marks the entities that centroids are made of.
    """

    labels: Labels
    noise: Flags
    is_core: Flags
    topics: list[str]
    centroids: Vectors
    parents: Labels
    above: list[str]
    above_centroids: Vectors
    drift: np.ndarray
    centroid_version: str

    def sizes(self) -> np.ndarray:
        """Entities in each topic."""
        return np.bincount(self.labels, minlength=len(self.topics))

    def above_labels(self) -> Labels:
        """Each entity's super-topic; -1 where there is none."""
        return self.parents[self.labels] if len(self.topics) else np.zeros(0, np.int64)


def with_bucket(labels: Labels, topics: list[str], middles: Vectors) -> tuple[Labels, list[str], Vectors]:
    """Whoever has no topic put together in one that says so; nothing changes when there is nobody."""
    if not np.any(labels == NONE):
        return labels, topics, middles
    labels = np.where(labels == NONE, len(topics), labels)
    return labels, [*topics, BUCKET], np.vstack([middles, np.zeros((1, middles.shape[1]), np.float32)])


def members_of(material: Material, labels: Labels, groups: int) -> list[list[str]]:
    """Keys of the entities of each group, sorted."""
    members: list[list[str]] = [[] for _ in range(groups)]
    for key, label in zip(material.keys, labels.tolist(), strict=True):
        members[label].append(key)
    return members


def version_of(model: str, middles: Vectors) -> str:
    """The name of a set of centroids: the same centroids of the same model have the same."""
    return hashlib.sha256(model.encode() + np.ascontiguousarray(middles).tobytes()).hexdigest()[:16]
