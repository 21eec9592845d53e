"""The contract of nodes."""

from __future__ import annotations

from collections.abc import Iterable

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
    has_text,
    one_of,
    unique,
)
from hades.ports.store import RowStore
from hades.snapshot.files import places_of
from models.arrays import Longs
from schemas.catalogue import columns_schema
from schemas.nodes import EntityType
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
