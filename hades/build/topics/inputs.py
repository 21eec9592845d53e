"""Rules, report, entities, relations, previous topics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.errors import SettingsError
from hades.ports.store import RowStore
from models.topics.cluster import Flags, Graph, Links, Vectors, Weights, add_links, join_links, nearest_links
from models.topics.describe import Points
from schemas.catalogue import collection_named
from schemas.edges import ClusterEdgeType
from schemas.nodes import EntityType

# What decides the topics; a change of any of it makes the next build a full one.


VERSION = 4  # raise it with any change of what is computed: the next build is a full one


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
    code_share: float = 0.3  # from this share of code symbols among entities on, a corpus is a workspace
    code_topic_scale: float = 2.0  # `topic_scale` of a workspace: groups of modules, not whole projects
    code_cluster_size: int = 3  # of a workspace, where three modules may be a topic
    topic_scale: float = 10.0  # resolution is sqrt(core) / this, at least 1: topics grow in number and in size
    consensus_share: float = 0.5
    text_trust: float = 2.0  # how much the vector of a text counts beside the votes of neighbours
    nearness_votes: float = 3.0  # what the nearest texts of a text say, in votes of a relation each
    name_trust: float = 0.3  # that of a name
    person_trust: float = 0.05  # that of a person's name, which says nothing of a topic
    loyalty: float = 0.2  # what speaks for staying when an entity is placed again
    max_fanout: int = 16  # topics below one super-topic
    depth: int = 2  # 1: topics only; 2: topics and super-topics
    match_share: float = 0.25  # of the union that two builds of a topic must share to be the same topic
    rebuild_changed: float = 0.10  # share of entities new, gone or changed since the last full build
    rebuild_drift: float = 0.02  # mean of 1 - cosine between centroids and what their members are today
    summary_sentences: int = 3
    summary_members: int = 6  # the members nearest to the centroid whose texts are read
    summary_tokens: int = 120  # what a language model may write about one topic

    def __post_init__(self) -> None:
        """Refuse what could not give a hierarchy."""
        if self.depth not in (1, 2):
            raise SettingsError(f"hierarchy depth is {self.depth}; the schema holds levels 1 and 2: use 1 or 2")
        if self.max_fanout < 2:
            raise SettingsError(f"hierarchy max_fanout is {self.max_fanout}; a super-topic joins at least 2 topics")
        if min(self.min_cluster_size, self.min_samples, self.neighbours) < 1 or self.min_cluster_size < 2:
            raise SettingsError("hierarchy min_cluster_size must be 2 or more, min_samples and neighbours 1 or more")


# What a build of the hierarchy did, for people and for the stages after it.


@dataclass(frozen=True)
class Moving:
    """A topic whose members changed, and the share of its members of both builds that are not in both."""

    cluster: str
    share: float


@dataclass(frozen=True)
class TopicSize:
    """One topic, for the list of the biggest."""

    cluster: str
    name: str
    size: int


@dataclass(frozen=True)
class HierarchyReport:
    """Which way was taken and why, what there is now, and what moved.

    `moved` counts entities that left one topic for another, `placed` those that had none. `moving` names the topics
    whose members changed; `changed_since_full` and `entities_at_full` are what the next build decides by.
    """

    mode: Literal["full", "incremental", "skipped"]
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
    moving: tuple[Moving, ...] = ()
    biggest: tuple[TopicSize, ...] = ()
    summaries_written: int = 0
    params: str = ""
    entities_at_full: int = 0
    changed_since_full: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            **asdict(self),
            "moving": [asdict(one) for one in self.moving],
            "biggest": [asdict(one) for one in self.biggest],
        }

    def as_record(self) -> dict[str, Any]:
        """As the ledger keeps it: without the seconds, so that equal builds leave equal rows."""
        return {name: value for name, value in self.as_dict().items() if name != "seconds"}


class Stopwatch:
    """Seconds by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add what passes inside to a step."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.perf_counter() - began, 3)


# What an entity's place was decided from, as one number: when it differs, the entity is placed again.


BLOCK = 4096
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def key_hashes(keys: Sequence[str]) -> np.ndarray:
    """(n,) uint64, the same for the same key in every run."""
    joined = b"".join(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys)
    return np.frombuffer(joined, np.uint64)


