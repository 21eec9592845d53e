"""Full build or local update."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hades.build.topics.inputs import HierarchyRules, Material, PreviousHierarchy, core_rows, points_of
from models.topics.cluster import (
    NONE,
    Flags,
    Graph,
    Labels,
    Vectors,
    centroids,
    communities,
    consensus_labels,
    dense_labels,
    density_labels,
    hop_graph,
    nearest_graph,
    reduce,
    without_small,
)
from models.topics.describe import place, supertopics
from schemas.ids import content_key

# Which new topic is which old one, so that a topic keeps its key while most of its members stay.


def match_keys(kind: str, members: Sequence[Sequence[str]], before: dict[str, str], *, match_share: float) -> list[str]:
    """A key for each topic, given its members (sorted) and the topic each member was in before.

    Pairs are matched one to one, those that share most first (ties: by the old key, then by the new topic's content);
    they must share `match_share` of their union. A topic without a match is named after its members.
    """
    old_sizes = Counter(before.values())
    born = [content_key(kind, *group) for group in members]
    pairs = []
    for number, group in enumerate(members):
        for old, shared in Counter(before[member] for member in group if member in before).items():
            if shared >= match_share * (len(group) + old_sizes[old] - shared):
                pairs.append((-shared, old, born[number], number))
    kept: dict[int, str] = {}
    taken: set[str] = set()
    for _, old, _, number in sorted(pairs):
        if number not in kept and old not in taken:
            kept[number] = old
            taken.add(old)
    return [
        kept[number] if number in kept else _free(kind, members[number], born[number], taken)
        for number in range(len(members))
    ]


def _free(kind: str, group: Sequence[str], born: str, taken: set[str]) -> str:
    """The key of the members, told apart from an older topic that was born of the same ones and has moved on."""
    key, again = born, 1
    while key in taken:
        again += 1
        key = content_key(kind, *group, f"again {again}")
    taken.add(key)
    return key


# Topics from scratch: a core is clustered by density and by structure, the two are reconciled, the rest is placed.


@dataclass(frozen=True)
class TopicAssignment:
    """A topic for each entity (-1: nothing speaks for any), whether density called it noise, and the centroids.

    `is_core` marks the entities that were clustered; the others took the topic of their neighbours.
    """

    labels: Labels
    noise: Flags
    centroids: Vectors
    is_core: Flags


def find_topics(material: Material, rules: HierarchyRules) -> TopicAssignment:
    """Every entity's topic, from nothing but the material: the same material gives the same topics."""
    n = len(material)
    core = core_rows(material, rules)
    labels = np.full(n, NONE, np.int64)
    noise = np.zeros(n, bool)
    is_core = np.zeros(n, bool)
    is_core[core] = True
    if not len(core):
        return TopicAssignment(labels, noise, np.zeros((0, material.vectors.shape[1]), np.float32), is_core)
    labels[core], noise[core] = _cluster(material, core, rules)
    middles = centroids(material.vectors, labels, int(labels.max()) + 1)
    labels = place(points_of(material, rules, ~is_core, is_core), labels, middles, ~is_core)
    return TopicAssignment(labels, noise, middles, is_core)


def joint_graph(material: Material, core: np.ndarray, near: Graph, rules: HierarchyRules) -> Graph:
    """The core joined by meaning and by structure: nearest neighbours, relations, and neighbours that two share."""
    graph = (near + hop_graph(material.edges, core, rules.hub_degree)).tocsr()
    graph.sort_indices()
    return graph


def grain(material: Material, core: int, rules: HierarchyRules) -> tuple[int, float]:
    """The smallest topic and the resolution; a workspace has few texts, its files, and each says much."""
    is_workspace = len(material) > 0 and material.is_symbol.mean() >= rules.code_share
    scale = rules.code_topic_scale if is_workspace else rules.topic_scale
    smallest = min(rules.code_cluster_size, rules.min_cluster_size) if is_workspace else rules.min_cluster_size
    return smallest, max(1.0, core**0.5 / scale)


def _cluster(material: Material, core: np.ndarray, rules: HierarchyRules) -> tuple[Labels, Flags]:
    vectors = material.vectors[core]
    near = nearest_graph(vectors, rules.neighbours)
    smooth = reduce(vectors, near, dimension=rules.reduced_dimension, steps=rules.diffusion_steps)
    smallest, resolution = grain(material, len(core), rules)
    density = density_labels(smooth, min_cluster_size=smallest, min_samples=rules.min_samples)
    graph = joint_graph(material, core, near, rules)
    runs = [
        (communities(graph, resolution=resolution, seed=rules.seed + run), 1.0 / rules.structure_runs)
        for run in range(rules.structure_runs)
    ]
    agreed = consensus_labels(
        graph, [(density, 1.0), *runs], share=rules.consensus_share, resolution=resolution, seed=rules.seed
    )
    return dense_labels(without_small(agreed, graph, vectors, smallest)), density == NONE


# A hierarchy as decided, before it is worded and written: who is in which topic, which topic is below which.


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


# A full build: topics found from nothing, then given the keys of those they continue.


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


# How far the members have moved from the centroids they are judged by, and when that is too far.


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


# A small change: topics and centroids stand, only entities that changed are placed again, by their surroundings.


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
