"""Documents into rows of chunks, in portions; with worker processes where there is much to cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest import chunks
from hades.ingest.arrow_bytes import from_bytes, to_bytes
from hades.ingest.manifest import as_table
from hades.ingest.nodes import sections_of
from hades.ingest.worker_pool import WorkerPool
from hades.ports.text import Tokenizer

DOCUMENT_COLUMNS = ("title", "text", "facts", "created")
PORTION_BYTES = 1 << 20
SMALL_BYTES = 6 << 20  # a child takes a second to start and to load a vocabulary: less than this is cut here


def cut_documents(documents: pa.Table, tokenizer: Tokenizer, pool: WorkerPool) -> list[pa.Table]:
    """The chunks of documents in their order, as tables with rows; the same whatever the number of workers."""
    size = pc.add(pc.binary_length(documents.column("text")), pc.binary_length(documents.column("facts")))
    sizes = size.to_numpy().astype(np.int64)
    if sizes.sum() < SMALL_BYTES or pool.workers == 1:
        cut: Iterator[pa.Table | None] = (cut_rows(documents.slice(*one), tokenizer) for one in _portions(sizes))
    else:
        work = ((to_bytes(documents.slice(*one)), tokenizer) for one in _portions(sizes))
        cut = (from_bytes(one) if one else None for one in pool.map(cut_bytes, work))
    return [table for table in cut if table is not None]


def cut_rows(documents: pa.Table, tokenizer: Tokenizer) -> pa.Table | None:
    """The chunks of documents; None where their texts are blank."""
    rows = chunks.chunk_rows([_chunk_text(row) for row in documents.to_pylist()], tokenizer)
    return as_table("doc_chunks", rows) if rows else None


def cut_bytes(documents: bytes, tokenizer: Tokenizer) -> bytes:
    """`cut_rows` as a worker process calls it; nothing where there are no chunks."""
    table = cut_rows(from_bytes(documents), tokenizer)
    return to_bytes(table) if table is not None else b""


def _portions(sizes: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, int]]:
    """Offset and length of runs of documents of about `PORTION_BYTES`."""
    begin, used = 0, 0
    for row, size in enumerate(sizes.tolist()):
        if used and used + size > PORTION_BYTES:
            yield begin, row - begin
            begin, used = row, 0
        used += size
    if begin < len(sizes):
        yield begin, len(sizes) - begin


def _chunk_text(row: dict[str, Any]) -> chunks.ChunkedText:
    facts = orjson.loads(row["facts"])
    path = facts.get("code", {}).get("path", "")
    sections = sections_of(facts, len(row["text"]))
    return chunks.ChunkedText(row["_key"], row["title"], row["text"], sections, row["created"], path)
