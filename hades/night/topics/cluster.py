"""Find topics over all entities, and give them the keys of those they continue."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hades.night.topics.inputs import (
    HierarchyRules,
    Material,
    Outline,
    OutlineTopic,
    core_rows,
)
from models import topics
from models.arrays import Flags
from models.topics import NONE, Graph, Labels, Vectors
from schemas.ids import content_key

# The clusters of the last build by key, `metadata` as an object.
Previous = Mapping[str, Mapping[str, Any]]
L1, L2 = "t1", "t2"
UNPLACED = "unplaced"
BUCKET = content_key(L1, UNPLACED)  # who has neither a vector nor a placed neighbour
BUCKET_ABOVE = content_key(L2, UNPLACED)


@dataclass(frozen=True)
class Hierarchy:
    """Each entity's topic as a place in `topics`, each topic's super-topic as a place in `above`.

    `centroids` and `above_centroids` are unit rows, zero where there is nothing to average.
    `is_core` marks the entities that were clustered, and that centroids are made of; the others
    took the topic of their neighbours. `noise` marks those that density found no topic for. The
    first topics are those of the `outline`, where pages have one.
    """

    labels: Labels
    noise: Flags
    is_core: Flags
    topics: list[str]
    centroids: Vectors
    parents: Labels
    above: list[str]
    above_centroids: Vectors
    outline: list[OutlineTopic]

    def sizes(self) -> np.ndarray:
        """Entities in each topic."""
        return np.bincount(self.labels, minlength=len(self.topics))

    def centroid_version(self, model: str) -> str:
        """The name of the set of centroids: the same centroids of the same model have the same."""
        contents = model.encode() + np.ascontiguousarray(self.centroids).tobytes()
        return hashlib.sha256(contents).hexdigest()[:16]


def find_hierarchy(
    material: Material,
    outline: Outline | None,
    previous: Previous,
    rules: HierarchyRules,
) -> Hierarchy:
    """Topics and super-topics of the material; keys of the previous clusters go on where most
    members do.
    """
    labels, noise, is_core = _find_topics(material, outline, rules)
    real = int(labels.max(initial=NONE)) + 1
    middles = topics.centroids(
        material.vectors,
        np.where(is_core, labels, NONE),
        real,
    )

    if outline is not None:
        middles[: len(outline.topics)] = outline.centroids

    unplaced = int(np.any(labels == NONE))  # one more topic, for those without any
    labels = np.where(labels == NONE, real, labels)
    middles = np.vstack([middles, np.zeros((unplaced, middles.shape[1]), np.float32)])

    previous_topics: dict[str, str] = {}

    above_before: dict[str, str] = {}
    for key, topic in zip(material.keys, material.topic, strict=True):
        if topic is not None and topic in previous and topic != BUCKET:
            previous_topics[key] = topic
            if previous[topic]["parent"]:
                above_before[key] = previous[topic]["parent"]

    share = rules.match_share
    members = _members(material, labels, real)
    keys = match_keys(
        L1,
        members,
        previous_topics,
        match_share=share,
    )
    described = [] if outline is None else outline.topics
    groups = _group_topics(middles[:real], described, rules)
    count = int(groups.max(initial=NONE)) + 1
    parents = np.concatenate([groups, np.full(unplaced, count, np.int64)])
    members = _members(material, parents[labels], count)
    above = match_keys(L2, members, above_before, match_share=share) + [BUCKET_ABOVE] * unplaced
    sizes = np.bincount(labels, minlength=len(middles))[:, None]
    above_middles = topics.centroids(
        (middles * sizes).astype(np.float32),
        parents,
        len(above),
    )
    return Hierarchy(
        labels=labels,
        noise=noise,
        is_core=is_core,
        topics=keys + [BUCKET] * unplaced,
        centroids=middles,
        parents=parents,
        above=above,
        above_centroids=above_middles,
        outline=described,
    )


_FOLDER_APART = 1.0  # distance between topics of different folders, beside that of their centroids


_FANOUT_SCALE = 1.5  # topics below a super-topic: this times the square root of their number


def _group_topics(
    middles: Vectors,
    described: Sequence[OutlineTopic],
    rules: HierarchyRules,
) -> Labels:
    """The super-topic of each topic: by meaning and by folder, change logs by themselves."""
    labels = np.zeros(len(middles), np.int64)
    is_log = np.zeros(len(middles), bool)
    is_log[: len(described)] = [topic.is_change_log for topic in described]
    folders = sorted({topic.folder for topic in described})
    apart = np.zeros((len(middles), len(folders)), np.float32)

    for row, topic in enumerate(described):
        apart[row, folders.index(topic.folder)] = _FOLDER_APART / 2**0.5

    points = np.hstack([middles, apart])[~is_log]
    # A small hierarchy has several super-topics as well.
    fanout = min(rules.max_fanout, max(3.0, _FANOUT_SCALE * len(points) ** 0.5))
    groups = topics.cut_tree(
        points,
        np.ones(len(points)),
        fanout,
    )
    labels[~is_log] = topics.join_single(groups, points, rules.max_fanout)
    labels[is_log] = labels.max(initial=NONE) + 1 if len(points) else 0
    return topics.dense_labels(labels)


def _find_topics(
    material: Material,
    outline: Outline | None,
    rules: HierarchyRules,
) -> tuple[Labels, Flags, Flags]:
    """Every entity's topic (-1: nothing speaks for any), whether density called it noise, and who
    made the topics.

    Pages of a folder have the topics of its outline; other texts are clustered.
    """
    if outline is None:
        labels = np.full(len(material), NONE, np.int64)
    else:
        labels = outline.labels.copy()

    noise = np.zeros(len(material), bool)
    if outline is None:
        waiting = labels == NONE
    else:
        waiting = (labels == NONE) & ~outline.is_page

    core = core_rows(material, waiting, rules)
    if len(core):
        clusters, noise[core] = _cluster(material, core, rules)
        labels[core] = clusters + int(labels.max(initial=NONE)) + 1

    is_core = labels != NONE
    if is_core.any():
        labels = _place_others(material, labels, rules)

    return labels, noise, is_core


def _cluster(
    material: Material,
    core: np.ndarray,
    rules: HierarchyRules,
) -> tuple[Labels, Flags]:
    """Topics of the core and who is noise: density and structure, reconciled."""
    vectors = material.vectors[core]
    nearest = topics.nearest_graph(vectors, rules.neighbours)
    smooth = topics.reduce(
        vectors,
        nearest,
        dimension=rules.reduced_dimension,
        steps=rules.diffusion_steps,
    )
    smallest = rules.min_cluster_size
    resolution = max(1.0, len(core) ** 0.5 / rules.topic_scale)
    density = topics.density_labels(
        smooth,
        min_cluster_size=smallest,
        min_samples=rules.min_samples,
    )
    graph = joint_graph(material, core, nearest, rules)
    partitions = [(density, 1.0)]

    for run in range(rules.structure_runs):
        structure = topics.communities(
            graph,
            resolution=resolution,
            seed=rules.seed + run,
        )
        partitions.append((structure, 1.0 / rules.structure_runs))

    agreed = topics.consensus_labels(
        graph,
        partitions,
        share=rules.consensus_share,
        resolution=resolution,
        seed=rules.seed,
    )
    large = topics.without_small(
        agreed,
        graph,
        vectors,
        smallest,
    )
    return topics.dense_labels(large), density == NONE


def _place_others(
    material: Material,
    labels: Labels,
    rules: HierarchyRules,
) -> Labels:
    """Everyone else by the votes of neighbours and by their vectors, trusted as far as they say
    something.

    A text beyond the core is also joined to the clustered texts nearest to it: they tell its topic
    better than a centroid does.
    """
    trust = np.where(
        material.of_name,
        rules.name_trust,
        rules.text_trust,
    ).astype(np.float32)
    trust[material.of_name & material.is_person] = rules.person_trust
    waiting = labels == NONE
    texts = np.flatnonzero(waiting & material.of_document)
    clustered = np.flatnonzero(~waiting)
    near = topics.nearest_graph(
        material.vectors,
        rules.neighbours,
        texts,
        clustered,
    )
    graph = (material.edges + np.float32(rules.nearness_votes) * near).tocsr()
    middles = topics.centroids(
        material.vectors,
        labels,
        int(labels.max()) + 1,
    )
    return topics.place(
        graph,
        material.vectors,
        trust,
        labels,
        middles,
    )


def joint_graph(
    material: Material,
    core: np.ndarray,
    near: Graph,
    rules: HierarchyRules,
) -> Graph:
    """The core joined by meaning and by structure: nearest neighbours, relations, and neighbours
    that two share.
    """
    graph = (near + topics.hop_graph(material.edges, core, rules.hub_degree)).tocsr()
    graph.sort_indices()
    return graph


def _members(
    material: Material,
    labels: Labels,
    groups: int,
) -> list[list[str]]:
    """Keys of the entities of each of the first groups, sorted."""
    members: list[list[str]] = [[] for _ in range(groups)]
    for key, label in zip(material.keys, labels.tolist(), strict=True):
        if label < groups:
            members[label].append(key)

    return members


def match_keys(
    kind: str,
    members: Sequence[Sequence[str]],
    previous: dict[str, str],
    *,
    match_share: float,
) -> list[str]:
    """A key for each topic, given its members (sorted) and the topic each member was in before.

    Pairs are matched one to one, those that share most first (ties: by the old key, then by the new
    topic's content); they must share `match_share` of their union. A topic without a match is named
    after its members.
    """
    old_sizes = Counter(previous.values())
    born = [content_key(kind, *group) for group in members]

    pairs = []
    for number, group in enumerate(members):
        former_topics = Counter(filter(None, map(previous.get, group)))
        for old, shared in former_topics.items():
            union = len(group) + old_sizes[old] - shared
            if shared >= match_share * union:
                pairs.append((-shared, old, born[number], number))

    matched: dict[int, str] = {}
    used: set[str] = set()
    for _, old, _, number in sorted(pairs):
        if number not in matched and old not in used:
            matched[number] = old
            used.add(old)

    for number, group in enumerate(members):
        if number not in matched:
            matched[number] = _free_key(kind, group, born[number], used)

    return [matched[number] for number in range(len(members))]


def _free_key(
    kind: str,
    group: Sequence[str],
    born: str,
    used: set[str],
) -> str:
    """The key of the members, told apart from an older topic that was born of the same ones and has
    moved on.
    """
    key = born
    attempt = 1

    while key in used:
        attempt += 1
        key = content_key(kind, *group, f"again {attempt}")

    used.add(key)
    return key
