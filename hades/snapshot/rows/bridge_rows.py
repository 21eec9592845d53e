"""Bridges: paths between topics as numbers and handles, found by either of their topics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import SnapshotError
from hades.ports.graph import FOREVER, Kind
from hades.ports.store import RowStore
from hades.snapshot.arrays import Folder
from hades.snapshot.columns import NOWHERE, integers
from hades.snapshot.rows.node_rows import NodeSpace
from schemas.catalogue import collection_named

Longs = NDArray[np.int64]

_COLUMNS = ("from_cluster", "to_cluster", "nodes", "edges", "weight", "cost", "provenance", "generation", "pinned")


@dataclass(frozen=True)
class Bridges:
    """How many bridges a snapshot has, and how many stayed out because they are of edges that are no more."""

    written: int
    left_out: int


@dataclass(frozen=True)
class _Paths:
    """Bridges one after the other: how many nodes and edges each has, and all of them in one array; -1 is nowhere."""

    n_nodes: Longs
    n_edges: Longs
    nodes: Longs
    edges: Longs

    @property
    def row_of_node(self) -> Longs:
        """The bridge of each node."""
        return np.repeat(np.arange(len(self.n_nodes)), self.n_nodes)

    @property
    def row_of_edge(self) -> Longs:
        """The bridge of each edge."""
        return np.repeat(np.arange(len(self.n_edges)), self.n_edges)

    def take(self, rows: Longs) -> _Paths:
        """These bridges alone."""
        chosen = np.zeros(len(self.n_nodes), np.bool_)
        chosen[rows] = True
        nodes, edges = self.nodes[chosen[self.row_of_node]], self.edges[chosen[self.row_of_edge]]
        return _Paths(self.n_nodes[rows], self.n_edges[rows], nodes, edges)


class BridgeRows:
    """Writes the bridges that stand. Row order is key order.

    `bridge.node` holds the nodes of row i at `bridge.starts[i]:bridge.starts[i + 1]`; its edges, one fewer a row,
    stand in `bridge.edge` from `bridge.starts[i] - i`. `bridge.topic`, sorted, with `bridge.row` finds rows by topic.
    """

    def __init__(self, folder: Folder, nodes: NodeSpace, n_relations: int, *, has_validity: bool) -> None:
        """After all edges were written."""
        self._folder, self._nodes = folder, nodes
        self._relations = _keys(folder, n_relations)
        self._source, self._target, self._weight = (folder[f"edge.{name}"] for name in ("source", "target", "weight"))
        self._has_ended = np.zeros(n_relations, dtype=np.bool_)
        for name in ("valid_until", "retracted_at") if has_validity else ():
            self._has_ended |= folder[f"edge.{name}"][:n_relations] != FOREVER

    def write(self, store: RowStore, generation: str) -> Bridges:
        """Bridges of exactly this generation whose edges are all there as they were; the others stay out."""
        declared = collection_named("bridge_cache")
        assert declared is not None
        schema = pa.schema([declared.schema.field(name) for name in ("_key", *_COLUMNS)])
        rows = pa.Table.from_batches(store.scan("bridge_cache", columns=schema.names), schema=schema).combine_chunks()
        of_now = rows.filter(pc.equal(rows.column("generation"), generation)) if generation else rows.slice(0, 0)
        current = of_now.combine_chunks()
        paths, ends = self._locate(current)
        standing = np.flatnonzero(self._are_as_they_were(current, paths, ends))
        current, paths, ends = current.take(pa.array(standing)), paths.take(standing), ends[standing].astype(np.int32)
        self._check(current.column("_key"), paths)
        row = np.repeat(np.arange(len(ends), dtype=np.int32), 2)
        order = np.argsort(ends.ravel(), kind="stable")
        for name, values in (
            ("starts", np.concatenate([[0], np.cumsum(paths.n_nodes)]).astype(np.int64)),
            ("node", paths.nodes.astype(np.int32)),
            ("edge", paths.edges.astype(np.int32)),
            ("from", ends[:, 0]),
            ("to", ends[:, 1]),
            ("weight", current.column("weight").to_numpy().astype(np.float64)),
            ("cost", current.column("cost").to_numpy().astype(np.float64)),
            ("pinned", current.column("pinned").to_numpy().astype(np.uint8)),
            ("topic", ends.ravel()[order]),
            ("row", row[order]),
        ):
            self._folder.whole(f"bridge.{name}", values)
        return Bridges(len(ends), rows.num_rows - len(ends))

    def _locate(self, rows: pa.Table) -> tuple[_Paths, Longs]:
        """Nodes and edges of bridges by their numbers, and (n, 2) the nodes of the topics they join."""
        nodes, edges = (rows.column(name).combine_chunks() for name in ("nodes", "edges"))
        topics = [
            pc.binary_join_element_wise(str(Kind.CLUSTER), rows.column(end), "/").combine_chunks()
            for end in ("from_cluster", "to_cluster")
        ]
        keys = pc.replace_substring_regex(edges.flatten(), r"^[^/]*/", "")
        paths = _Paths(
            integers(pc.list_value_length(nodes), 0),
            integers(pc.list_value_length(edges), 0),
            _places(nodes.flatten(), self._nodes.ids),
            _places(keys, self._relations),
        )
        return paths, np.column_stack([_places(topic, self._nodes.ids) for topic in topics])

    def _are_as_they_were(self, rows: pa.Table, paths: _Paths, ends: Longs) -> NDArray[np.bool_]:
        """Which bridges have all nodes and edges, each edge with the weight it was found with and no end in time."""
        stands: NDArray[np.bool_] = ends.min(axis=1, initial=0) >= 0
        stands[paths.row_of_node[paths.nodes < 0]] = False
        stands[paths.row_of_edge[paths.edges < 0]] = False
        weight, has_ended = np.append(self._weight, np.nan), np.append(self._has_ended, True)
        same = (_find_weights(rows) == weight[paths.edges]) & ~has_ended[paths.edges]
        stands[paths.row_of_edge[~same]] = False
        return stands

    def _check(self, keys: pa.ChunkedArray, paths: _Paths) -> None:
        """Refuse a bridge that is no path: it was written wrong, and waiting does not fix it."""
        fits = (paths.n_edges > 0) & (paths.n_nodes == paths.n_edges + 1)
        row = paths.row_of_edge
        within = np.arange(len(row)) - (np.cumsum(paths.n_edges) - paths.n_edges)[row]
        before = (np.cumsum(paths.n_nodes) - paths.n_nodes)[row] + within
        here, there = (paths.nodes[np.where(fits[row], before + step, 0)] for step in (0, 1))
        source, target = self._source[paths.edges], self._target[paths.edges]
        joins = ((source == here) & (target == there)) | ((source == there) & (target == here))
        fits[row[~joins]] = False
        if not fits.all():
            key = keys[int(np.argmin(fits))].as_py()
            raise SnapshotError(
                f"bridge_cache/{key}: its edges do not join its nodes one after the other; delete the row or run "
                "`hades run build_bridges`, nothing was published"
            )


def _find_weights(rows: pa.Table) -> NDArray[np.float64]:
    """The weight that each edge had when its bridge was found; NaN where the bridge does not say."""
    weights: list[float] = []
    columns = (rows.column(name).to_pylist() for name in ("edges", "provenance"))
    for edges, text in zip(*columns, strict=True):
        known = {step["id"]: step["weight"] for step in orjson.loads(text).get("edges", ())}
        weights += [known.get(edge, np.nan) for edge in edges]
    return np.array(weights, np.float64)


def _keys(folder: Folder, count: int) -> pa.Array:
    """Keys of the relations, whose handles are the first, without copying them."""
    ends, text = folder["edge.key.ends"][: count + 1], folder["edge.key.text"]
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(text))


def _places(names: pa.Array, among: pa.Array) -> Longs:
    return integers(pc.index_in(names.cast(pa.large_string()), value_set=among), NOWHERE)
