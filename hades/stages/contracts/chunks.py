"""The frame of the contract `chunks`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.stages.contracts.columns import Frames, column, spans_inside, with_columns
from hades.stages.contracts.source import Source
from hades.stages.contracts.texts import Documents, count_characters, cuts_match, embed_text, sha256_matches
from schemas.chunks import CODE_KINDS
from schemas.contracts.chunks import MAX_CHUNK_TOKENS
from schemas.contracts.evaluate import occurs_again

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
