"""The four phases of ingestion, each independent, idempotent and resumable: nodes, chunks, embeddings, edges.

nodes needs the source; the others work from the store, so any of them can be run again alone. Each batch of documents
is one transaction: a run that is stopped leaves whole documents, and the next run goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from hades.ingest import chunks, forget, manifest
from hades.ingest.cut_documents import DOCUMENT_COLUMNS, cut_documents
from hades.ingest.edges import derive_edges
from hades.ingest.embeddings import embed_chunks
from hades.ingest.entities.rules import EntityRules
from hades.ingest.manifest import Entry, as_table
from hades.ingest.nodes import NodeRows, node_rows, quarantine_row
from hades.ingest.remove_nodes import OWNED_BY_DOCUMENT, keys_of_documents, remove_nodes
from hades.ingest.report import MAX_LISTED, IngestReport, Progress, silent
from hades.ingest.source_document import Material, RejectedInput, Source
from hades.ingest.sources.history_rules import HistoryRules
from hades.ingest.worker_pool import WorkerPool
from hades.ports.store import GraphStore, RowStore, Term
from hades.ports.text import Embedder, Tokenizer
from schemas.catalogue import NAMES

BATCH_DOCUMENTS = 8_192
_NODE_COLLECTIONS = ("documents", *OWNED_BY_DOCUMENT[1:])


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
    progress: Progress = silent
    history: HistoryRules = field(default_factory=HistoryRules)
    workers: int = 0  # processes; 0: one a core, 1: no child


def ingest(
    context: IngestContext, source: Source, phases: Sequence[Phase] = tuple(Phase), *, domain: str = ""
) -> IngestReport:
    """Run the phases asked for, in order, over a source; what was done. A `domain` is given to every document."""
    report = IngestReport(str(source.kind))
    with WorkerPool(context.workers) as pool:
        work = {
            Phase.NODES: lambda: read_nodes(context, source, report, domain),
            Phase.CHUNKS: lambda: cut_chunks(context, report, pool),
            Phase.EMBEDDINGS: lambda: _embed(context, report),
            Phase.EDGES: lambda: _derive(context, report, pool),
        }
        for phase in Phase:
            if phase in phases:
                with _time(report, phase):
                    work[phase]()
    return report


def read_nodes(context: IngestContext, source: Source, report: IngestReport, domain: str = "") -> None:
    """Phase nodes: read the source; write documents that are new or changed; forget what a mirrored folder lost."""
    store, total = context.store, source.estimate()
    seen: set[str] = set()
    rejected: list[RejectedInput] = []
    for batch in _batch(source.read(), BATCH_DOCUMENTS):
        rejected += [item for item in batch if isinstance(item, RejectedInput)]
        fresh = {}
        for item in batch:
            if isinstance(item, Material):
                rows = node_rows(replace(item, domain=domain) if domain else item, source.corpus)
                fresh[rows.key] = (item, rows)
        known = manifest.entries(store, sorted(fresh))
        changed = [pair for key, pair in fresh.items() if key not in known or known[key].sha256 != pair[1].digest]
        if changed:
            with store.bulk(NAMES) as inside:
                _write_nodes(inside, source, changed, known)
        report.read += len(fresh)
        report.new += sum(rows.key not in known for _, rows in changed)
        report.changed += sum(rows.key in known for _, rows in changed)
        report.unchanged += len(fresh) - len(changed)
        seen |= fresh.keys()
        context.progress(Phase.NODES, report.read, total)
    _write_quarantine(store, source, rejected, report)
    if source.mirrors:
        lost = sorted(manifest.keys_of_corpus(store, str(source.kind), source.corpus, source.place) - seen)
        report.removed = len(lost)
        forget.remove_documents(store, lost)


def cut_chunks(context: IngestContext, report: IngestReport, pool: WorkerPool) -> None:
    """Phase chunks: cut the documents whose text or cut has changed."""
    store = context.store
    stale = [
        entry for entry in manifest.entries(store).values() if not entry.is_current(Phase.CHUNKS, _chunk_digest(entry))
    ]
    done = 0
    for batch in _batch(stale, BATCH_DOCUMENTS):
        with store.bulk(NAMES) as inside:
            report.chunks += _write_chunks(inside, batch, context.tokenizer, pool)
        done += len(batch)
        context.progress(Phase.CHUNKS, done, len(stale))


def _embed(context: IngestContext, report: IngestReport) -> None:
    report.embedded = embed_chunks(context.store, context.embedder, context.scratch, context.progress)


def _derive(context: IngestContext, report: IngestReport, pool: WorkerPool) -> None:
    changes = derive_edges(context.store, context.embedder, context.rules, context.progress, context.scratch, pool)
    report.derived = {
        name: {"added": change.added, "changed": change.changed, "removed": change.removed}
        for name, change in changes.items()
        if change.total
    }


def _write_nodes(
    store: RowStore, source: Source, changed: Sequence[tuple[Material, NodeRows]], known: dict[str, Entry]
) -> None:
    rows: dict[str, list[dict[str, Any]]] = {}
    for _, one in changed:
        for collection, listed in one.rows.items():
            rows.setdefault(collection, []).extend(listed)
    replaced = [one.key for _, one in changed if one.key in known]
    for collection in OWNED_BY_DOCUMENT[1:]:
        kept = {row["_key"] for row in rows.get(collection, ())}
        held = keys_of_documents(store, collection, replaced) if replaced else {}
        remove_nodes(store, collection, sorted({key for keys in held.values() for key in keys} - kept))
    for collection in _NODE_COLLECTIONS:
        if rows.get(collection):
            store.upsert(collection, as_table(collection, rows[collection]))
    manifest.record(
        store,
        (
            Entry(
                one.key,
                str(source.kind),
                source.corpus,
                item.origin,
                one.digest,
                {Phase.NODES: one.digest},
                source.place,
            )
            for item, one in changed
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


def _write_chunks(store: RowStore, batch: Sequence[Entry], tokenizer: Tokenizer, pool: WorkerPool) -> int:
    documents = store.get("documents", [entry.key for entry in batch], columns=list(DOCUMENT_COLUMNS))
    tables = cut_documents(documents, tokenizer, pool)
    held = keys_of_documents(store, "doc_chunks", [entry.key for entry in batch])
    old = {key for keys in held.values() for key in keys}
    new = {key for table in tables for key in table.column("_key").to_pylist()}
    remove_nodes(store, "doc_chunks", sorted(old - new))
    if tables:
        _keep_vectors(store, pa.concat_tables(tables), sorted(old & new))
    manifest.record(store, (entry.after(Phase.CHUNKS, _chunk_digest(entry)) for entry in batch))
    return sum(table.num_rows for table in tables)


def _keep_vectors(store: RowStore, table: pa.Table, kept: Sequence[str]) -> None:
    """Write chunks; those that were there keep the vector as long as what was embedded is the same."""
    if not kept:
        store.upsert("doc_chunks", table)
        return
    before = {
        row["_key"]: row
        for row in store.get("doc_chunks", kept, columns=["sha256", "embedding", "embedding_model"]).to_pylist()
    }
    rows = []
    for row in table.to_pylist():
        held = before.get(row["_key"])
        same = held is not None and held["sha256"] == row["sha256"]
        vector = {name: held[name] if same and held else None for name in ("embedding", "embedding_model")}
        rows.append({**row, **vector})
    store.upsert("doc_chunks", as_table("doc_chunks", rows))


def _chunk_digest(entry: Entry) -> str:
    return manifest.digest_of(entry.sha256, chunks.CHUNKER_VERSION, chunks.MAX_TOKENS)


def _batch(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


@contextmanager
def _time(report: IngestReport, phase: Phase) -> Iterator[None]:
    start = time.perf_counter()
    yield
    report.seconds[phase] = time.perf_counter() - start
