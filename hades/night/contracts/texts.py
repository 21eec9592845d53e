"""The contracts `nodes`, `chunks` and `embeddings`: what was read, the pieces it was cut into, and
their vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest import manifest
from hades.night.columns import (
    Frames,
    at,
    column,
    count_characters,
    flags,
    ids,
    per_row,
    read,
    sha256_matches,
    spans_inside,
    texts_at,
    with_columns,
)
from hades.night.contracts.rule import (
    between,
    contract,
    equal,
    give,
    has_text,
    one_of,
    unique,
)
from hades.ports.store import RowStore
from hades.snapshot.files import integers, places_of, spans
from models.arrays import Flags, Floats, Longs
from schemas.catalogue import columns_schema
from schemas.nodes import CODE_KINDS, ChunkKind, EntityType
from schemas.sources import SourceKind

NODES_CONTRACT = contract(
    "nodes",
    "what was read: documents, entities, papers, files and functions",
    "run `hades repair nodes`",
    {
        "documents": [
            (
                "document_has_origin",
                "a document names the id it came in with",
                has_text("origin"),
            ),
            (
                "document_source_known",
                "a document comes from a known kind of source",
                one_of("source", SourceKind),
            ),
            ("document_sha256_of_text", "a document's sha256 is that of its text", "sha256"),
        ],
        "entities": [
            ("entity_has_name", "an entity has a name", has_text("name")),
            (
                "entity_type_known",
                "an entity is a paper, concept, method, person or code symbol",
                one_of("type", EntityType),
            ),
            ("entity_name_lower", "name_lower is the name in lower case", "name", "name_lower"),
            ("entity_layer_zero", "an entity stands in layer 0", between("layer", 0, 0)),
        ],
        "papers_raw": [
            ("paper_id_unique", "an arXiv id stands once", unique("id")),
            ("paper_document_exists", "a paper's document is stored", "document"),
        ],
        "files": [
            ("file_document_exists", "a file's document is stored", "document"),
            (
                "file_sha256_of_document",
                "a file's sha256 is that of its document",
                "path",
                "sha256",
            ),
        ],
        "funcs": [
            ("func_document_exists", "a function's document is stored", "document"),
            (
                "func_span_inside_document",
                "a function's span lies inside its document",
                "document",
                "span",
                "document_length",
            ),
        ],
        "written_rows": [
            (
                "written_rows_stored",
                "every row that ingestion wrote of a document is stored",
                equal("stored", "written"),
                "collection",
                "stored",
                "written",
            ),
        ],
    },
)


def node_frames(store: RowStore) -> Frames:
    """Documents, entities, papers, files and functions with what rules ask of them."""
    documents, lengths = _documents(store)
    stored = ids("documents", column(documents, "_key"))
    entities = read(
        store,
        "entities",
        "name",
        "name_lower",
        "type",
        "layer",
    )
    # Arrow lowers a few letters differently.
    names = (name and name.lower() for name in entities["name"].to_pylist())
    is_lower = pc.equal(
        entities["name_lower"].combine_chunks(),
        pa.array(names, pa.string()),
    )
    papers = read(store, "papers_raw", "document", "id")
    files = read(store, "files", "document", "path", "sha256")
    funcs = read(store, "funcs", "document", "span")
    of_paper, of_file, of_func = (
        places_of(column(table, "document"), stored) for table in (papers, files, funcs)
    )
    digests = texts_at(column(documents, "sha256"), of_file)
    is_same = pc.equal(column(files, "sha256"), digests)
    func_lengths = at(lengths, of_func, -1)
    is_inside = spans_inside(column(funcs, "span"), func_lengths)
    counts = manifest.count_rows_of_documents(store)
    written = (count for count in counts if count.collection != "doc_chunks")
    return Frames(
        {
            "documents": documents,
            "entities": with_columns(entities, entity_name_lower=flags(is_lower)),
            "papers_raw": with_columns(papers, paper_document_exists=of_paper >= 0),
            "files": with_columns(
                files,
                file_document_exists=of_file >= 0,
                file_sha256_of_document=flags(is_same, missing=True),
            ),
            "funcs": with_columns(
                funcs,
                func_document_exists=of_func >= 0,
                document_length=func_lengths,
                func_span_inside_document=is_inside | (func_lengths < 0),
            ),
            "written_rows": written_rows(written),
        }
    )


_WRITTEN = pa.schema(
    {
        "_key": pa.string(),
        "collection": pa.string(),
        "stored": pa.int64(),
        "written": pa.int64(),
    }
)


def written_rows(counts: Iterable[manifest.RowCount]) -> pa.Table:
    """How many rows were written and are stored, named by their document, or by their collection
    where they follow from all documents.
    """
    rows = []
    for count in counts:
        document = f"{count.entry.origin} ({count.entry.key})"
        name = document if count.entry.origin else count.collection
        values = (name, count.collection, count.stored, count.written)
        rows.append(dict(zip(_WRITTEN.names, values, strict=True)))

    return pa.Table.from_pylist(rows, _WRITTEN)


def _documents(store: RowStore) -> tuple[pa.Table, Longs]:
    """Documents and how many characters each has; hashed part by part, as their texts may not fit
    beside each other.
    """
    schema = columns_schema("documents", ("_key", "origin", "source", "sha256"))
    parts = []
    sound = [np.zeros(0, np.bool_)]
    lengths = [np.zeros(0, np.int64)]

    for batch in store.scan("documents", columns=[*schema.names, "text"]):
        texts = batch.column("text")
        sound.append(sha256_matches(texts.to_pylist(), batch.column("sha256").to_pylist()))
        lengths.append(count_characters(texts))
        parts.append(batch.select(schema.names))

    table = pa.Table.from_batches(parts, schema=schema).combine_chunks()
    checked = with_columns(
        table,
        document_sha256_of_text=np.concatenate(sound),
    )
    return checked, np.concatenate(lengths)


MAX_CHUNK_TOKENS = 256  # what the default embedding model reads of one text
CHUNKS_CONTRACT = contract(
    "chunks",
    "pieces of documents with their exact spans",
    "run `hades repair chunks`",
    {
        "doc_chunks": [
            ("document_exists", "a chunk's document is stored", "document"),
            (
                "span_inside_document",
                "a chunk's span is [start, end) inside its document",
                "document",
                "span",
                "document_length",
            ),
            (
                "text_is_the_span",
                "a chunk's text is what its span cuts out of the document",
                "document",
                "span",
            ),
            ("text_not_blank", "a chunk has text", has_text("text")),
            (
                "sha256_of_embedded_text",
                "a chunk's sha256 is that of its text under title and headings",
                "sha256",
            ),
            (
                "token_count_in_range",
                f"a chunk of prose has at most {MAX_CHUNK_TOKENS} tokens; a unit of code ends with "
                "its function",
                "kind",
                "token_count",
            ),
            (
                "position_unique",
                "no two chunks stand at one position of a document",
                unique("document", "chunk_index"),
            ),
            (
                "kind_known",
                "a chunk is of a known kind",
                one_of("kind", ChunkKind),
            ),
        ],
        "written_rows": [
            (
                "document_covered",
                "a document has as many chunks as it was cut into",
                equal("stored", "written"),
                "stored",
                "written",
            ),
        ],
    },
)
_COLUMNS = (
    "document",
    "text",
    "span",
    "chunk_index",
    "kind",
    "headings",
    "title",
    "token_count",
    "sha256",
)


def chunk_frames(store: RowStore) -> Frames:
    """Chunks with what their spans say beside what they say."""
    documents = read(store, "documents", "text")
    chunks = read(store, "doc_chunks", *_COLUMNS)
    places = places_of(
        column(chunks, "document"),
        ids("documents", column(documents, "_key")),
    )
    lengths = at(
        count_characters(column(documents, "text")),
        places,
        -1,
    )
    exists = lengths >= 0
    inside = spans_inside(column(chunks, "span"), lengths)
    columns = (chunks.column(name).to_pylist() for name in ("title", "headings", "text"))
    embedded = list(map(_embed_text, *columns))
    tokens = integers(column(chunks, "token_count"), -1)
    code_kinds = pa.array(map(str, CODE_KINDS))
    is_code = flags(pc.is_in(column(chunks, "kind"), value_set=code_kinds))
    frame = with_columns(
        chunks.drop_columns(["title", "headings"]),
        document_length=lengths,
        document_exists=exists,
        span_inside_document=inside | ~exists,
        text_is_the_span=_cuts_match(column(documents, "text"), places, chunks) | ~inside,
        token_count_in_range=(tokens >= 0) & ((tokens <= MAX_CHUNK_TOKENS) | is_code),
        sha256_of_embedded_text=sha256_matches(embedded, chunks.column("sha256").to_pylist()),
    )
    counts = manifest.count_rows_of_documents(store)
    covered = written_rows(count for count in counts if count.collection == "doc_chunks")
    return Frames(
        {
            "doc_chunks": frame,
            "written_rows": covered,
        }
    )


def _cuts_match(
    documents: pa.Array,
    places: Longs,
    chunks: pa.Table,
) -> Flags:
    """Which chunks are what their span cuts out of the document at their place; -1: they have none.

    A document becomes one Python string at a time: spans count characters, which bytes cannot be
    cut by.
    """
    starts, ends = (bounds.tolist() for bounds in spans(column(chunks, "span")))
    texts = chunks.column("text").to_pylist()
    matches = np.zeros(len(places), dtype=np.bool_)
    document = -1
    whole = ""

    for row in np.argsort(places, kind="stable").tolist():
        if places[row] < 0:
            continue

        if places[row] != document:
            document = int(places[row])
            whole = documents[document].as_py()

        matches[row] = whole[starts[row] : ends[row]] == texts[row]

    return matches


def _embed_text(
    title: str,
    headings: Sequence[str],
    text: str,
) -> str:
    """What a chunk's hash and vector are of: its text under title and headings that it does not
    begin with.

    Written again beside the one of ingestion, so that the contract fails when ingestion changes it.
    """
    above = dict.fromkeys(line for line in (title, *headings) if line and not text.startswith(line))
    return "\n".join([*above, text])


LENGTH_TOLERANCE = 1e-3
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
