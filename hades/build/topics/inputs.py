"""What topics are made of and by: rules, report, entities and relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.build.columns import column, flags, ids, place_ends
from hades.build.context import read_columns, vectors_of
from hades.ports.store import RowStore
from models.topics import Flags, Graph, Vectors, symmetric_graph
from schemas.nodes import EntityType

VERSION = 7  # raise it with any change of what is computed: the next build is not skipped
NAME = "name"  # `vector_of` of an entity that is placed by its name
_ENTITY = ["_key", "name", "type", "vector_of", "embedding_model", "embedding", "cluster_id"]
_RELATION = ["_from", "_to", "strength", "retracted_at"]


@dataclass(frozen=True)
class HierarchyRules:
    """Every number the hierarchy depends on, with the value measured to serve (`benchmarks/bench_hierarchy.py`)."""

    min_cluster_size: int = 5
    min_samples: int = 3
    seed: int = 42
    core_limit: int = 20_000  # entities that are clustered; the others are placed by their neighbours
    neighbours: int = 15  # nearest in meaning that each core entity is joined to
    hub_degree: int = 30  # who joins more core entities than this says nothing of any of them
    reduced_dimension: int = 16
    diffusion_steps: int = 8
    structure_runs: int = 3  # Leiden partitions that vote; together they count as much as the density
    outline_scale: float = 0.7  # topics of a folder: this times the square root of its chunks
    fine_cluster_size: int = 3  # the smallest topic of a folder
    topic_scale: float = 10.0  # resolution is sqrt(core) / this, at least 1: topics grow in number and in size
    consensus_share: float = 0.5
    text_trust: float = 2.0  # how much the vector of a text counts beside the votes of neighbours
    nearness_votes: float = 3.0  # what the nearest texts of a text say, in votes of a relation each
    name_trust: float = 0.3  # that of a name
    person_trust: float = 0.05  # that of a person's name, which says nothing of a topic
    max_fanout: int = 16  # topics below one super-topic
    depth: int = 2  # 1: topics only; 2: topics and super-topics
    match_share: float = 0.25  # of the union that two builds of a topic must share to be the same topic
    summary_sentences: int = 3
    summary_members: int = 6  # the members nearest to the centroid whose texts are read
    summary_tokens: int = 120  # what a language model may write about one topic


@dataclass(frozen=True)
class HierarchyReport:
    """What there is now, and what moved.

    `moved` counts entities that left one topic for another, `placed` those that had none. `moving` names the topics
    whose members changed and the `share` of its members of both builds that are not in both, `biggest` the largest by
    `name` and `size`. `drift` is how far centroids moved since the last build, the mean over topics by size.
    """

    mode: Literal["full", "skipped"]
    why: str
    build: str = ""
    generation: str = ""
    entities: int = 0
    topics: int = 0
    supertopics: int = 0
    noise: int = 0
    unplaced: int = 0
    moved: int = 0
    placed: int = 0
    gone: int = 0
    topics_new: int = 0
    topics_gone: int = 0
    topics_kept: int = 0
    drift: float = 0.0
    moving: Sequence[Mapping[str, Any]] = ()
    biggest: Sequence[Mapping[str, Any]] = ()
    summaries_written: int = 0


@dataclass(frozen=True)
class Material:
    """Entities in key order. Arrays have one row each; `vectors` is zero where there is no vector of the model.

    `topic` is where each entity was before this build, None where it had no place.
    """

    keys: list[str]
    names: list[str]
    vectors: Vectors
    has_vector: Flags
    of_name: Flags
    is_person: Flags
    is_symbol: Flags
    edges: Graph
    topic: list[str | None]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def of_document(self) -> Flags:
        """Whose vector is that of a whole text."""
        return self.has_vector & ~self.of_name


def read_material(store: RowStore, model: str) -> Material:
    """All entities and relations that stand; vectors of other models are not compared and count as absent."""
    entities = read_columns(store, "entities", _ENTITY)
    keys = column(entities, "_key")
    vectors = vectors_of(entities, model)
    return Material(
        keys=keys.to_pylist(),
        names=entities.column("name").to_pylist(),
        vectors=vectors,
        has_vector=np.any(vectors != 0, axis=1),
        of_name=_is(entities, "vector_of", NAME),
        is_person=_is(entities, "type", str(EntityType.PERSON)),
        is_symbol=_is(entities, "type", str(EntityType.CODE_SYMBOL)),
        edges=_relations(store, keys),
        topic=entities.column("cluster_id").to_pylist(),
    )


def core_rows(material: Material, waiting: Flags, rules: HierarchyRules) -> np.ndarray:
    """Whom to cluster, of those that are `waiting` for a topic: who stands for a text, or has none within two hops.

    The others, mostly names, say less by their vector than by the texts they stand in. Where nothing stands for a text
    everyone with a vector is clustered. Beyond `core_limit` a sample fixed by the keys' hashes is.
    """
    texts = material.of_document
    if texts.any() or not waiting.all():
        near = texts | ~waiting
        near = near | (material.edges @ near.astype(np.float32) > 0)
        reached = near | (material.edges @ near.astype(np.float32) > 0)
        joined = np.diff(material.edges.indptr) > 0
        chosen = np.flatnonzero(waiting & (texts | (material.has_vector & ~reached & joined)))
    else:
        chosen = np.flatnonzero(material.has_vector)
    if len(chosen) > rules.core_limit:
        drawn = sorted(chosen.tolist(), key=lambda row: blake2b(material.keys[row].encode(), digest_size=8).digest())
        chosen = np.sort(np.array(drawn[: rules.core_limit], np.int64))
    return chosen


def _relations(store: RowStore, keys: pa.Array) -> Graph:
    """The relations that stand between entities, by row; strength 1 where nobody stated one."""
    table = read_columns(store, "relations", _RELATION)
    table = table.filter(pc.is_null(table.column("retracted_at")))
    tails, heads = place_ends(table, ids("entities", keys))
    strength = pc.fill_null(table.column("strength"), 1.0).to_numpy()
    known = (tails >= 0) & (heads >= 0)
    return symmetric_graph(tails[known], heads[known], strength[known], len(keys))


def _is(entities: pa.Table, name: str, value: str) -> Flags:
    return flags(pc.equal(column(entities, name), value))
