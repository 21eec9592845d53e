"""Bridges and the learned ranker as files of a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import SnapshotError
from hades.ports.graph import KINDS, Kind, RankerState
from hades.ports.store import RowStore
from hades.snapshot.files import Folder, integers, places_of
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import EdgeSpace, NodeSpace, identify, read_rows
from models.ranker.infer import BadModel, Graph, RankerModel, node_features, node_states, pack, undirected

# Bridges: paths between topics as numbers and handles, found by either of their topics.


Longs = NDArray[np.int64]
_COLUMNS = ("from_cluster", "to_cluster", "nodes", "edges", "weight", "cost", "provenance", "generation", "pinned")


@dataclass(frozen=True)
class _Path:
    """One bridge by the numbers of its nodes and edges and of the topics it joins; -1 is nowhere."""

    key: str
    nodes: Longs
    edges: Longs
    ends: Longs
    weights: NDArray[np.float64]  # of its edges when it was found
    row: dict[str, Any]


def write_bridges(
    store: RowStore, folder: Folder, nodes: NodeSpace, edges: EdgeSpace, generation: str
) -> tuple[int, int]:
    """Write bridges of this generation whose edges are all there as they were, in key order; how many did and did not.

    `bridge.node` holds the nodes of row i at `bridge.starts[i]:bridge.starts[i + 1]`; its edges, one fewer a row,
    stand in `bridge.edge` from `bridge.starts[i] - i`. `bridge.topic`, sorted, with `bridge.row` finds rows by topic.
    """
    rows = read_rows(store, "bridge_cache", ("_key", *_COLUMNS))
    current = rows.filter(pc.equal(rows["generation"], generation)) if generation else rows.slice(0, 0)
    paths = [path for path in _locate(current, nodes, edges) if _is_as_it_was(path, edges)]
    for path in paths:
        _check(path, edges)
    ends = np.array([path.ends for path in paths], np.int32).reshape(-1, 2)
    order = np.argsort(ends.ravel(), kind="stable")
    numbers = {name: [path.row[name] for path in paths] for name in ("weight", "cost", "pinned")}
    folder.write_arrays(
        "bridge",
        {
            "starts": np.cumsum([0, *(len(path.nodes) for path in paths)], dtype=np.int64),
            "node": np.concatenate([np.empty(0, np.int32), *(path.nodes for path in paths)]).astype(np.int32),
            "edge": np.concatenate([np.empty(0, np.int32), *(path.edges for path in paths)]).astype(np.int32),
            "from": ends[:, 0],
            "to": ends[:, 1],
            "weight": np.array(numbers["weight"], np.float64),
            "cost": np.array(numbers["cost"], np.float64),
            "pinned": np.array(numbers["pinned"], np.uint8),
            "topic": ends.ravel()[order],
            "row": np.repeat(np.arange(len(ends), dtype=np.int32), 2)[order],
        },
    )
    return len(paths), rows.num_rows - len(paths)


def _locate(rows: pa.Table, nodes: NodeSpace, edges: EdgeSpace) -> list[_Path]:
    """Bridges by numbers; all are looked up at once."""
    relations = edges.keys[: next(iter(edges.counts.values()))]  # the first collection, so a place is a handle
    node_numbers = places_of(pc.list_flatten(rows["nodes"]), nodes.ids)
    keys = pc.replace_substring_regex(pc.list_flatten(rows["edges"]), r"^[^/]*/", "")
    handles = places_of(keys, relations)
    n_nodes, n_edges = (integers(pc.list_value_length(rows[name]), 0) for name in ("nodes", "edges"))
    topics = [places_of(identify(Kind.CLUSTER, rows[end]), nodes.ids) for end in ("from_cluster", "to_cluster")]
    columns = (
        rows.to_pylist(),
        np.split(node_numbers, np.cumsum(n_nodes)),
        np.split(handles, np.cumsum(n_edges)),
        np.column_stack(topics),
    )
    return [
        _Path(row["_key"], own_nodes, own_edges, ends, _find_weights(row), row)
        for row, own_nodes, own_edges, ends in zip(*columns, strict=False)
    ]


def _find_weights(row: dict[str, Any]) -> NDArray[np.float64]:
    """The weight that each edge had when its bridge was found; NaN where the bridge does not say."""
    known = {step["id"]: step["weight"] for step in orjson.loads(row["provenance"]).get("edges", ())}
    return np.array([known.get(edge, np.nan) for edge in row["edges"]], np.float64)


def _is_as_it_was(path: _Path, edges: EdgeSpace) -> bool:
    """Whether all nodes and edges are there, each edge with the weight it was found with and no end in time."""
    if min(part.min(initial=0) for part in (path.ends, path.nodes, path.edges)) < 0:
        return False
    same = (edges.weight[path.edges] == path.weights) & ~edges.has_ended[path.edges]
    return bool(same.all())


def _check(path: _Path, edges: EdgeSpace) -> None:
    """Refuse a bridge that is no path: it was written wrong, and waiting does not fix it."""
    fits = len(path.nodes) == len(path.edges) + 1 > 1
    if fits:
        ends = np.sort(np.column_stack([edges.source[path.edges], edges.target[path.edges]]))
        fits = np.array_equal(ends, np.sort(np.column_stack([path.nodes[:-1], path.nodes[1:]])))
    if not fits:
        raise SnapshotError(
            f"bridge_cache/{path.key}: its edges do not join its nodes one after the other; delete the row or run "
            "`hades run build_bridges`, nothing was published"
        )


# The learned ranker as a part of a snapshot: its numbers, and the state of every node of this very graph.


def graph_of(view: GraphView, model: str) -> Graph:
    """Every node of a view with what the network sees of it, and all edges both ways."""
    adjacency = view.adjacency()
    numbers = np.arange(sum(view.info.nodes.values()), dtype=np.int64)
    vectors, _ = view.vectors(numbers, model=model)
    kinds = view.kinds(numbers)
    levels = np.zeros(len(numbers), np.uint8)
    topics = numbers[kinds == KINDS.index(Kind.CLUSTER)]
    levels[topics] = [int(fact.type[1:]) if fact.type[1:].isdigit() else 0 for fact in view.nodes(topics)]
    out, into = adjacency.out, adjacency.into
    features = node_features(vectors, kinds, levels, np.diff(out.starts), np.diff(into.starts))
    starts, targets = undirected(out.starts, out.target, into.starts, into.target)
    return Graph(features, starts, targets)


def write_ranker(folder: Folder, view: GraphView, model: RankerModel) -> None:
    """Add the arrays of a ranker to a snapshot that is being written; `view` is what was written of it."""
    folder.write_arrays("ranker", vars(_fit_to(view, model)))


def with_ranker(view: GraphView, model: RankerModel) -> GraphView:
    """The view as it would be with this ranker published in it; nothing is written."""
    return view.with_ranker(_fit_to(view, model))


def _fit_to(view: GraphView, model: RankerModel) -> RankerState:
    if "first.own" not in model.arrays:  # only the default ranking was learned: no node needs a state
        signature, numbers = pack(model)
        states = np.zeros((0, 1), np.float16)
        return RankerState(np.frombuffer(signature, np.uint8), numbers, states)
    graph = graph_of(view, str(model.signature["model"]))
    if graph.features.shape[1] != model.arrays["first.own"].shape[0]:
        raise BadModel(
            f"it was fitted to vectors of {model.signature['model']}, of which this graph has none of that length"
        )
    signature, numbers = pack(model)
    states = node_states(model, graph.features, graph.starts, graph.targets)
    return RankerState(np.frombuffer(signature, np.uint8), numbers, states)
