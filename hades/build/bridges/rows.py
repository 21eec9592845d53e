"""Rules, graph, bridge rows and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import Predicate, RowStore, Term
from hades.settings.tree import DEFAULT_BOOSTS, PathSettings
from models.bridges import (
    Blocks,
    Flags,
    Floats,
    Hashes,
    Longs,
    TopicPath,
    block_edges,
    edge_logs,
    hash_texts,
    path_cost,
    path_weight,
)
from schemas.catalogue import collection_named
from schemas.edges import NEVER_BRIDGES, ClusterEdgeType
from schemas.ids import content_key
from schemas.nodes import RelationType
from schemas.record import arrow_schema, canonical_json
from schemas.topics import Bridge

# How bridges are chosen, and what a build of them reports.


VERSION = 3  # raise it with any change of what is found: the next build searches again


@dataclass(frozen=True)
class BridgeRules:
    """Everything that decides which bridges there are; a change of any rebuilds them.

    Every topic has bridges to its `topic_pairs` strongest neighbours, whether it moved or not.
    `pair_work` and `work` are budgets in edges looked at, for one pair of topics and for all. `refreshed_topics` is how
    many of the topics that moved most have all their pairs looked at again in a build that keeps the others.
    """

    threshold: float = 0.5
    max_hops: int = 5
    paths_per_pair: int = 3
    near_pairs: int = 512
    far_pairs: int = 256
    topic_pairs: int = 8
    refreshed_topics: int = 16
    seen_pairs: int = 256
    seen_days: int = 30
    middles: int = 8
    length_penalty: float = 0.3
    eps: float = 1e-6
    boosts: dict[str, float] = field(default_factory=lambda: {str(kind): one for kind, one in DEFAULT_BOOSTS.items()})
    pair_work: int = 200_000
    work: int = 150_000_000
    ttl_days: int = 30

    @property
    def ttl(self) -> timedelta:
        """How long a bridge may be used after the build that found or checked it, and kept without a new search."""
        return timedelta(days=self.ttl_days)


def bridge_rules_of(path: PathSettings) -> BridgeRules:
    """The rules that follow from the section `hirag_pathrag.path` of the settings."""
    return BridgeRules(
        max_hops=path.max_hops,
        length_penalty=path.length_penalty,
        eps=path.eps,
        boosts={str(kind): boost for kind, boost in path.relation_boost.items()},
    )


@dataclass(frozen=True)
class BridgeReport:
    """What the bridges stage did. `pairs_left` were not searched for want of work or time; see `stopped`."""

    skipped: bool = False
    labelled: int = 0
    strong: int = 0
    labels_changed: int = 0
    pairs: int = 0
    pairs_searched: int = 0
    pairs_reused: int = 0
    pairs_left: int = 0
    bridges: int = 0
    by_length: dict[str, int] = field(default_factory=dict)
    pinned: int = 0
    removed: int = 0
    work: int = 0
    stopped: str = ""
    notes: tuple[str, ...] = ()
    generation: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The report as the ledger keeps it."""
        return asdict(self)


# Relations between entities with topics, read from the store as arrays.


NOWHERE = -1


@dataclass(frozen=True)
class BridgeGraph:
    """Entities, L1 topics and relations, numbered in key order. -1 is no topic, NaN no weight.

    `tail_topic` and `head_topic` are the topics of an edge's ends, `super_topic` the L2 topic of each L1 topic.
    """

    entities: pa.Array
    topics: pa.Array
    topic: Longs
    super_topic: Longs
    edges: pa.Array
    types: pa.Array
    provenance: pa.Array
    tail: Longs
    head: Longs
    weight: Floats
    log: Floats
    labelled: Flags
    is_open: Flags

    @property
    def tail_topic(self) -> Longs:
        """L1 topic of each edge's tail."""
        return _at(self.topic, self.tail)

    @property
    def head_topic(self) -> Longs:
        """L1 topic of each edge's head."""
        return _at(self.topic, self.head)

    @property
    def never(self) -> Flags:
        """Which edges are of a type that is never a bridge."""
        return np.asarray(pc.is_in(self.types, value_set=pa.array(sorted(map(str, NEVER_BRIDGES)))), np.bool_)

    def walkable(self) -> Flags:
        """Edges that a bridge may use: weighed, between topics, without an end in time.

        A fact that ended or was withdrawn is left to searches that stand at a moment. An edge that is never a bridge
        may lead about within a topic, not out of it.
        """
        tail, head = self.tail_topic, self.head_topic
        placed = (tail >= 0) & (head >= 0) & (self.tail != self.head)
        kept: Flags = placed & self.is_open & ~np.isnan(self.weight) & ~(self.never & (tail != head))
        return kept

    def blocks(self) -> tuple[Blocks, Longs]:
        """The walkable edges by topics, and the number of each here."""
        numbers = np.flatnonzero(self.walkable())
        keys = _hashes(self.edges.take(pa.array(numbers)))
        tail, head, log = self.tail[numbers], self.head[numbers], self.log[numbers]
        return block_edges(tail, head, log, keys, self.topic, len(self.topics)), numbers


