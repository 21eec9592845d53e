"""The contract `bridges`: each cached path can be walked edge by edge in the graph as it is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hades import build_state
from hades.build.columns import Frames, column, ids, read, with_columns
from hades.build.contracts.rule import between, contract, holds
from hades.ports.store import RowStore
from schemas.edges import NEVER_BRIDGES

MAX_BRIDGE_EDGES = 5
# fmt: off
CONTRACT = contract(
    "bridges",
    "relations that join topics, and cached paths between topics",
    "run `hades repair bridges`",
    {
        "relations": [
            ("coref_never_labelled", "coref is never a bridge", holds("may_be_bridge"), "type"),
            ("label_joins_two_topics", "a relation labelled a bridge joins two topics",
             holds("joins_two_topics"), "from_topic", "to_topic"),
        ],
        "bridge_cache": [
            ("length_in_range", f"a bridge has 1 to {MAX_BRIDGE_EDGES} edges", between("n_edges", 1, MAX_BRIDGE_EDGES)),
            ("one_node_more_than_edges", "a bridge has one node more than edges",
             holds("nodes_fit_edges"), "n_nodes", "n_edges"),
            ("nodes_exist", "every node of a bridge is stored", holds("nodes_exist"), "missing_node"),
            ("edges_exist", "every edge of a bridge is stored", holds("edges_exist"), "missing_edge"),
            ("edges_join_nodes", "each edge of a bridge joins the nodes beside it",
             holds("edges_join_nodes"), "nodes", "edges"),
            ("no_node_twice", "a bridge passes each node once", holds("is_loopless"), "nodes"),
            ("coref_never_crosses", "no coref leads a bridge from one topic to another",
             holds("no_coref_crosses"), "edges"),
            ("edges_stand", "no edge of a bridge has ended or was withdrawn", holds("edges_stand"), "edges"),
            ("topics_exist", "a bridge joins two different level 1 topics that are stored",
             holds("topics_exist"), "from_cluster", "to_cluster"),
            ("ends_in_their_topics", "a bridge begins and ends in the topics it names",
             holds("ends_in_topics"), "from_cluster", "first_topic", "to_cluster", "last_topic"),
            ("current_generation", "a bridge is of the generation of the weights in use",
             holds("is_current"), "generation", "current_generation"),
            ("cost_adds_up", "a bridge costs what its edges cost together",
             holds("cost_adds_up"), "cost", "cost_of_edges"),
        ],
    },
)
# fmt: on
_RELATION = ("_from", "_to", "type", "cost", "layer_bridge", "valid_until", "retracted_at")
_BRIDGE = ("from_cluster", "to_cluster", "nodes", "edges", "cost", "generation", "created")
_TOLERANCE = 1e-6
_TEXT, _FLAG = pa.string(), pa.bool_()
_LABEL_FACTS = {"from_topic": _TEXT, "to_topic": _TEXT, "may_be_bridge": _FLAG, "joins_two_topics": _FLAG}
_BRIDGE_FACTS = {
    "n_nodes": pa.int64(), "n_edges": pa.int64(), "nodes_fit_edges": _FLAG, "nodes_exist": _FLAG, "edges_exist": _FLAG,
    "missing_node": _TEXT, "missing_edge": _TEXT, "edges_join_nodes": _FLAG, "is_loopless": _FLAG,
    "no_coref_crosses": _FLAG, "edges_stand": _FLAG, "topics_exist": _FLAG, "first_topic": _TEXT, "last_topic": _TEXT,
    "ends_in_topics": _FLAG, "cost_of_edges": pa.float64(), "cost_adds_up": _FLAG, "current_generation": _TEXT,
    "is_current": _FLAG,
}  # fmt: skip
Facts = dict[str, Any]


def bridge_frames(store: RowStore) -> Frames:
    """Labelled relations with the topics they join, and bridges with what walking them finds."""
    relations, bridges = read(store, "relations", *_RELATION), read(store, "bridge_cache", *_BRIDGE)
    labelled = relations.filter(relations.column("layer_bridge"))
    ran = build_state.complete(store, build_state.BRIDGES) is not None
    if not bridges.num_rows and not labelled.num_rows and not ran:
        return Frames({}, absent="no bridges have been built yet")
    clusters = read(store, "clusters", "level")
    topics = set(clusters.filter(pc.equal(clusters.column("level"), 1)).column("_key").to_pylist())
    topic_of = _topics(store, topics)
    weighed = build_state.complete(store, build_state.WEIGHTS)
    current = weighed.generation if weighed else None
    names = ids("relations", column(relations, "_key"))
    walked = pc.is_in(names, value_set=pc.unique(pc.list_flatten(column(bridges, "edges"))))
    edges = dict(zip(names.filter(walked).to_pylist(), relations.filter(walked).to_pylist(), strict=True))
    labels = [_judge_label(row, topic_of) for row in labelled.to_pylist()]
    found = [_walk(row, edges, topic_of, topics, current) for row in bridges.to_pylist()]
    frames = {
        "relations": _with_facts(labelled.select(["_key", "type"]), labels, _LABEL_FACTS),
        "bridge_cache": _with_facts(bridges, found, _BRIDGE_FACTS),
    }
    return Frames(frames, notes=() if weighed else ("generations were not compared: the ledger has no weighing",))


def _topics(store: RowStore, known: set[str]) -> dict[str, str | None]:
    """The topic of every entity by its id; None where it has none of those known."""
    entities = read(store, "entities", "cluster_id")
    names, topics = ids("entities", column(entities, "_key")), entities.column("cluster_id")
    rows = zip(names.to_pylist(), topics.to_pylist(), strict=True)
    return {name: topic if topic in known else None for name, topic in rows}


def _with_facts(table: pa.Table, facts: Sequence[Facts], types: Mapping[str, pa.DataType]) -> pa.Table:
    return with_columns(table, **{name: pa.array([one[name] for one in facts], kind) for name, kind in types.items()})


def _judge_label(row: Facts, topic_of: Mapping[str, str | None]) -> Facts:
    tail, head = topic_of.get(row["_from"]), topic_of.get(row["_to"])
    return {
        "from_topic": tail,
        "to_topic": head,
        "may_be_bridge": row["type"] not in NEVER_BRIDGES,
        "joins_two_topics": None not in (tail, head) and tail != head,
    }


def _walk(
    row: Facts, edges: Mapping[str, Facts], topic_of: Mapping[str, str | None], topics: set[str], current: str | None
) -> Facts:
    """What walking one bridge finds; what another rule reports is not held against it twice."""
    nodes, said = row["nodes"], (row["from_cluster"], row["to_cluster"])
    taken = [edges[name] for name in row["edges"] if name in edges]
    nodes_exist, edges_exist = all(one in topic_of for one in nodes), len(taken) == len(row["edges"])
    fits = len(nodes) == len(row["edges"]) + 1
    joins = all({edge["_from"], edge["_to"]} == set(pair) for edge, pair in zip(taken, pairwise(nodes), strict=False))
    ends = tuple(topic_of.get(end) for end in (nodes[0], nodes[-1])) if nodes else (None, None)
    topics_exist = said[0] != said[1] and topics.issuperset(said)
    costs = [edge["cost"] for edge in taken]
    cost = sum(costs) if edges_exist and None not in costs else None
    return {
        "n_nodes": len(nodes),
        "n_edges": len(row["edges"]),
        "nodes_fit_edges": fits,
        "nodes_exist": nodes_exist,
        "edges_exist": edges_exist,
        "missing_node": next((one for one in nodes if one not in topic_of), None),
        "missing_edge": next((name for name in row["edges"] if name not in edges), None),
        "edges_join_nodes": joins or not (fits and nodes_exist and edges_exist),
        "is_loopless": len(set(nodes)) == len(nodes) or not nodes_exist,
        "no_coref_crosses": not any(
            edge["type"] in NEVER_BRIDGES and topic_of.get(edge["_from"]) != topic_of.get(edge["_to"]) for edge in taken
        ),
        "edges_stand": not any(edge["valid_until"] or edge["retracted_at"] for edge in taken),
        "topics_exist": topics_exist,
        "first_topic": ends[0],
        "last_topic": ends[1],
        "ends_in_topics": ends == said or not topics_exist or not nodes_exist,
        "cost_of_edges": cost,
        "cost_adds_up": cost is None or abs(row["cost"] - cost) <= _TOLERANCE * max(1.0, abs(cost)),
        "current_generation": current,
        "is_current": current is None or row["generation"] == current,
    }
