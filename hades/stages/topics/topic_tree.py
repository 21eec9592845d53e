"""Topics from scratch: a core is clustered by density and by structure, the two are reconciled, the rest is placed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hades.stages.topics.topic_inputs import Material
from hades.stages.topics.topic_points import core_rows, points_of
from hades.stages.topics.topic_rules import HierarchyRules
from models.hierarchy.arrays import NONE, Flags, Graph, Labels, Vectors, centroids, dense_labels
from models.hierarchy.community import communities
from models.hierarchy.consensus import consensus_labels, without_small
from models.hierarchy.density import density_labels
from models.hierarchy.neighbours import hop_graph, nearest_graph
from models.hierarchy.placement import place
from models.hierarchy.reduce import reduce


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