def read_graph(store: RowStore, rules: BridgeRules) -> BridgeGraph:
    """Read what bridges are made of: one scan of entities, topics and relations each."""
    topics = _table(store, "clusters", ["_key"], [Term("level", "==", 1)]).column("_key")
    entities = _table(store, "entities", ["_key", "cluster_id"])
    ids = pc.binary_join_element_wise("entities", entities.column("_key"), "/")
    columns = ["_key", "_from", "_to", "type", "weight", "layer_bridge", "valid_until", "retracted_at", "provenance"]
    edges = _table(store, "relations", columns)
    weight = edges.column("weight").to_numpy(zero_copy_only=False).astype(np.float64)
    known = [str(kind) for kind in RelationType]
    boost = np.array([rules.boosts[kind] for kind in known])[_places(edges.column("type"), pa.array(known))]
    tail, head = np.split(_places(pa.concat_arrays([edges.column("_from"), edges.column("_to")]), ids), 2)
    ended = pc.or_(pc.is_valid(edges.column("valid_until")), pc.is_valid(edges.column("retracted_at")))
    return BridgeGraph(
        entities=ids,
        topics=topics,
        topic=_places(entities.column("cluster_id"), topics),
        super_topic=_super_topics(store, topics),
        edges=edges.column("_key"),
        types=edges.column("type"),
        provenance=edges.column("provenance"),
        tail=tail,
        head=head,
        weight=weight,
        log=edge_logs(weight, boost, rules.eps),
        labelled=np.asarray(edges.column("layer_bridge"), np.bool_),
        is_open=~np.asarray(ended, np.bool_),
    )


def _super_topics(store: RowStore, topics: pa.Array) -> Longs:
    """The L2 topic of each L1 topic, by a number of its own; -1 where it has none."""
    subtopics = [Term("type", "==", str(ClusterEdgeType.SUBTOPIC_OF))]
    joined = _table(store, "cluster_edges", ["_key", "_from", "_to"], subtopics)
    ids = pc.binary_join_element_wise("clusters", topics, "/")
    parents = pc.dictionary_encode(joined.column("_to")).indices.to_numpy(zero_copy_only=False)
    return _at(parents.astype(np.int64), _places(ids, joined.column("_from")))


def _table(store: RowStore, collection: str, columns: Sequence[str], where: Predicate = ()) -> pa.RecordBatch:
    declared = collection_named(collection)
    assert declared is not None
    schema = pa.schema([declared.schema.field(name) for name in columns])
    whole = pa.Table.from_batches(store.scan(collection, columns=columns, where=where), schema=schema)
    return whole.combine_chunks().to_batches()[0] if whole.num_rows else pa.RecordBatch.from_pylist([], schema=schema)


def _places(values: pa.Array, among: pa.Array) -> Longs:
    found = pc.fill_null(pc.index_in(values, value_set=among), NOWHERE)
    places: Longs = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return places


def _at(values: Longs, places: Longs) -> Longs:
    """Values at places, -1 at no place."""
    return np.append(values, NOWHERE)[places]


def _hashes(texts: pa.Array) -> Hashes:
    whole = texts.cast(pa.large_string())
    _, ends, body = whole.buffers()
    bounds = np.frombuffer(ends, np.int64)[whole.offset : whole.offset + len(whole) + 1] if len(whole) else np.zeros(1)
    return hash_texts(bounds.astype(np.int64), np.frombuffer(body or b"", np.uint8))


