"""Edges, bridges, ranker as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import SnapshotError
from hades.ports.graph import ALWAYS, EDGES, FOREVER, KINDS, Kind, RankerState
from hades.ports.store import RowStore
from hades.ports.view import GraphView
from hades.snapshot import adjacency
from hades.snapshot.files import NOWHERE, Coder, Column, Folder, HeapWriter, append_texts, floats, integers, spans
from hades.snapshot.view import RANKER
from hades.snapshot.write_graph import DocumentRows, NodeSpace, Progress
from hades.snapshot.write_vectors import edge_types
from models.ranker.infer import BadModel, Graph, RankerModel, node_features, node_states, pack, undirected
from schemas.catalogue import collection_named

# Edges: a handle each, by collection and then key; ends as node numbers, and where each was read.


BOUNDS = {"valid_from": ALWAYS, "valid_until": FOREVER, "recorded_at": ALWAYS, "retracted_at": FOREVER}
_MAX_EDGES = np.iinfo(np.int32).max
_BATCH_ROWS = 262_144  # the table of node ids is hashed once a batch
_COMMON = ("_key", "_from", "_to", "type", "weight", *BOUNDS)


class EdgeRows:
    """Writes all edges of a store, then both directions of their adjacency."""

    def __init__(self, folder: Folder, documents: DocumentRows, nodes: NodeSpace) -> None:
        self._folder, self._documents, self._nodes = folder, documents, nodes
        self._key, self._label = HeapWriter(folder, "edge.key"), HeapWriter(folder, "edge.label")
        self._ends = {name: folder.column(f"edge.{name}", np.int32) for name in ("source", "target")}
        self._type = folder.column("edge.type", np.uint8)
        self._weight = folder.column("edge.weight", np.float64)
        self._places = [folder.column(f"edge.{name}", np.int32) for name in ("document", "start", "end")]
        self._types = Coder(edge_types())
        self._bounds: dict[str, Column] = {}

    @property
    def has_validity(self) -> bool:
        """Whether some edge has an interval; without one no validity is written."""
        return bool(self._bounds)

    def write(self, store: RowStore, progress: Progress) -> dict[str, int]:
        """Scan each collection once, in key order; how many edges each has."""
        counts: dict[str, int] = {}
        for name in EDGES:
            before = self._key.count
            for batch in self._scan(store, name):
                self._common(name, batch)
                self._provenance(batch)
                progress(name, self._key.count - before)
            counts[name] = self._key.count - before
        if self._key.count > _MAX_EDGES:
            raise SnapshotError(
                f"{self._key.count} edges are more than a snapshot holds ({_MAX_EDGES}); use HADES_VIEW=arango"
            )
        self._write_adjacency()
        return counts

    def _scan(self, store: RowStore, name: str) -> Iterator[pa.RecordBatch]:
        collection = collection_named(name)
        assert collection is not None
        held = {column.name for column in collection.columns}
        columns = [*_COMMON, *(one for one in ("provenance", "label") if one in held)]
        return store.scan(name, columns=columns, batch_rows=_BATCH_ROWS)

    def _common(self, name: str, batch: pa.RecordBatch) -> None:
        first = self._key.count
        append_texts(self._key, batch.column("_key"))
        for column, numbers in zip(("source", "target"), self._number_ends(name, batch), strict=True):
            self._ends[column].append(numbers)
        self._type.append(self._types.encode(batch.column("type")))
        self._weight.append(floats(batch.column("weight")))
        if not self._bounds and any(batch.column(bound).null_count < batch.num_rows for bound in BOUNDS):
            for bound, open_end in BOUNDS.items():
                self._bounds[bound] = self._folder.column(f"edge.{bound}", np.int64)
                self._bounds[bound].append(np.full(first, open_end))
        for bound, written in self._bounds.items():
            written.append(integers(batch.column(bound), int(BOUNDS[bound])))

    def _number_ends(self, name: str, batch: pa.RecordBatch) -> list[NDArray[np.int64]]:
        """The numbers of the tails and of the heads; all are sought at once, so that node ids are hashed once."""
        ends = ("_from", "_to")
        sought = pa.concat_arrays([batch.column(end).cast(pa.large_string()) for end in ends])
        found = np.split(integers(pc.index_in(sought, value_set=self._nodes.ids), NOWHERE), 2)
        for end, numbers in zip(ends, found, strict=True):
            if (numbers == NOWHERE).any():
                row = int(np.argmax(numbers == NOWHERE))
                raise SnapshotError(
                    f"{name}/{batch.column('_key')[row].as_py()}: {end} is {batch.column(end)[row].as_py()}, which is "
                    "not stored; delete the edge or write the node, nothing was published"
                )
        return found

    def _provenance(self, batch: pa.RecordBatch) -> None:
        """Where edges were read, and in which words; empty for collections that say neither."""
        nothing = pa.nulls(batch.num_rows, pa.string())
        append_texts(self._label, batch.column("label") if "label" in batch.schema.names else nothing)
        if "provenance" not in batch.schema.names:
            for column in self._places:
                column.append(np.full(batch.num_rows, NOWHERE, np.int64))
            return
        read = batch.column("provenance")
        document, span = pc.struct_field(read, "doc"), pc.struct_field(read, "span")
        for column, values in zip(self._places, (self._documents.find(document), *spans(span)), strict=True):
            column.append(values)

    def _write_adjacency(self) -> None:
        source, target = self._folder["edge.source"], self._folder["edge.target"]
        types, weights = self._folder["edge.type"], adjacency.effective(self._folder["edge.weight"])
        n_nodes = len(self._nodes.ids)
        adjacency.write(self._folder, "out", adjacency.build(source, target, types, weights, n_nodes))
        adjacency.write(self._folder, "into", adjacency.build(target, source, types, weights, n_nodes))


# Bridges: paths between topics as numbers and handles, found by either of their topics.


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


# The learned ranker as a part of a snapshot: its numbers, and the state of every node of this very graph.


def graph_of(view: GraphView, model: str) -> Graph:
    """Every node of a view with what the network sees of it, and all edges both ways."""
    adjacency = view.adjacency()
    if adjacency is None:
        raise BadModel("the view keeps no adjacency in memory")
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


def with_ranker(view: GraphView, model: RankerModel) -> GraphView:
    """The view as it would be with this ranker published in it; nothing is written."""
    return cast(GraphView, _WithRanker(view, model))


def write_ranker(folder: Folder, view: GraphView, model: RankerModel) -> None:
    """Add the arrays of a ranker to a snapshot that is being written; `view` is what was written of it."""
    graph = graph_of(view, str(model.signature["model"]))
    width = model.arrays["first.own"].shape[0]
    if graph.features.shape[1] != width:
        raise BadModel(
            f"it was fitted to vectors of {model.signature['model']}, of which this graph has none of that length"
        )
    signature, numbers = pack(model)
    folder.whole(RANKER[0], np.frombuffer(signature, np.uint8))
    folder.whole(RANKER[1], numbers)
    folder.whole(RANKER[2], node_states(model, graph.features, graph.starts, graph.targets))


class _WithRanker:
    """Another view, with a ranker of its own."""

    def __init__(self, view: GraphView, model: RankerModel) -> None:
        graph = graph_of(view, str(model.signature["model"]))
        signature, numbers = pack(model)
        states = node_states(model, graph.features, graph.starts, graph.targets)
        self._view, self._fitted = view, RankerState(np.frombuffer(signature, np.uint8), numbers, states)
        self.info = replace(view.info, parts={**view.info.parts, "ranker": "unpublished"})

    def fitted(self) -> RankerState:
        """See `GraphView.fitted`."""
        return self._fitted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)
