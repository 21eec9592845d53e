"""The contract of bridges."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hades import stage_ledger
from hades.night.columns import Frames, column, flags, ids, read, with_columns
from hades.night.contracts.rule import (
    between,
    contract,
    holds,
)
from hades.night.contracts.weights import TOLERANCE
from hades.ports.store import RowStore
from schemas.edges import NEVER_BRIDGES

MAX_BRIDGE_EDGES = 5
BRIDGES_CONTRACT = contract(
    "bridges",
    "relations that join topics, and cached paths between topics",
    "run `hades repair bridges`",
    {
        "relations": [
            ("coref_never_labelled", "coref is never a bridge", "type"),
            (
                "label_joins_two_topics",
                "a relation labelled a bridge joins two topics",
                "from_topic",
                "to_topic",
            ),
        ],
        "bridge_cache": [
            (
                "length_in_range",
                f"a bridge has 1 to {MAX_BRIDGE_EDGES} edges",
                between("n_edges", 1, MAX_BRIDGE_EDGES),
            ),
            (
                "one_node_more_than_edges",
                "a bridge has one node more than edges",
                "n_nodes",
                "n_edges",
            ),
            ("nodes_exist", "every node of a bridge is stored", "missing_node"),
            ("edges_exist", "every edge of a bridge is stored", "missing_edge"),
            (
                "edges_join_nodes",
                "each edge of a bridge joins the nodes beside it",
                "nodes",
                "edges",
            ),
            ("no_node_twice", "a bridge passes each node once", "nodes"),
            ("coref_never_crosses", "no coref leads a bridge from one topic to another", "edges"),
            ("edges_stand", "no edge of a bridge has ended or was withdrawn", "edges"),
            (
                "topics_exist",
                "a bridge joins two different level 1 topics that are stored",
                "from_cluster",
                "to_cluster",
            ),
            (
                "ends_in_their_topics",
                "a bridge begins and ends in the topics it names",
                "from_cluster",
                "first_topic",
                "to_cluster",
                "last_topic",
            ),
            (
                "current_generation",
                "a bridge is of the generation of the weights in use",
                holds("is_current"),
                "generation",
                "current_generation",
            ),
            (
                "cost_adds_up",
                "a bridge costs what its edges cost together",
                "cost",
                "cost_of_edges",
            ),
        ],
    },
)
_BRIDGED_RELATION = ("_from", "_to", "type", "cost", "layer_bridge", "valid_until", "retracted_at")
_BRIDGE = ("from_cluster", "to_cluster", "nodes", "edges", "cost", "generation", "created")
_BRIDGE_FACTS = {
    **dict.fromkeys(("n_nodes", "n_edges"), pa.int64()),
    **dict.fromkeys(
        ("missing_node", "missing_edge", "first_topic", "last_topic", "current_generation"),
        pa.string(),
    ),
    **dict.fromkeys(
        ("one_node_more_than_edges", "nodes_exist", "edges_exist", "edges_join_nodes"),
        pa.bool_(),
    ),
    **dict.fromkeys(
        ("no_node_twice", "coref_never_crosses", "edges_stand", "topics_exist"),
        pa.bool_(),
    ),
    **dict.fromkeys(
        ("ends_in_their_topics", "cost_adds_up", "is_current"),
        pa.bool_(),
    ),
    "cost_of_edges": pa.float64(),
}
Facts = dict[str, Any]


def bridge_frames(store: RowStore) -> Frames:
    """Labelled relations with the topics they join, and bridges with what walking them finds."""
    relations = read(store, "relations", *_BRIDGED_RELATION)
    bridges = read(store, "bridge_cache", *_BRIDGE)
    labelled = relations.filter(relations.column("layer_bridge"))
    ran = stage_ledger.last_completion(store, stage_ledger.BRIDGES) is not None

    if not bridges.num_rows and not labelled.num_rows and not ran:
        return Frames({}, ("no bridges have been built yet",))

    clusters = read(store, "clusters", "level")
    topics = set(clusters.filter(pc.equal(clusters.column("level"), 1)).column("_key").to_pylist())
    entities = read(store, "entities", "cluster_id")
    topic_of = dict.fromkeys(ids("entities", column(entities, "_key")).to_pylist())

    for entity, topic in zip(topic_of, entities["cluster_id"].to_pylist(), strict=True):
        if topic in topics:
            topic_of[entity] = topic

    weighed = stage_ledger.last_completion(store, stage_ledger.WEIGHTS)
    current = weighed.generation if weighed else None
    names = ids("relations", column(relations, "_key"))
    walked = pc.is_in(
        names,
        value_set=pc.unique(pc.list_flatten(column(bridges, "edges"))),
    )
    edges = dict(
        zip(names.filter(walked).to_pylist(), relations.filter(walked).to_pylist(), strict=True)
    )

    walks = []
    for row in bridges.to_pylist():
        walks.append(_walk(row, edges, topic_of, topics, current))

    facts = pa.Table.from_pylist(walks, schema=pa.schema(_BRIDGE_FACTS))
    tails = pa.array(map(topic_of.get, labelled["_from"].to_pylist()), pa.string())
    heads = pa.array(map(topic_of.get, labelled["_to"].to_pylist()), pa.string())
    kinds = labelled["type"].to_pylist()
    frames = {
        "relations": with_columns(
            labelled.select(["_key", "type"]),
            from_topic=tails,
            to_topic=heads,
            coref_never_labelled=[kind not in NEVER_BRIDGES for kind in kinds],
            label_joins_two_topics=flags(pc.not_equal(tails, heads)),
        ),
        "bridge_cache": with_columns(
            bridges,
            **{name: column(facts, name) for name in _BRIDGE_FACTS},
        ),
    }
    return Frames(
        frames,
        notes=() if weighed else ("generations were not compared: the ledger has no weighing",),
    )


def _walk(
    row: Facts,
    edges: Mapping[str, Facts],
    topic_of: Mapping[str, str | None],
    topics: set[str],
    current: str | None,
) -> Facts:
    """What walking one bridge finds; what another rule reports is not held against it twice."""
    nodes = row["nodes"]
    stated_topics = (row["from_cluster"], row["to_cluster"])

    walked = []
    for name in row["edges"]:
        if name in edges:
            walked.append(edges[name])

    missing_node = next((node for node in nodes if node not in topic_of), None)
    missing_edge = next((name for name in row["edges"] if name not in edges), None)
    nodes_exist = missing_node is None
    edges_exist = missing_edge is None
    fits = len(nodes) == len(row["edges"]) + 1
    pairs = zip(walked, pairwise(nodes), strict=False)
    joins = all({edge["_from"], edge["_to"]} == set(pair) for edge, pair in pairs)

    if nodes:
        ends = (topic_of.get(nodes[0]), topic_of.get(nodes[-1]))
    else:
        ends = (None, None)

    topics_exist = stated_topics[0] != stated_topics[1] and topics.issuperset(stated_topics)
    costs = [edge["cost"] for edge in walked]
    if edges_exist and None not in costs:
        cost = sum(costs)
    else:
        cost = None

    tolerance = TOLERANCE * max(1.0, abs(cost or 0.0))
    crosses = False
    for edge in walked:
        if edge["type"] in NEVER_BRIDGES:
            crosses |= topic_of.get(edge["_from"]) != topic_of.get(edge["_to"])

    return {
        "n_nodes": len(nodes),
        "n_edges": len(row["edges"]),
        "one_node_more_than_edges": fits,
        "nodes_exist": nodes_exist,
        "edges_exist": edges_exist,
        "missing_node": missing_node,
        "missing_edge": missing_edge,
        "edges_join_nodes": joins or not (fits and nodes_exist and edges_exist),
        "no_node_twice": len(set(nodes)) == len(nodes) or not nodes_exist,
        "coref_never_crosses": not crosses,
        "edges_stand": not any(edge["valid_until"] or edge["retracted_at"] for edge in walked),
        "topics_exist": topics_exist,
        "first_topic": ends[0],
        "last_topic": ends[1],
        "ends_in_their_topics": ends == stated_topics or not topics_exist or not nodes_exist,
        "cost_of_edges": cost,
        "cost_adds_up": cost is None or abs(row["cost"] - cost) <= tolerance,
        "current_generation": current,
        "is_current": current is None or row["generation"] == current,
    }
