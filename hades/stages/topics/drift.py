"""How far the members have moved from the centroids they are judged by, and when that is too far."""

from __future__ import annotations

import numpy as np

from hades.stages.topics.topic_rules import HierarchyRules
from models.hierarchy.arrays import Labels, Vectors, centroids


def topic_drift(vectors: Vectors, labels: Labels, middles: Vectors) -> np.ndarray:
    """For each topic 1 - cosine of its centroid and the mean of its members today; 0 where either is missing."""
    now = centroids(vectors, labels, len(middles))
    cosine = (now * middles).sum(axis=1)
    known = np.any(now != 0, axis=1) & np.any(middles != 0, axis=1)
    return np.where(known, np.clip(1.0 - cosine, 0.0, None), 0.0).round(6)


def mean_drift(drift: np.ndarray, sizes: np.ndarray) -> float:
    """Drift of the whole: the mean over topics, each by its size."""
    return round(float((drift * sizes).sum() / max(1, sizes.sum())), 6)


def too_many_changes(changed: int, entities: int, rules: HierarchyRules) -> str | None:
    """Why this number of changed entities requires a full build; None when they do not."""
    share = changed / max(1, entities)
    if share <= rules.rebuild_changed:
        return None
    return (
        f"{changed} entities are new, gone or changed since the last full build, {share:.1%} of {entities}, "
        f"more than {rules.rebuild_changed:.1%}"
    )


def too_far(drift: float, rules: HierarchyRules) -> str | None:
    """Why so much drift calls for a full build; None when it does not."""
    if drift <= rules.rebuild_drift:
        return None
    return f"members have drifted {drift:.4f} from their centroids, more than {rules.rebuild_drift}"
