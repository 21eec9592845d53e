"""Vectors as arrays, and what a snapshot is made under."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades import build_state
from hades.errors import SnapshotError
from hades.ports.graph import EDGES, KINDS
from hades.ports.store import RowStore
from hades.snapshot import vectors
from hades.snapshot.files import Column, Folder
from schemas.catalogue import collection_named

# Vectors: one matrix for each collection and model, so that vectors of different models never meet.


class VectorWriter:
    """Writes, for model number m of a collection, `vector.<collection>.<m>.` and:

    `value` (n, dimension) float32, `norm` (n,) float32, `row` (n,) which row of the collection each belongs to, and
    `place` the other way round, -1 for rows without a vector of that model. From `APPROXIMATE_FROM` vectors on also
    `index`, the bytes of a faiss index.
    """

    def __init__(self, folder: Folder, collection: str) -> None:
        self._folder, self._collection = folder, collection
        self._models: dict[str, tuple[Column, Column, Column]] = {}
        self._dimensions: dict[str, int] = {}

    def append(self, first_row: int, batch: pa.RecordBatch, field: str) -> None:
        """Take the vectors of a batch; rows without one are passed over."""
        held_vectors, tags = batch.column(field), batch.column("embedding_model")
        usable = pc.and_(held_vectors.is_valid(), tags.is_valid())
        for tag in pc.unique(tags.filter(usable)).to_pylist():
            chosen = pc.fill_null(pc.and_(usable, pc.equal(tags, tag)), False)
            rows = np.flatnonzero(chosen.to_numpy(zero_copy_only=False))
            held = held_vectors.filter(chosen)
            lengths = pc.list_value_length(held).to_numpy(zero_copy_only=False)
            dimension = self._dimensions.setdefault(tag, int(lengths[0]))
            if (lengths != dimension).any():
                key = batch.column("_key")[int(rows[np.argmax(lengths != dimension)])].as_py()
                raise SnapshotError(
                    f"{self._collection}/{key}: its vector of {tag} has not the dimension {dimension} of the others; "
                    "embed the collection again, nothing was published"
                )
            values = held.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension)
            self._write(tag, values, first_row + rows)

    def write(self, n_rows: int) -> tuple[str, ...]:
        """Finish; the tags of the models, by number."""
        for number in range(len(self._models)):
            prefix = self._prefix(number)
            self._folder.finish(*(f"{prefix}.{part}" for part in ("value", "norm", "row")))
            rows = self._folder[f"{prefix}.row"]
            place = np.full(n_rows, -1, np.int32)
            place[rows] = np.arange(len(rows), dtype=np.int32)
            self._folder.whole(f"{prefix}.place", place)
            if len(rows) >= vectors.APPROXIMATE_FROM:
                self._folder.whole(f"{prefix}.index", vectors.fit_index(self._folder[f"{prefix}.value"]))
        return tuple(self._models)

    def _write(self, tag: str, values: NDArray[np.float32], rows: NDArray[np.int64]) -> None:
        if tag not in self._models:
            prefix = self._prefix(len(self._models))
            self._models[tag] = (
                self._folder.column(f"{prefix}.value", np.float32, (values.shape[1],)),
                self._folder.column(f"{prefix}.norm", np.float32),
                self._folder.column(f"{prefix}.row", np.int32),
            )
        value, norm, row = self._models[tag]
        value.append(values)
        norm.append(np.linalg.norm(values.astype(np.float64), axis=1))
        row.append(rows)

    def _prefix(self, number: int) -> str:
        return f"vector.{self._collection}.{number}"


# What a snapshot is made under, beside the rows: declarations of the catalogue and generations of what was built.
# Reading it tells whether a release has work; only one that has loads what writes a snapshot.


RANKER = "ranker"
PARTS = (build_state.HIERARCHY, build_state.WEIGHTS, build_state.BRIDGES, RANKER)


def parts_of(store: RowStore) -> dict[str, str]:
    """The generation of each thing that was built into the store, empty where it never was."""
    done = {stage: build_state.complete(store, stage) for stage in PARTS}
    return {stage: "" if one is None else one.generation for stage, one in done.items()}


def catalogue_hash() -> str:
    """The hash of the declarations a snapshot was made under: columns of what it reads, and its edge types."""
    digest = hashlib.sha256(json.dumps(edge_types()).encode())
    for name in ("documents", *KINDS, *EDGES):
        collection = collection_named(name)
        assert collection is not None
        columns = [[column.name, str(column.type), column.nullable] for column in collection.columns]
        digest.update(json.dumps([collection.name, columns, list(collection.text_fields)]).encode())
    return digest.hexdigest()


def edge_types() -> tuple[str, ...]:
    """Every type an edge of the graph can have, in catalogue order; its place is its code in every view."""
    found: dict[str, None] = {}
    for name in EDGES:
        collection = collection_named(name)
        assert collection is not None
        choices = next(column.choices for column in collection.columns if column.name == "type")
        found.update(dict.fromkeys(choices))
    return tuple(found)
