"""The frame of the contract `chunks`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ports.store import RowStore
from hades.stages.contracts.columns import Frames, column, ids, read, spans_inside, with_columns
from hades.stages.contracts.texts import Documents, cuts_match, embed_text, sha256_matches
from schemas.chunks import CODE_KINDS
from schemas.contracts.chunks import MAX_CHUNK_TOKENS

_COLUMNS = ("document", "text", "span", "chunk_index", "kind", "headings", "title", "token_count", "sha256")


def chunk_frames(store: RowStore) -> Frames:
    """Chunks with what their spans say beside what they say."""
    documents = read(store, "documents", "text")
    documents = documents.append_column("_id", ids("documents", column(documents, "_key")))
    table = read(store, "doc_chunks", *_COLUMNS)
    known = _lengths(documents)
    identifiers = column(table, "document")
    lengths = known.lengths_of(identifiers)
    exists, inside = lengths >= 0, spans_inside(column(table, "span"), lengths)
    columns = (table.column(name).to_pylist() for name in ("title", "headings", "text"))
    embedded = [embed_text(*parts) for parts in zip(*columns, strict=True)]
    frame = with_columns(
        table.drop_columns(["title", "headings"]),
        document_length=lengths,
        document_exists=exists,
        span_inside_document=inside | ~exists,
        text_is_the_span=cuts_match(documents, table) | ~inside,
        token_count_in_range=_in_range(table),
        sha256_matches=sha256_matches(embedded, table.column("sha256").to_pylist()),
    )
    return Frames({"doc_chunks": frame})


def _in_range(table: pa.Table) -> NDArray[np.bool_]:
    """Whether each chunk is small enough; code is divided by its statements, not by tokens."""
    counts = pc.fill_null(column(table, "token_count"), -1).to_numpy(zero_copy_only=False)
    is_code = pc.is_in(column(table, "kind"), value_set=pa.array([str(kind) for kind in CODE_KINDS]))
    in_range: NDArray[np.bool_] = (counts >= 0) & ((counts <= MAX_CHUNK_TOKENS) | np.asarray(is_code))
    return in_range


def _lengths(documents: pa.Table) -> Documents:
    lengths = pc.utf8_length(column(documents, "text")).to_numpy(zero_copy_only=False).astype(np.int64)
    return Documents(column(documents, "_id"), lengths)
