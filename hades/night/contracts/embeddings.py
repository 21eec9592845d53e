"""The contract of vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.night.columns import (
    Frames,
    column,
    flags,
    ids,
    per_row,
    read,
    with_columns,
)
from hades.night.contracts.chunks import LENGTH_TOLERANCE
from hades.night.contracts.rule import (
    between,
    contract,
    give,
    one_of,
)
from hades.ports.store import RowStore
from hades.snapshot.files import integers
from models.arrays import Flags, Floats

EMBEDDINGS_CONTRACT = contract(
    "embeddings",
    "vectors of chunks and entities",
    "run `hades repair embeddings`",
    {
        "vectors": [
            ("vector_given", "every chunk and every entity has a vector", give("dimension")),
            ("model_named", "a vector names the model that made it", "embedding_model"),
            ("one_model", "all vectors were made by one model", "embedding_model"),
            (
                "dimension_of_model",
                "a vector has the dimension of its model",
                "embedding_model",
                "dimension",
            ),
            ("vector_finite", "a vector holds finite numbers only", "length"),
            (
                "unit_length",
                "a vector has length 1",
                between(
                    "length",
                    1 - LENGTH_TOLERANCE,
                    1 + LENGTH_TOLERANCE,
                ),
            ),
        ],
        "entities": [
            (
                "entity_vector_of_known",
                "an entity says whether its vector is of its name or of a document",
                one_of("vector_of", ["name", "document"]),
            ),
        ],
    },
)
_VECTORS = pa.schema(
    {
        "_key": pa.string(),
        "embedding_model": pa.string(),
        "dimension": pa.int64(),
        "length": pa.float64(),
        "vector_finite": pa.bool_(),
    }
)


def vector_frames(
    store: RowStore,
    collections: Sequence[str] = ("doc_chunks", "entities"),
) -> Frames:
    """One row a chunk or entity: which model made its vector, its dimension and its length."""
    batches = chain.from_iterable(_measure(store, collection) for collection in collections)
    vectors = pa.Table.from_batches(batches, schema=_VECTORS).combine_chunks()
    models = column(vectors, "embedding_model")
    dimensions = column(vectors, "dimension")

    if dimensions.null_count == vectors.num_rows:
        return Frames({}, ("nothing has been embedded yet",))

    counts = Counter(models.drop_null().to_pylist())
    common = min(counts, key=lambda model: (-counts[model], model), default=None)
    vectors = with_columns(
        vectors,
        model_named=flags(pc.is_valid(models)) | ~flags(pc.is_valid(dimensions)),
        one_model=flags(pc.equal(models, common), missing=True),
        dimension_of_model=_dimension_fits(models, dimensions),
    )
    frames = {"vectors": vectors}

    if "entities" in collections:
        frames["entities"] = read(store, "entities", "vector_of")

    return Frames(frames)


def _measure(store: RowStore, collection: str) -> Iterator[pa.RecordBatch]:
    """Each batch is measured and let go: only two numbers a vector stay."""
    for batch in store.scan(
        collection,
        columns=["_key", "embedding", "embedding_model"],
    ):
        lists = batch.column("embedding")
        lengths, finite = _lengths(lists)
        has_length = flags(pc.is_valid(lists)) & finite
        columns = [
            ids(collection, batch.column("_key")),
            batch.column("embedding_model"),
            pc.cast(pc.list_value_length(lists), pa.int64()),
            pa.array(lengths, mask=~has_length),
            pa.array(finite),
        ]
        yield pa.record_batch(columns, schema=_VECTORS)


def _lengths(lists: pa.Array) -> tuple[Floats, Flags]:
    """The Euclidean length of each vector, and whether all its numbers are finite; 0 and true for
    no vector.
    """
    values = pc.list_flatten(lists).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = per_row(lists, np.square(values), np.add, 0.0)

    finite = np.isfinite(sums)
    return np.sqrt(np.where(finite, sums, 0.0)).astype(np.float64), finite


def _dimension_fits(models: pa.Array, dimensions: pa.Array) -> Flags:
    """Whether a vector has the dimension its model's tag `id@version/dimension` names, else the
    commonest of it.
    """
    encoded = models.dictionary_encode()
    codes = integers(encoded.indices, -1)
    known = integers(dimensions, -1)
    fits = np.ones(len(models), dtype=np.bool_)

    for code, tag in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero((codes == code) & (known >= 0))
        if not len(rows):
            continue

        _, slash, tail = tag.rpartition("/")
        has_dimension = slash and tail.isdigit()
        expected = int(tail) if has_dimension else np.bincount(known[rows]).argmax()
        fits[rows] = known[rows] == expected

    return fits
