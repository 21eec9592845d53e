"""The contract `bridges`: each cached path can be walked edge by edge in the graph as it is now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades import build_state
from hades.build.columns import (
    Flags,
    Floats,
    Frames,
    Longs,
    at,
    close,
    column,
    flags,
    ids,
    numbers,
    per_row,
    place,
    place_ends,
    read,
    texts_at,
    wholes,
    with_columns,
)
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
_NOWHERE = -1
_COLUMNS = ("from_cluster", "to_cluster", "nodes", "edges", "cost", "generation", "created")
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class _Graph:
    """Entities with their topic and relations with their ends, as rows; -1 is none."""

    entity_ids: pa.Array
    topic: Longs
    topics: pa.Array
    edge_ids: pa.Array
    tail: Longs
    head: Longs
    cost: Floats
    never: Flags
    ended: Flags


def bridge_frames(store: RowStore) -> Frames:
    """Labelled relations with the topics they join, and bridges with what walking them finds."""
    relations = read(store, "relations", "_from", "_to", "type", "cost", "layer_bridge", "valid_until", "retracted_at")
    table = read(store, "bridge_cache", *_COLUMNS)
    labelled = flags(column(relations, "layer_bridge"))
    if not table.num_rows and not labelled.any() and build_state.complete(store, build_state.BRIDGES) is None:
        return Frames({}, absent="no bridges have been built yet")
    graph = _graph(store, relations)
    frames = {"relations": _labels(relations, graph, labelled), "bridge_cache": _bridges(table, graph)}
    weighed = build_state.complete(store, build_state.WEIGHTS)
    frames["bridge_cache"] = _with_generation(frames["bridge_cache"], weighed.generation if weighed else None)
    return Frames(frames, notes=() if weighed else ("generations were not compared: the ledger has no weighing",))


def _graph(store: RowStore, relations: pa.Table) -> _Graph:
    entities = read(store, "entities", "cluster_id")
    clusters = read(store, "clusters", "level")
    topics = column(clusters.filter(pc.equal(clusters.column("level"), 1)), "_key")
    entity_ids = ids("entities", column(entities, "_key"))
    tail, head = place_ends(relations, entity_ids)
    return _Graph(
        entity_ids=entity_ids,
        topic=place(column(entities, "cluster_id"), topics),
        topics=topics,
        edge_ids=ids("relations", column(relations, "_key")),
        tail=tail,
        head=head,
        cost=numbers(column(relations, "cost")),
        never=flags(pc.is_in(column(relations, "type"), value_set=pa.array(sorted(map(str, NEVER_BRIDGES))))),
        ended=flags(pc.is_valid(column(relations, "valid_until")))
        | flags(pc.is_valid(column(relations, "retracted_at"))),
    )


def _labels(relations: pa.Table, graph: _Graph, labelled: Flags) -> pa.Table:
    rows = np.flatnonzero(labelled)
    tail, head = (at(graph.topic, ends[rows], _NOWHERE) for ends in (graph.tail, graph.head))
    return with_columns(
        relations.select(["_key", "type"]).take(pa.array(rows)).combine_chunks(),
        from_topic=texts_at(graph.topics, tail),
        to_topic=texts_at(graph.topics, head),
        may_be_bridge=~graph.never[rows],
        joins_two_topics=(tail != head) & (tail >= 0) & (head >= 0),
    )


def _bridges(table: pa.Table, graph: _Graph) -> pa.Table:
    nodes, edges = column(table, "nodes"), column(table, "edges")
    walked = place(pc.list_flatten(nodes), graph.entity_ids)
    taken = place(pc.list_flatten(edges), graph.edge_ids)
    n_nodes, n_edges = wholes(pc.list_value_length(nodes)), wholes(pc.list_value_length(edges))
    fits = n_nodes == n_edges + 1
    nodes_exist = per_row(nodes, walked >= 0, np.logical_and, True)
    edges_exist = per_row(edges, taken >= 0, np.logical_and, True)
    whole = fits & nodes_exist & edges_exist & (n_edges > 0)
    begin, end = _beside(n_nodes, n_edges, fits)
    before, after = at(walked, begin, _NOWHERE), at(walked, end, _NOWHERE)
    tail, head = at(graph.tail, taken, _NOWHERE), at(graph.head, taken, _NOWHERE)
    joins = ((tail == before) & (head == after)) | ((tail == after) & (head == before))
    crosses = at(graph.topic, tail, _NOWHERE) != at(graph.topic, head, _NOWHERE)
    costs = per_row(edges, at(graph.cost, taken, np.nan), np.add, 0.0)
    first, last = _ends(walked, n_nodes, graph)
    said = [place(column(table, name), graph.topics) for name in ("from_cluster", "to_cluster")]
    topics_exist = (said[0] >= 0) & (said[1] >= 0) & (said[0] != said[1])
    return with_columns(
        table,
        n_nodes=n_nodes,
        n_edges=n_edges,
        nodes_fit_edges=fits,
        nodes_exist=nodes_exist,
        edges_exist=edges_exist,
        missing_node=_first_missing(nodes, walked),
        missing_edge=_first_missing(edges, taken),
        edges_join_nodes=per_row(edges, joins, np.logical_and, True) | ~whole,
        is_loopless=_distinct(nodes, walked) | ~nodes_exist,
        no_coref_crosses=~per_row(edges, at(graph.never, taken, False) & crosses, np.logical_or, False),
        edges_stand=~per_row(edges, at(graph.ended, taken, False), np.logical_or, False),
        topics_exist=topics_exist,
        first_topic=texts_at(graph.topics, first),
        last_topic=texts_at(graph.topics, last),
        ends_in_topics=((first == said[0]) & (last == said[1])) | ~topics_exist | ~nodes_exist,
        cost_of_edges=pa.array(costs, from_pandas=True),
        cost_adds_up=close(numbers(column(table, "cost")), costs, _TOLERANCE) | ~edges_exist,
    )


def _beside(n_nodes: Longs, n_edges: Longs, fits: Flags) -> tuple[Longs, Longs]:
    """Where the nodes before and after each edge stand in the flat list of nodes; -1 where the counts do not fit."""
    row = np.repeat(np.arange(len(n_edges)), n_edges)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(n_edges) - n_edges, n_edges)
    first = (np.cumsum(n_nodes) - n_nodes)[row] + offset
    return np.where(fits[row], first, _NOWHERE), np.where(fits[row], first + 1, _NOWHERE)


def _ends(walked: Longs, n_nodes: Longs, graph: _Graph) -> tuple[Longs, Longs]:
    """The topics a bridge really begins and ends in."""
    stop = np.cumsum(n_nodes)
    begins, ends = (np.where(n_nodes > 0, where, _NOWHERE) for where in (stop - n_nodes, stop - 1))
    first, last = (at(graph.topic, at(walked, where, _NOWHERE), _NOWHERE) for where in (begins, ends))
    return first, last


def _distinct(lists: pa.Array, values: Longs) -> Flags:
    """Which lists hold no value twice."""
    lengths = wholes(pc.list_value_length(lists))
    row = np.repeat(np.arange(len(lists)), lengths)
    order = np.lexsort((values, row))
    same = (row[order][1:] == row[order][:-1]) & (values[order][1:] == values[order][:-1])
    twice = np.zeros(len(lists), dtype=np.bool_)
    twice[row[order][1:][same]] = True
    return ~twice


def _first_missing(lists: pa.Array, places: Longs) -> pa.Array:
    """The first name of each list that stands nowhere; absent where all do."""
    names = pc.list_flatten(lists)
    number = np.where(places < 0, np.arange(len(places)), len(places))
    first = per_row(lists, number, np.minimum, len(places))
    return texts_at(names, np.where(first < len(places), first, _NOWHERE))


def _with_generation(table: pa.Table, current: str | None) -> pa.Table:
    is_current = pc.equal(column(table, "generation"), current) if current is not None else None
    return with_columns(
        table,
        current_generation=pa.array([current] * table.num_rows, pa.string()),
        is_current=np.ones(table.num_rows, np.bool_) if is_current is None else flags(is_current),
    )
