"""Documents into rows of chunks, in portions; with worker processes where there is much to cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest import chunks
from hades.ingest.manifest import as_table
from hades.ingest.nodes import sections_of
from hades.ingest.workers.arrow_bytes import from_bytes, to_bytes
from hades.ingest.workers.worker_pool import WorkerPool
from hades.ports.text import Tokenizer

DOCUMENT_COLUMNS = ("_key", "title", "text", "facts", "created")
PORTION_BYTES = 1 << 20
SMALL_BYTES = 6 << 20  # a child takes a second to start and to load a vocabulary: less than this is cut here


def cut_documents(
    documents: Iterable[pa.Table], tokenizer: Tokenizer, pool: WorkerPool
) -> Iterator[tuple[list[str], pa.Table | None]]:
    """Keys of some documents and their chunks, in the order given; the same whatever the number of workers."""
    sent: deque[list[str]] = deque()

    def send() -> Iterator[tuple[int, tuple[object, ...]]]:
        for table in documents:
            for size, portion in _portions(table):
                sent.append(portion.column("_key").to_pylist())
                yield size, (to_bytes(portion), tokenizer)

    for cut in pool.map_large(cut_bytes, send(), SMALL_BYTES):
        yield sent.popleft(), from_bytes(cut) if cut else None


def cut_rows(documents: pa.Table, tokenizer: Tokenizer) -> pa.Table | None:
    """The chunks of documents; None where their texts are blank."""
    rows = chunks.chunk_rows([_chunk_text(row) for row in documents.to_pylist()], tokenizer)
    return as_table("doc_chunks", rows) if rows else None


def cut_bytes(documents: bytes, tokenizer: Tokenizer) -> bytes:
    """`cut_rows` as a worker process calls it; nothing where there are no chunks."""
    table = cut_rows(from_bytes(documents), tokenizer)
    return to_bytes(table) if table is not None else b""


def _portions(documents: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Runs of documents of about `PORTION_BYTES`, with their size."""
    sizes = pc.add(pc.binary_length(documents.column("text")), pc.binary_length(documents.column("facts")))
    begin, used = 0, 0
    for row, size in enumerate(sizes.to_pylist()):
        if used and used + size > PORTION_BYTES:
            yield used, documents.slice(begin, row - begin)
            begin, used = row, 0
        used += size
    if begin < documents.num_rows:
        yield used, documents.slice(begin)


def _chunk_text(row: dict[str, Any]) -> chunks.ChunkedText:
    facts = orjson.loads(row["facts"])
    path = facts.get("code", {}).get("path", "")
    sections = sections_of(facts, len(row["text"]))
    return chunks.ChunkedText(row["_key"], row["title"], row["text"], sections, row["created"], path)