def basis_of(
    vectors: Vectors, hashes: np.ndarray, tails: np.ndarray, heads: np.ndarray, kinds: np.ndarray, strength: np.ndarray
) -> list[str]:
    """For each entity a hash of its vector and of its relations with their types, strengths and other ends."""
    around = np.zeros(len(hashes), np.uint64)
    said = _mix(kinds + strength.astype(np.float32).view(np.uint32).astype(np.uint64) * _ODD)
    for here, there in ((tails, heads), (heads, tails)):
        np.add.at(around, here, _mix(hashes[there] ^ said))  # a sum: the order of relations does not matter
    return [f"{value:016x}" for value in _mix(_vector_hashes(vectors) + _mix(around) * _ODD).tolist()]


def _vector_hashes(vectors: Vectors) -> np.ndarray:
    factors = _mix(np.arange(1, vectors.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    found = np.zeros(len(vectors), np.uint64)
    for start in range(0, len(vectors), BLOCK):
        bits = np.ascontiguousarray(vectors[start : start + BLOCK]).view(np.uint32).astype(np.uint64)
        found[start : start + BLOCK] = (bits * factors).sum(axis=1)
    return found


def _mix(values: np.ndarray) -> np.ndarray:
    """Every bit of the input in every bit of the output (the finaliser of SplitMix64)."""
    values = (values + _ODD).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    mixed: np.ndarray = values ^ (values >> np.uint64(31))
    return mixed


# What the topics are made of, read once: entities with their vectors, and the relations between them.


NAME = "name"  # a vector of the entity's name alone
_ENTITY = ["_key", "name", "type", "vector_of", "embedding_model", "cluster_id"]


@dataclass(frozen=True)
class Material:
    """Entities in key order. Arrays have one row each; `vectors` is zero where there is no vector of the model."""

    keys: list[str]
    names: list[str]
    vectors: Vectors
    has_vector: Flags
    of_name: Flags
    is_person: Flags
    is_symbol: Flags
    links: Links
    hashes: np.ndarray
    basis: list[str]
    held: list[str | None]

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def edges(self) -> Graph:
        """The relations as a matrix, for a full build."""
        return self.links.matrix()

    @property
    def of_document(self) -> Flags:
        """Whose vector is that of a whole text."""
        return self.has_vector & ~self.of_name


def read_material(store: RowStore, model: str) -> Material:
    """All entities and relations that stand; vectors of other models are not compared and count as absent."""
    entities, vectors = _entities(store, model)
    keys = entities.column("_key").to_pylist()
    has_vector = np.any(vectors != 0, axis=1) if len(keys) else np.zeros(0, bool)
    tails, heads, kinds, strength = _relations(store, entities.column("_key"))
    hashes = key_hashes(keys)
    return Material(
        keys=keys,
        names=entities.column("name").to_pylist(),
        vectors=vectors,
        has_vector=has_vector,
        of_name=_is(entities, "vector_of", NAME),
        is_person=_is(entities, "type", str(EntityType.PERSON)),
        is_symbol=_is(entities, "type", str(EntityType.CODE_SYMBOL)),
        links=join_links(tails, heads, strength, len(keys)),
        hashes=hashes,
        basis=basis_of(vectors, hashes, tails, heads, kinds, strength),
        held=entities.column("cluster_id").to_pylist(),
    )


def _entities(store: RowStore, model: str) -> tuple[pa.Table, Vectors]:
    """Everything but the vectors as a table, the vectors as one matrix; a batch at a time, so they are held once."""
    parts: list[pa.Table] = []
    blocks: list[tuple[int, np.ndarray, Vectors]] = []
    rows = dimension = 0
    for batch in store.scan("entities", columns=[*_ENTITY, "embedding"]):
        column = batch.column("embedding")
        ours = pc.fill_null(pc.equal(batch.column("embedding_model"), model), False)
        present = np.flatnonzero(pc.and_(ours, pc.is_valid(column)).to_numpy(zero_copy_only=False))
        if len(present):
            held = column if len(present) == len(column) else column.take(pa.array(present))
            flat = held.flatten().to_numpy(zero_copy_only=False)
            block = flat.astype(np.float32, copy=False).reshape(len(present), -1)
            dimension = block.shape[1]
            blocks.append((rows, present, block))
        parts.append(pa.Table.from_batches([batch.select(_ENTITY)]))
        rows += batch.num_rows
    vectors = np.zeros((rows, dimension), np.float32)
    for start, present, block in blocks:
        vectors[start + present] = block
    return pa.concat_tables([_nothing("entities", _ENTITY), *parts]).combine_chunks(), vectors


def _relations(store: RowStore, keys: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ends as rows, type as a hash, and strength (1 where nobody stated one) of each relation that stands."""
    columns = ["_from", "_to", "type", "strength", "retracted_at"]
    batches = [batch.select(columns) for batch in store.scan("relations", columns=columns)]
    table = pa.concat_tables(
        [_nothing("relations", columns), pa.Table.from_batches(batches)]
        if batches
        else [_nothing("relations", columns)]
    )
    table = table.filter(pc.is_null(table.column("retracted_at"))).combine_chunks()
    ids = pc.binary_join_element_wise(pa.scalar("entities/"), keys.combine_chunks(), "")
    tails, heads = (
        pc.fill_null(pc.index_in(table.column(name), value_set=ids), -1).to_numpy().astype(np.int64)
        for name in ("_from", "_to")
    )
    kinds = table.column("type").combine_chunks().dictionary_encode()
    codes = key_hashes(kinds.dictionary.to_pylist())[kinds.indices.to_numpy()] if len(kinds) else np.zeros(0, np.uint64)
    strength = pc.fill_null(table.column("strength"), 1.0).to_numpy().astype(np.float32)
    known = (tails >= 0) & (heads >= 0)
    return tails[known], heads[known], codes[known], strength[known]


def _is(entities: pa.Table, column: str, value: str) -> Flags:
    flags: Flags = pc.fill_null(pc.equal(entities.column(column), value), False).to_numpy()
    return flags


def _nothing(collection: str, columns: list[str]) -> pa.Table:
    declared = collection_named(collection)
    assert declared is not None
    return pa.schema([declared.schema.field(name) for name in columns]).empty_table()


# Entities as points: whom to cluster, and what speaks for the place of the others.


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


# The hierarchy that stands in the store: what the last build left.


EDGE_COLUMNS = ("_from", "_to", "type", "weight", "noise", "basis")
_ENTITIES, _CLUSTERS = "entities/", "clusters/"
EdgeRow: TypeAlias = tuple[str, str, str, float, bool, str]  # in the order of the columns


class Member(NamedTuple):
    """Where an entity is, what that was decided from, whether density called it noise, and the edge that says so."""

    topic: str
    basis: str
    noise: bool
    edge: str


@dataclass(frozen=True)
class PreviousHierarchy:
    """Cluster rows by key (`metadata` as an object), members by entity key, edge rows by edge key."""

    clusters: dict[str, dict[str, Any]]
    members: dict[str, Member]
    edges: dict[str, EdgeRow]

    @cached_property
    def topics(self) -> list[str]:
        """Keys of the L1 topics, sorted."""
        return sorted(key for key, row in self.clusters.items() if row["level"] == 1)

    @cached_property
    def above(self) -> list[str]:
        """Keys of the L2 super-topics, sorted."""
        return sorted(key for key, row in self.clusters.items() if row["level"] == 2)

    def centroid(self, key: str, dimension: int) -> np.ndarray:
        """The centroid of a cluster; zero when it has none of that dimension."""
        row = self.clusters[key]["centroid"]
        return np.asarray(row if row is not None and len(row) == dimension else np.zeros(dimension), np.float32)


def read_standing(store: RowStore) -> PreviousHierarchy:
    """Everything the last build wrote of topics and membership; empty before the first."""
    clusters = {row["_key"]: row for batch in store.scan("clusters") for row in batch.to_pylist()}
    for row in clusters.values():
        row["metadata"] = orjson.loads(row["metadata"])
    edges: dict[str, EdgeRow] = {}
    for batch in store.scan("cluster_edges", columns=["_key", *EDGE_COLUMNS]):
        columns = (batch.column(name).to_pylist() for name in EDGE_COLUMNS)
        edges.update(zip(batch.column("_key").to_pylist(), zip(*columns, strict=True), strict=True))
    part_of = str(ClusterEdgeType.PART_OF)
    members = {
        source[len(_ENTITIES) :]: Member(target[len(_CLUSTERS) :], basis, noise, key)
        for key, (source, target, kind, _, noise, basis) in edges.items()
        if kind == part_of
    }
    return PreviousHierarchy(clusters, members, edges)