# Bridges as rows, and rows read back as paths of the graph as it is now.


LASTING = ("_key", "from_cluster", "to_cluster", "nodes", "edges", "weight", "cost", "provenance", "pinned")


@dataclass(frozen=True)
class BridgePath:
    """A path of the graph: the digest of the region it was found in, how many were found there, by what rules and when.

    No rules: the pair has not been searched since it changed.
    """

    path: TopicPath
    region: str
    of: int
    rules: str = ""
    at: str = ""


@dataclass(frozen=True)
class CachedBridge:
    """A row of the cache: the path it stands for now, or why there is none.

    `is_same` says that every edge also has the weight it was found with; `rules` and `at` are those of its search.
    `row` is what the store holds of it.
    """

    key: str
    pair: tuple[str, str]
    pinned: bool
    region: str
    of: int
    path: TopicPath | None
    problem: str = ""
    is_same: bool = False
    rules: str = ""
    at: str = ""
    row: Mapping[str, Any] = field(default_factory=dict)

    def found(self) -> BridgePath | None:
        """The path with what is known of its search, while it stands."""
        return None if self.path is None else BridgePath(self.path, self.region, self.of, self.rules, self.at)


@dataclass(frozen=True)
class _GraphFacts:
    """What bridges are held against, as lists: single places of a list are read faster than those of an array."""

    tail: list[int]
    head: list[int]
    weight: list[float]
    walkable: list[bool]
    topic: list[int]
    topics: list[str]

    @classmethod
    def of(cls, graph: BridgeGraph) -> Self:
        """The facts of a graph."""
        return cls(
            tail=graph.tail.tolist(),
            head=graph.head.tolist(),
            weight=graph.weight.tolist(),
            walkable=graph.walkable().tolist(),
            topic=graph.topic.tolist(),
            topics=graph.topics.to_pylist(),
        )


def read_rows(store: RowStore, graph: BridgeGraph) -> list[CachedBridge]:
    """Every cached bridge against the graph: its edges stand and join its nodes, its ends are in the topics it says."""
    rows = [row for batch in store.scan("bridge_cache", columns=LASTING) for row in batch.to_pylist()]
    nodes = _numbers((one for row in rows for one in row["nodes"]), graph.entities)
    keys = _numbers((one.removeprefix("relations/") for row in rows for one in row["edges"]), graph.edges)
    facts = _GraphFacts.of(graph)
    kept = []
    for row in rows:
        walk = [nodes[one] for one in row["nodes"]]
        edges = [keys[one.removeprefix("relations/")] for one in row["edges"]]
        problem = _problem(facts, row, walk, edges)
        told = orjson.loads(row["provenance"])
        search = told.get("search", {})
        weights = [step["weight"] for step in told.get("edges", ())]
        kept.append(
            CachedBridge(
                key=row["_key"],
                pair=(row["from_cluster"], row["to_cluster"]),
                pinned=row["pinned"],
                region=search.get("region", ""),
                of=search.get("paths", 0),
                path=None if problem else TopicPath(tuple(walk), tuple(edges)),
                problem=problem,
                is_same=not problem and weights == [facts.weight[edge] for edge in edges],
                rules=search.get("rules", ""),
                at=search.get("at", ""),
                row=row,
            )
        )
    return kept


def path_key(graph: BridgeGraph, path: TopicPath) -> str:
    """The key of a bridge: what it starts from and which edges it follows."""
    edges = graph.edges.take(pa.array(path.edges)).to_pylist()
    return content_key("bridge", graph.entities[path.nodes[0]].as_py(), *edges)


