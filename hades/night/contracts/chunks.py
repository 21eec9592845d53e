"""The contract of chunks."""

from __future__ import annotations

from collections.abc import Sequence

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
    with_columns,
)
from hades.night.contracts.nodes import MAX_CHUNK_TOKENS, written_rows
from hades.night.contracts.rule import (
    contract,
    equal,
    has_text,
    one_of,
    unique,
)
from hades.ports.store import RowStore
from hades.snapshot.files import integers, places_of, spans
from models.arrays import Flags, Longs
from schemas.nodes import CODE_KINDS, ChunkKind

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
