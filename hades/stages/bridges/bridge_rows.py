"""Bridges as rows, and rows read back as paths of the graph as it is now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import RowStore
from hades.stages.bridges.bridge_graph import BridgeGraph
from hades.stages.bridges.bridge_rules import BridgeRules
from models.bridges.score import path_cost, path_weight
from models.bridges.search import TopicPath
from schemas.bridges import Bridge
from schemas.columns import arrow_schema
from schemas.ids import content_key
from schemas.record import canonical_json

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
