"""The frames of the contract `embeddings`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ports.store import RowStore
from hades.stages.contracts.columns import (
    Flags,
    Floats,
    Frames,
    column,
    flags,
    ids,
    per_row,
    read,
    wholes,
    with_columns,
)

_EMBEDDED = ("doc_chunks", "entities")
_SCHEMA = pa.schema(
    [
        ("_key", pa.string()),
        ("embedding_model", pa.string()),
        ("dimension", pa.int64()),
        ("length", pa.float64()),
        ("is_finite", pa.bool_()),
    ]
)


def vector_frames(store: RowStore) -> Frames:
    """One row a chunk or entity: which model made its vector, its dimension and its length."""
    parts = [_measure(store, name) for name in _EMBEDDED]
    vectors = pa.concat_tables(parts).combine_chunks()
    if not vectors.num_rows or column(vectors, "dimension").null_count == vectors.num_rows:
        return Frames({}, absent="nothing has been embedded yet")
    named = pc.is_valid(column(vectors, "embedding_model"))
    has_vector = pc.is_valid(column(vectors, "dimension"))
    models = column(vectors, "embedding_model")
    vectors = with_columns(
        vectors,
        model_named=flags(named) | ~flags(has_vector),
        is_common_model=flags(pc.equal(models, _commonest(models)), missing=True),
        dimension_of_model=_dimension_fits(models, column(vectors, "dimension")),
    )
    return Frames({"vectors": vectors, "entities": read(store, "entities", "vector_of")})


def _measure(store: RowStore, collection: str) -> pa.Table:
    """Each batch is measured and let go: only two numbers a vector stay."""
    batches = []
    for batch in store.scan(collection, columns=["_key", "embedding", "embedding_model"]):
        lists = batch.column("embedding")
        lengths, finite = _lengths(lists)
        batches.append(
            pa.record_batch(
                [
                    ids(collection, batch.column("_key")),
                    batch.column("embedding_model"),
                    pc.cast(pc.list_value_length(lists), pa.int64()),
                    pa.array(lengths, mask=~(flags(pc.is_valid(lists)) & finite)),
                    pa.array(finite),
                ],
                schema=_SCHEMA,
            )
        )
    return pa.Table.from_batches(batches, schema=_SCHEMA)


def _lengths(lists: pa.Array) -> tuple[Floats, Flags]:
    """The Euclidean length of each vector, and whether all its numbers are finite; 0 and true for no vector."""
    values = pc.list_flatten(lists).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = per_row(lists, np.square(values), np.add, 0.0)
    finite = np.isfinite(sums)
    return np.sqrt(np.where(finite, sums, 0.0)).astype(np.float64), finite


def _commonest(models: pa.Array) -> str | None:
    counts = pc.value_counts(models.drop_null())
    ranked = sorted(
        zip(counts.field("counts").to_pylist(), counts.field("values").to_pylist(), strict=True),
        key=lambda one: (-one[0], one[1]),
    )
    return ranked[0][1] if ranked else None


def _dimension_fits(models: pa.Array, dimensions: pa.Array) -> Flags:
    """Whether a vector has the dimension its model's tag `id@version/dimension` names, else the commonest of it."""
    encoded = models.dictionary_encode()
    codes = wholes(encoded.indices, -1)
    held = wholes(dimensions, -1)
    fits = np.ones(len(models), dtype=np.bool_)
    for code, tag in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero((codes == code) & (held >= 0))
        tail = tag.rpartition("/")[2] if "/" in tag else ""
        wanted = int(tail) if tail.isdigit() else int(np.bincount(held[rows]).argmax()) if len(rows) else 0
        fits[rows] = held[rows] == wanted
    return fits
