"""Edges: a handle each, by collection and then key; ends as node numbers, and where each was read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.errors import SnapshotError
from hades.ports.graph import ALWAYS, EDGES, FOREVER
from hades.ports.store import RowStore
from hades.snapshot import csr
from hades.snapshot.arrays import Column, Folder
from hades.snapshot.columns import NOWHERE, Coder, append_texts, floats, integers, spans
from hades.snapshot.heaps import HeapWriter
from hades.snapshot.publish_inputs import edge_types
from hades.snapshot.rows.document_rows import DocumentRows
from hades.snapshot.rows.node_rows import NodeSpace, Progress
from schemas.catalogue import collection_named

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
        types, weights = self._folder["edge.type"], csr.effective(self._folder["edge.weight"])
        n_nodes = len(self._nodes.ids)
        csr.write(self._folder, "out", csr.build(source, target, types, weights, n_nodes))
        csr.write(self._folder, "into", csr.build(target, source, types, weights, n_nodes))
