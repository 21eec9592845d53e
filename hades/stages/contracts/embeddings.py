"""The frames of the contract `embeddings`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.stages.contracts.columns import Flags, Floats, Frames, column, flags, ids, per_row, wholes, with_columns
from hades.stages.contracts.source import Source

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


def vector_frames(source: Source) -> Frames:
    """One row a chunk or entity: which model made its vector, its dimension and its length.

    Which model and dimension are common is known from the new rows and one part of each collection that held, while all
    of these agree; otherwise every row is read.
    """
    vectors, left = _measure_all(source)
    if left and not _is_one_kind(vectors):
        vectors, left = _measure_all(Source(source.store))
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
    entities, unread = source.read_new("entities", "vector_of")
    return Frames({"vectors": vectors, "entities": entities}, left_out={"vectors": left, "entities": unread})


def _measure_all(source: Source) -> tuple[pa.Table, int]:
    """The rows of new parts and one part beside of each collection, and how many rows the others have."""
    parts, left = [], 0
    for collection in _EMBEDDED:
        measured, unread = _measure(source, collection)
        parts.append(measured)
        left += unread
    return pa.concat_tables(parts).combine_chunks(), left


def _is_one_kind(vectors: pa.Table) -> bool:
    """Whether every row has a vector, all of one model and one dimension."""
    seen = [pc.unique(column(vectors, name)) for name in ("embedding_model", "dimension")]
    return all(len(values) == 1 and values.null_count == 0 for values in seen)


def _measure(source: Source, collection: str) -> tuple[pa.Table, int]:
    """Each part is measured and let go: only two numbers a vector stay."""
    known = source.known.get(collection, frozenset())
    held = {part.mark for part in source.store.scan_marked(collection, columns=())} & known if known else set()
    passed = known - set(sorted(held)[:1])
    batches, left = [], 0
    for part in source.store.scan_marked(collection, columns=["_key", "embedding", "embedding_model"], known=passed):
        if part.batch is None:
            left += part.rows
            continue
        lists = part.batch.column("embedding")
        lengths, finite = _lengths(lists)
        batches.append(
            pa.record_batch(
                [
                    ids(collection, part.batch.column("_key")),
                    part.batch.column("embedding_model"),
                    pc.cast(pc.list_value_length(lists), pa.int64()),
                    pa.array(lengths, mask=~(flags(pc.is_valid(lists)) & finite)),
                    pa.array(finite),
                ],
                schema=_SCHEMA,
            )
        )
    return pa.Table.from_batches(batches, schema=_SCHEMA), left


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
