"""Entities as points: whom to cluster, and what speaks for the place of the others."""

from __future__ import annotations

import numpy as np

from hades.stages.topics.topic_inputs import Material
from hades.stages.topics.topic_rules import HierarchyRules
from models.hierarchy.arrays import Flags, Weights
from models.hierarchy.links import add_links
from models.hierarchy.nearest import nearest_links
from models.hierarchy.placement import Points


def core_rows(material: Material, rules: HierarchyRules) -> np.ndarray:
    """Whom to cluster: entities that stand for a text, and those that no text is within two hops of.

    The others, mostly names, say less by their vector than by the texts they stand in. Where nothing stands for a text
    everyone with a vector is clustered. Beyond `core_limit` a sample fixed by the keys' hashes is.
    """
    texts = material.of_document
    if texts.any():
        near = texts | material.links.beside(texts)
        reached = near | material.links.beside(near)
        joined = material.links.degree > 0
        chosen = np.flatnonzero(texts | (material.has_vector & ~reached & joined))
    else:
        chosen = np.flatnonzero(material.has_vector)
    if len(chosen) > rules.core_limit:
        chosen = np.sort(chosen[np.argsort(material.hashes[chosen], kind="stable")[: rules.core_limit]])
    return chosen


def points_of(material: Material, rules: HierarchyRules, asked: Flags, is_core: Flags) -> Points:
    """The material as placement sees it: how far each vector is to be trusted, and who votes.

    An asked text is also joined to the clustered texts nearest to it: they tell its topic better than a centroid does.
    """
    trust: Weights = np.where(material.of_name, rules.name_trust, rules.text_trust).astype(np.float32)
    trust[material.of_name & material.is_person] = rules.person_trust
    texts = np.flatnonzero(asked & (material.of_document | is_core))
    near = nearest_links(material.vectors, texts, np.flatnonzero(is_core & ~asked), rules.neighbours)
    return Points(material.vectors, add_links(material.links, near, rules.nearness_votes), trust)
