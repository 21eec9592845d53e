"""The four phases of ingestion, each independent, idempotent and resumable: nodes, chunks, embeddings, edges.

nodes needs the source; the others work from the store, so any of them can be run again alone. Each batch of documents
is one transaction: a run that is stopped leaves whole documents, and the next run goes on from there."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from hades.ingest import chunks, manifest
from hades.ingest.chunks import DOCUMENT_COLUMNS, cut_documents, embed_chunks
from hades.ingest.cleanup import redact_logs
from hades.ingest.edges import derive_edges
from hades.ingest.entities.known_names import EntityRules
from hades.ingest.forget import remove_documents
from hades.ingest.manifest import (
    MAX_LISTED,
    OWNED_BY_DOCUMENT,
    Entry,
    IngestReport,
    as_table,
    keys_of_documents,
    remove_nodes,
)
from hades.ingest.nodes import NodeBatch, quarantine_row, read_batches
from hades.ingest.sources.material import HistoryRules, RecordSource, RejectedInput, Source
from hades.ingest.unchanged import KnownRecords, RecordDocument, digest_documents, is_derived
from hades.ingest.workers import WorkerPool, WriteAhead, collect_seldom, give_back_memory
from hades.ingest.write_changes import find_different
from hades.ports.services import Embedder, ProgressReport, Tokenizer, silent
from hades.ports.store import GraphStore, RowStore, Term
from schemas.catalogue import NAMES

BATCH_BYTES = 96 << 20  # of rows in one transaction
READ_DOCUMENTS = 2_048
_NODE_COLLECTIONS = ("documents", *OWNED_BY_DOCUMENT[1:])
_VECTOR = ("embedding", "embedding_model")


class Phase(StrEnum):
    """In the order they run."""

    NODES = "nodes"
    CHUNKS = "chunks"
    EMBEDDINGS = "embeddings"
    EDGES = "edges"


@dataclass(frozen=True)
class IngestContext:
    """What ingestion works with."""

    store: GraphStore
    embedder: Embedder
    tokenizer: Tokenizer
    scratch: Path
    rules: EntityRules = field(default_factory=EntityRules)
    progress: ProgressReport = silent
    history: HistoryRules = field(default_factory=HistoryRules)
    workers: int = 0  # processes; 0: one a core, 1: no child


def ingest(
    context: IngestContext, source: Source, phases: Sequence[Phase] = tuple(Phase), *, domain: str = ""
) -> IngestReport:
    """Run the phases asked for, in order, over a source; what was done. A `domain` is given to every document."""
    report = IngestReport(str(source.kind))
    with WorkerPool(context.workers) as pool, collect_seldom():
        work = {
            Phase.NODES: lambda: read_nodes(context, source, report, pool, domain),
            Phase.CHUNKS: lambda: cut_chunks(context, report, pool),
            Phase.EMBEDDINGS: lambda: _embed(context, report),
            Phase.EDGES: lambda: _derive(context, report, pool),
        }
        for phase in Phase:
            if phase in phases:
                with _time(report, phase):
                    work[phase]()
    return report


def read_nodes(
    context: IngestContext, source: Source, report: IngestReport, pool: WorkerPool, domain: str = ""
) -> None:
    """Phase nodes: read the source; write documents that are new or changed; forget what a mirrored folder lost."""
    store, total = context.store, source.estimate()
    known = KnownRecords.load(context.scratch, source, domain) if isinstance(source, RecordSource) else None
    left_out = _leave_out_records(store, source, known, report)
    seen = known.keys_of(left_out) if known is not None else set()
    rejected: list[RejectedInput] = []
    held: list[NodeBatch] = []
    held_keys: set[str] = set()
    with WriteAhead(in_thread=pool.workers > 1) as writes:
        for batch in read_batches(source, domain, pool):
            rejected += [item for _, item in batch.rejected]
            if held and (_size_of(held) > BATCH_BYTES or not held_keys.isdisjoint(batch.keys)):
                writes.run(partial(_write_batches, store, source, held, report))
                held, held_keys = [], set()
            held.append(batch)
            held_keys.update(batch.keys)
            seen.update(batch.keys)
            if known is not None:
                for record, *document in zip(batch.records, batch.keys, batch.origins, batch.digests, strict=True):
                    known.add(record, RecordDocument(*document))
            context.progress(Phase.NODES, len(seen), total)
        if held:
            writes.run(partial(_write_batches, store, source, held, report))
    _write_quarantine(store, source, rejected, report)
    if known is not None:
        known.save(left_out)
    if source.mirrors:
        lost = sorted(manifest.keys_of_corpus(store, str(source.kind), source.corpus, source.place) - seen)
        report.removed = len(lost)
        if lost:
            remove_documents(store, lost)


def cut_chunks(context: IngestContext, report: IngestReport, pool: WorkerPool) -> None:
    """Phase chunks: cut the documents whose text or cut has changed."""
    store = context.store
    stale = {entry.key: entry for entry in manifest.find_stale(store, Phase.CHUNKS, _chunk_digest)}
    texts = (store.get("documents", keys, columns=DOCUMENT_COLUMNS) for keys in _batch(stale, READ_DOCUMENTS))
    tables: list[pa.Table] = []
    done: list[str] = []
    n_done = 0
    with WriteAhead(in_thread=pool.workers > 1) as writes:
        for keys, table in cut_documents(texts, context.tokenizer, pool):
            done += keys
            n_done += len(keys)
            tables += [table] if table is not None else []
            if sum(one.nbytes for one in tables) > BATCH_BYTES:
                writes.run(partial(_write_chunks, store, [stale[key] for key in done], tables, report))
                tables, done = [], []
            context.progress(Phase.CHUNKS, n_done, len(stale))
        if done:
            writes.run(partial(_write_chunks, store, [stale[key] for key in done], tables, report))
    pool.end_children()  # what follows needs memory more than a quick start
    give_back_memory()


def _leave_out_records(
    store: RowStore, source: Source, known: KnownRecords | None, report: IngestReport
) -> list[bytes]:
    """Let a source leave out the records whose documents are stored; they count as read and unchanged."""
    left_out = source.leave_out(known.origins(store, source)) if known and isinstance(source, RecordSource) else []
    report.read += len(left_out)
    report.unchanged += len(left_out)
    return left_out


def _embed(context: IngestContext, report: IngestReport) -> None:
    report.embedded = embed_chunks(context.store, context.embedder, context.scratch, context.progress)


def _derive(context: IngestContext, report: IngestReport, pool: WorkerPool) -> None:
    store, embedder, rules = context.store, context.embedder, context.rules
    digest = digest_documents(store, embedder, rules)
    if is_derived(store, digest):
        redact_logs(store)  # an older snapshot may have answered, and been logged, since the last derivation
        return
    changes = derive_edges(store, embedder, rules, context.progress, context.scratch, pool, digest)
    report.derived = {
        name: {"added": change.added, "changed": change.changed, "removed": change.removed}
        for name, change in changes.items()
        if change.total
    }


def _write_batches(store: GraphStore, source: Source, batches: Sequence[NodeBatch], report: IngestReport) -> None:
    """Write what is new or changed of these documents in one transaction, and count it."""
    known = manifest.content_hashes(store, sorted(key for batch in batches for key in batch.keys))
    changed = [
        batch.only([row for row, key in enumerate(batch.keys) if known.get(key) != batch.digests[row]])
        for batch in batches
    ]
    n_read, n_changed = sum(len(batch.keys) for batch in batches), sum(len(batch.keys) for batch in changed)
    replaced = [key for batch in changed for key in batch.keys if key in known]
    if n_changed:
        with store.bulk(NAMES) as inside:
            _write_nodes(inside, source, changed, replaced)
    report.read += n_read
    report.new += n_changed - len(replaced)
    report.changed += len(replaced)
    report.unchanged += n_read - n_changed


def _write_nodes(store: RowStore, source: Source, changed: Sequence[NodeBatch], replaced: Sequence[str]) -> None:
    tables = {name: [batch.tables[name] for batch in changed if name in batch.tables] for name in _NODE_COLLECTIONS}
    there: dict[str, list[str]] = {}  # keys of rows that are written again
    for collection in OWNED_BY_DOCUMENT[1:]:
        kept = {key for table in tables[collection] for key in table.column("_key").to_pylist()} if replaced else set()
        held = keys_of_documents(store, collection, replaced) if replaced else {}
        old = {key for keys in held.values() for key in keys}
        remove_nodes(store, collection, sorted(old - kept))
        there[collection] = sorted(old & kept)
    for collection in _NODE_COLLECTIONS:
        rows = tables.pop(collection)
        if any(table.num_rows for table in rows):
            _upsert(
                store, collection, find_different(store, collection, pa.concat_tables(rows), there.get(collection, ()))
            )
    kind = str(source.kind)
    manifest.record(
        store,
        (
            Entry(key, kind, source.corpus, origin, digest, {str(Phase.NODES): digest}, source.place)
            for batch in changed
            for key, origin, digest in zip(batch.keys, batch.origins, batch.digests, strict=True)
        ),
    )


def _write_quarantine(
    store: GraphStore, source: Source, rejected: Sequence[RejectedInput], report: IngestReport
) -> None:
    """Set aside what could not be used; what the same source set aside before and now reads well is cleared."""
    rows = {row["_key"]: {**row, "corpus": source.corpus} for row in map(quarantine_row, rejected)}
    report.quarantined.update(str(item.reason) for item in rejected)
    report.set_aside += [
        {"uri": item.uri, "reason": str(item.reason), "detail": item.detail} for item in rejected[:MAX_LISTED]
    ]
    where = [Term("source", "==", str(source.kind)), Term("corpus", "==", source.corpus)]
    with store.bulk(["quarantine"]) as inside:
        inside.delete("quarantine", where=where)
        if rows:
            inside.upsert("quarantine", as_table("quarantine", list(rows.values())))


def _write_chunks(store: GraphStore, batch: Sequence[Entry], tables: Sequence[pa.Table], report: IngestReport) -> None:
    """Write the chunks of some documents in one transaction; those they had and have no longer go."""
    with store.bulk(NAMES) as inside:
        held = keys_of_documents(inside, "doc_chunks", [entry.key for entry in batch])
        old = {key for keys in held.values() for key in keys}
        new = {key for table in tables for key in table.column("_key").to_pylist()} if old else set()
        remove_nodes(inside, "doc_chunks", sorted(old - new))
        if tables:
            _keep_vectors(inside, pa.concat_tables(tables), sorted(old & new))
        manifest.record(inside, (entry.after(Phase.CHUNKS, _chunk_digest(entry.sha256)) for entry in batch))
    report.chunks += sum(table.num_rows for table in tables)


def _keep_vectors(store: RowStore, table: pa.Table, kept: Sequence[str]) -> None:
    """Write chunks that are new or differ; those that were there keep the vector of an unchanged text."""
    rows = find_different(store, "doc_chunks", table, kept, _VECTOR)
    held = store.get("doc_chunks", rows.column("_key").to_pylist(), columns=["sha256", *_VECTOR]) if kept else None
    if held is None or not held.num_rows:
        _upsert(store, "doc_chunks", rows)
        return
    before = {row["_key"]: row for row in held.to_pylist()}
    written = []
    for row in rows.to_pylist():
        old = before.get(row["_key"])
        same = old is not None and old["sha256"] == row["sha256"]
        written.append({**row, **{name: old[name] if same and old else None for name in _VECTOR}})
    store.upsert("doc_chunks", as_table("doc_chunks", written))


def _upsert(store: RowStore, collection: str, rows: pa.Table) -> None:
    if rows.num_rows:
        store.upsert(collection, rows)


def _chunk_digest(content: str) -> str:
    """What the phase chunks works from, by the hash of what the source said of a document."""
    return manifest.digest_of(content, chunks.CHUNKER_VERSION, chunks.MAX_TOKENS)


def _size_of(batches: Sequence[NodeBatch]) -> int:
    return sum(batch.nbytes for batch in batches)


def _batch(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


@contextmanager
def _time(report: IngestReport, phase: Phase) -> Iterator[None]:
    start = time.perf_counter()
    yield
    report.seconds[phase] = time.perf_counter() - start
