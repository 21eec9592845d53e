"""What bridges are made of and by: rules, report, the graph with its topics, and rows of `bridge_cache`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.build.columns import at, column, flags, ids, numbers, place, place_ends, read, wholes
from hades.build.context import read_columns
from hades.ports.store import RowStore, Term
from hades.settings.tree import DEFAULT_BOOSTS, PathSettings
from models.bridges import Blocks, Flags, Floats, Longs, TopicPath, block_edges, edge_logs, path_cost, path_weight
from schemas.edges import NEVER_BRIDGES, ClusterEdgeType
from schemas.ids import content_key
from schemas.nodes import RelationType
from schemas.record import arrow_schema, canonical_json
from schemas.topics import Bridge

VERSION = 5  # raise it with any change of what is found: the next build searches again
NOWHERE = -1
_RELATION = ("_from", "_to", "type", "weight", "layer_bridge", "valid_until", "retracted_at", "provenance")


@dataclass(frozen=True)
class BridgeRules:
    """Everything that decides which bridges there are; a change of any rebuilds them.

    Every topic has bridges to its `topic_pairs` strongest neighbours. `pair_work` and `work` are budgets in edges
    looked at, for one pair of topics and for all.
    """

    threshold: float = 0.5
    max_hops: int = 5
    paths_per_pair: int = 3
    near_pairs: int = 512
    far_pairs: int = 256
    topic_pairs: int = 8
    seen_pairs: int = 256
    seen_days: int = 30
    middles: int = 8
    length_penalty: float = 0.3
    eps: float = 1e-6
    boosts: dict[str, float] = field(default_factory=lambda: {str(kind): one for kind, one in DEFAULT_BOOSTS.items()})
    pair_work: int = 200_000
    work: int = 150_000_000
    refresh_days: int = 30  # after which pairs that questions met are looked for again, though nothing else changed


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
    pairs_left: int = 0
    bridges: int = 0
    by_length: dict[str, int] = field(default_factory=dict)
    pinned: int = 0
    removed: int = 0
    work: int = 0
    stopped: str = ""
    notes: tuple[str, ...] = ()
    generation: str = ""


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
        return at(self.topic, self.tail, NOWHERE)

    @property
    def head_topic(self) -> Longs:
        """L1 topic of each edge's head."""
        return at(self.topic, self.head, NOWHERE)

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
        tail, head, log = self.tail[numbers], self.head[numbers], self.log[numbers]
        return block_edges(tail, head, log, self.topic, len(self.topics)), numbers


def read_graph(store: RowStore, rules: BridgeRules) -> BridgeGraph:
    """Read what bridges are made of: one scan of entities, topics and relations each."""
    topics = column(read_columns(store, "clusters", ["_key"], [Term("level", "==", 1)]), "_key")
    entities = read(store, "entities", "cluster_id")
    nodes = ids("entities", column(entities, "_key"))
    edges = read(store, "relations", *_RELATION)
    weight = numbers(column(edges, "weight"))
    known = [str(kind) for kind in RelationType]
    boost = np.array([rules.boosts[kind] for kind in known])[place(column(edges, "type"), pa.array(known))]
    tail, head = place_ends(edges, nodes)
    ended = pc.or_(pc.is_valid(column(edges, "valid_until")), pc.is_valid(column(edges, "retracted_at")))
    return BridgeGraph(
        entities=nodes,
        topics=topics,
        topic=place(column(entities, "cluster_id"), topics),
        super_topic=_super_topics(store, topics),
        edges=column(edges, "_key"),
        types=column(edges, "type"),
        provenance=column(edges, "provenance"),
        tail=tail,
        head=head,
        weight=weight,
        log=edge_logs(weight, boost, rules.eps),
        labelled=flags(column(edges, "layer_bridge")),
        is_open=~flags(ended),
    )


def _super_topics(store: RowStore, topics: pa.Array) -> Longs:
    """The L2 topic of each L1 topic, by a number of its own; -1 where it has none."""
    subtopics = [Term("type", "==", str(ClusterEdgeType.SUBTOPIC_OF))]
    joined = read_columns(store, "cluster_edges", ["_key", "_from", "_to"], subtopics)
    parents = wholes(pc.dictionary_encode(column(joined, "_to")).indices)
    return at(parents, place(ids("clusters", topics), column(joined, "_from")), NOWHERE)


