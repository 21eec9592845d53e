"""Contract chunks, embeddings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.build.contracts.columns import (
    Documents,
    Flags,
    Floats,
    Frames,
    Source,
    column,
    count_characters,
    cuts_match,
    embed_text,
    flags,
    ids,
    per_row,
    sha256_matches,
    spans_inside,
    wholes,
    with_columns,
)
from hades.build.contracts.rule import Contract, Rule, between, give, holds, matches, occurs_again, one_of, unique
from schemas.nodes import CODE_KINDS, ChunkKind

# Chunks: each is an exact piece of its document, prose small enough to be embedded whole.


MAX_CHUNK_TOKENS = 256  # what the default embedding model reads of one text
_CHUNK = "run `hades repair chunks`"
CHUNKS_CONTRACT = Contract(
    "chunks",
    "pieces of documents with their exact spans",
    (
        Rule(
            "chunks.document_exists",
            "doc_chunks",
            "a chunk's document is stored",
            holds("document_exists"),
            ("document",),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.span_inside_document",
            "doc_chunks",
            "a chunk's span is [start, end) inside its document",
            holds("span_inside_document"),
            ("document", "span", "document_length"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.text_is_the_span",
            "doc_chunks",
            "a chunk's text is what its span cuts out of the document",
            holds("text_is_the_span"),
            ("document", "span"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.text_not_blank",
            "doc_chunks",
            "a chunk has text",
            matches("text", r"\S"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.sha256_of_embedded_text",
            "doc_chunks",
            "a chunk's sha256 is that of its text under title and headings",
            holds("sha256_matches"),
            ("sha256",),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.token_count_in_range",
            "doc_chunks",
            f"a chunk of prose has at most {MAX_CHUNK_TOKENS} tokens; a unit of code ends with its function",
            holds("token_count_in_range"),
            ("kind", "token_count"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.position_unique",
            "doc_chunks",
            "no two chunks stand at one position of a document",
            unique("document", "chunk_index"),
            repair=_CHUNK,
        ),
        Rule(
            "chunks.kind_known",
            "doc_chunks",
            "a chunk is of a known kind",
            one_of("kind", [str(kind) for kind in ChunkKind]),
            repair=_CHUNK,
        ),
    ),
)
# The frame of the contract `chunks`.
_COLUMNS = ("document", "text", "span", "chunk_index", "kind", "headings", "title", "token_count", "sha256")


def chunk_frames(source: Source) -> Frames:
    """Chunks with what their spans say beside what they say."""
    documents = Documents(source)
    keyed = source.read_keys("doc_chunks", ("document", "chunk_index"), _COLUMNS)
    rows = documents.rows_of(column(keyed.table, "document"))
    again = occurs_again([column(keyed.table, name) for name in ("document", "chunk_index")])
    chosen = keyed.is_new | (rows < 0) | documents.are_new(rows) | again
    table = keyed.take(chosen, *_COLUMNS)
    texts, places = documents.take(rows[chosen], "text")
    lengths = np.append(count_characters(column(texts, "text")), -1)[places]
    exists, inside = lengths >= 0, spans_inside(column(table, "span"), lengths)
    columns = (table.column(name).to_pylist() for name in ("title", "headings", "text"))
    embedded = [embed_text(*parts) for parts in zip(*columns, strict=True)]
    frame = with_columns(
        table.drop_columns(["title", "headings"]),
        document_length=lengths,
        document_exists=exists,
        span_inside_document=inside | ~exists,
        text_is_the_span=cuts_match(texts, places, table) | ~inside,
        token_count_in_range=_in_range(table),
        sha256_matches=sha256_matches(embedded, table.column("sha256").to_pylist()),
    )
    return Frames({"doc_chunks": frame}, left_out={"doc_chunks": len(chosen) - table.num_rows})


def _in_range(table: pa.Table) -> NDArray[np.bool_]:
    """Whether each chunk is small enough; code is divided by its statements, not by tokens."""
    counts = pc.fill_null(column(table, "token_count"), -1).to_numpy(zero_copy_only=False)
    is_code = pc.is_in(column(table, "kind"), value_set=pa.array([str(kind) for kind in CODE_KINDS]))
    in_range: NDArray[np.bool_] = (counts >= 0) & ((counts <= MAX_CHUNK_TOKENS) | np.asarray(is_code))
    return in_range


# Embeddings: every chunk and entity has a finite vector of unit length, all by one model.


LENGTH_TOLERANCE = 1e-3
_EMBED = "run `hades repair embeddings`"
EMBEDDINGS_CONTRACT = Contract(
    "embeddings",
    "vectors of chunks and entities",
    (
        Rule(
            "embeddings.vector_given",
            "vectors",
            "every chunk and every entity has a vector",
            give("dimension"),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.model_named",
            "vectors",
            "a vector names the model that made it",
            holds("model_named"),
            ("embedding_model",),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.one_model",
            "vectors",
            "all vectors were made by one model",
            holds("is_common_model"),
            ("embedding_model",),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.dimension_of_model",
            "vectors",
            "a vector has the dimension of its model",
            holds("dimension_of_model"),
            ("embedding_model", "dimension"),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.vector_finite",
            "vectors",
            "a vector holds finite numbers only",
            holds("is_finite"),
            ("length",),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.unit_length",
            "vectors",
            "a vector has length 1",
            between("length", 1 - LENGTH_TOLERANCE, 1 + LENGTH_TOLERANCE),
            repair=_EMBED,
        ),
        Rule(
            "embeddings.entity_vector_of_known",
            "entities",
            "an entity says whether its vector is of its name or of a document",
            one_of("vector_of", ["name", "document"]),
            repair=_EMBED,
        ),
    ),
)
# The frames of the contract `embeddings`.
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