def bridge_rows(
    graph: BridgeGraph, found: dict[str, BridgePath], pinned: set[str], rules: BridgeRules
) -> list[dict[str, Any]]:
    """What `bridge_cache` holds of each bridge from build to build, by key, with where each edge was read."""
    used = sorted({edge for one in found.values() for edge in one.path.edges})
    read = _provenance(graph, used)
    walked = sorted({node for one in found.values() for node in one.path.nodes})
    identifier = dict(zip(walked, graph.entities.take(pa.array(walked, pa.int64())).to_pylist(), strict=True))
    topics = graph.topics.to_pylist()
    rows = []
    for key in sorted(found):
        one = found[key]
        logs = [float(graph.log[edge]) for edge in one.path.edges]
        first, last = (topics[int(graph.topic[one.path.nodes[place]])] for place in (0, -1))
        steps = [read[edge] for edge in one.path.edges]
        rows.append(
            {
                "_key": key,
                "from_cluster": first,
                "to_cluster": last,
                "nodes": [identifier[node] for node in one.path.nodes],
                "edges": [step["id"] for step in steps],
                "weight": path_weight(logs, rules.length_penalty),
                "cost": path_cost(logs),
                "provenance": canonical_json({"edges": steps, "search": _search(one)}),
                "pinned": key in pinned,
            }
        )
    return rows


def write_bridges(
    store: RowStore,
    rows: Sequence[dict[str, Any]],
    kept: Sequence[CachedBridge],
    rules: BridgeRules,
    *,
    generation: str,
    as_of: datetime,
) -> None:
    """Bring `bridge_cache` to these rows: whole where one is new or differs, else what every build says again."""
    held = {one.key: one.row for one in kept}
    schema = arrow_schema(Bridge)
    whole, same = [], []
    for row in rows:
        expires = None if row["pinned"] else as_of + rules.ttl
        stamp = {"_key": row["_key"], "generation": generation, "created": as_of, "expires": expires}
        if held.get(row["_key"]) == row:
            same.append(stamp)
        else:
            whole.append(row | stamp)
    if whole:
        store.upsert("bridge_cache", pa.Table.from_pylist(whole, schema=schema))
    if same:
        stamped = pa.schema([schema.field(name) for name in same[0]])
        store.patch("bridge_cache", pa.Table.from_pylist(same, schema=stamped))


def _search(found: BridgePath) -> dict[str, Any]:
    return {"region": found.region, "paths": found.of, "rules": found.rules, "at": found.at}


def _problem(facts: _GraphFacts, row: dict[str, Any], walk: Sequence[int], edges: Sequence[int]) -> str:
    """Why a row is no bridge of the graph as it is now; empty when it is one."""
    for name, edge in zip(row["edges"], edges, strict=True):
        if edge < 0 or not facts.walkable[edge]:
            return f"{name} no longer stands"
    if min(walk, default=-1) < 0 or not _joins(facts, walk, edges):
        return "its edges do not join its nodes"
    ends = [facts.topic[walk[place]] for place in (0, -1)]
    if [facts.topics[end] if end >= 0 else None for end in ends] != [row["from_cluster"], row["to_cluster"]]:
        return "an end of it moved to another topic"
    return ""


def _provenance(graph: BridgeGraph, edges: Sequence[int]) -> dict[int, dict[str, Any]]:
    """What each edge says and where it was read."""
    rows = pa.array(edges, pa.int64())
    columns = [one.take(rows).to_pylist() for one in (graph.edges, graph.types, graph.provenance)]
    weights = graph.weight[np.array(edges, np.int64)].tolist()
    steps = {}
    for edge, key, kind, source, weight in zip(edges, *columns, weights, strict=True):
        place = source or {"doc": "", "span": None}
        steps[edge] = {
            "id": f"relations/{key}",
            "type": kind,
            "weight": weight,
            "doc": place["doc"],
            "span": place["span"],
        }
    return steps


def _joins(facts: _GraphFacts, walk: Sequence[int], edges: Sequence[int]) -> bool:
    """Whether a walk is a loopless path along these edges."""
    if len(walk) != len(edges) + 1 or len(set(walk)) != len(walk) or not edges:
        return False
    return all(
        {facts.tail[edge], facts.head[edge]} == {walk[place], walk[place + 1]} for place, edge in enumerate(edges)
    )


def _numbers(names: Iterable[str], among: pa.Array) -> dict[str, int]:
    distinct = list(dict.fromkeys(names))
    places = pc.fill_null(pc.index_in(pa.array(distinct, pa.string()), value_set=among), -1)
    return dict(zip(distinct, places.to_pylist(), strict=True))