@dataclass(frozen=True)
class CachedBridge:
    """A row of `bridge_cache`: the path it stands for now, or why there is none."""

    key: str
    pair: tuple[str, str]
    pinned: bool
    path: TopicPath | None
    problem: str = ""


def read_rows(store: RowStore, graph: BridgeGraph) -> list[CachedBridge]:
    """Every cached bridge against the graph: its edges stand and join its nodes, its ends are in the topics it says."""
    columns = ["_key", "from_cluster", "to_cluster", "nodes", "edges", "pinned"]
    rows = read_columns(store, "bridge_cache", columns).to_pylist()
    nodes = _numbers((one for row in rows for one in row["nodes"]), graph.entities)
    keys = _numbers((one.removeprefix("relations/") for row in rows for one in row["edges"]), graph.edges)
    walkable, topics = graph.walkable(), graph.topics.to_pylist()
    cached = []
    for row in rows:
        walk = [nodes[one] for one in row["nodes"]]
        edges = [keys[one.removeprefix("relations/")] for one in row["edges"]]
        pair = (row["from_cluster"], row["to_cluster"])
        gone = [name for name, edge in zip(row["edges"], edges, strict=True) if edge < 0 or not walkable[edge]]
        if gone:
            problem = f"{gone[0]} no longer stands"
        elif min(walk, default=NOWHERE) < 0 or not _joins(graph, walk, edges):
            problem = "its edges do not join its nodes"
        elif tuple(topics[graph.topic[end]] if graph.topic[end] >= 0 else None for end in (walk[0], walk[-1])) != pair:
            problem = "an end of it moved to another topic"
        else:
            problem = ""
        path = None if problem else TopicPath(tuple(walk), tuple(edges))
        cached.append(CachedBridge(row["_key"], pair, row["pinned"], path, problem))
    return cached


def path_key(graph: BridgeGraph, path: TopicPath) -> str:
    """The key of a bridge: what it starts from and which edges it follows."""
    edges = graph.edges.take(pa.array(path.edges)).to_pylist()
    return content_key("bridge", graph.entities[path.nodes[0]].as_py(), *edges)


def bridge_rows(
    graph: BridgeGraph, found: Mapping[str, TopicPath], pinned: set[str], rules: BridgeRules
) -> list[dict[str, Any]]:
    """Each bridge by key, with where each edge was read."""
    steps = _steps(graph, sorted({edge for path in found.values() for edge in path.edges}))
    walked = sorted({node for path in found.values() for node in path.nodes})
    identifier = dict(zip(walked, graph.entities.take(pa.array(walked, pa.int64())).to_pylist(), strict=True))
    topics = graph.topics.to_pylist()
    rows = []
    for key, path in sorted(found.items()):
        logs = [float(graph.log[edge]) for edge in path.edges]
        own = [steps[edge] for edge in path.edges]
        rows.append(
            {
                "_key": key,
                "from_cluster": topics[int(graph.topic[path.nodes[0]])],
                "to_cluster": topics[int(graph.topic[path.nodes[-1]])],
                "nodes": [identifier[node] for node in path.nodes],
                "edges": [step["id"] for step in own],
                "weight": path_weight(logs, rules.length_penalty),
                "cost": path_cost(logs),
                "provenance": canonical_json({"edges": own}),
                "pinned": key in pinned,
            }
        )
    return rows


def write_bridges(store: RowStore, rows: Sequence[dict[str, Any]], *, generation: str, as_of: datetime) -> None:
    """Write these rows, stamped with the generation of the weights and the moment of the build."""
    stamped = [{**row, "generation": generation, "created": as_of} for row in rows]
    store.upsert("bridge_cache", pa.Table.from_pylist(stamped, schema=arrow_schema(Bridge)))


def _steps(graph: BridgeGraph, edges: Sequence[int]) -> dict[int, dict[str, Any]]:
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


def _joins(graph: BridgeGraph, walk: Sequence[int], edges: Sequence[int]) -> bool:
    """Whether a walk is a loopless path along these edges."""
    if len(walk) != len(edges) + 1 or len(set(walk)) != len(walk) or not edges:
        return False
    return all(
        {int(graph.tail[edge]), int(graph.head[edge])} == {walk[place], walk[place + 1]}
        for place, edge in enumerate(edges)
    )


def _numbers(names: Iterable[str], among: pa.Array) -> dict[str, int]:
    distinct = list(dict.fromkeys(names))
    return dict(zip(distinct, place(pa.array(distinct, pa.string()), among).tolist(), strict=True))
