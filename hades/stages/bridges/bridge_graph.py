"""Relations between entities with topics, read from the store as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import Predicate, RowStore, Term
from hades.stages.bridges.bridge_rules import BridgeRules
from models.bridges.blocks import Blocks, Hashes, block_edges, hash_texts
from models.bridges.score import Flags, Floats, Longs, edge_logs
from schemas.catalogue import collection_named
from schemas.edges import NEVER_BRIDGES, ClusterEdgeType
from schemas.graph_types import RelationType

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
