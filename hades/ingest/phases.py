"""The four phases of ingestion, each independent, idempotent and resumable: nodes, chunks, embeddings, edges.

nodes needs the source; the others work from the store, so any of them can be run again alone. Each batch of documents
is one transaction: a run that is stopped leaves whole documents, and the next run goes on from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from hades.build_state import digest_of
from hades.ingest import chunks, manifest
from hades.ingest.chunks import DOCUMENT_COLUMNS, chunk_rows, chunked_text, embed_chunks
from hades.ingest.edges import derive_edges
from hades.ingest.forget import remove_documents
from hades.ingest.manifest import MAX_LISTED, OWNED_BY_DOCUMENT, IngestReport, keys_of_documents, remove_nodes
from hades.ingest.nodes import NodeRows, Row, node_rows, quarantine_row
from hades.ingest.sources.material import RejectedInput, Source
from hades.ports.services import Embedder, ProgressReport, Tokenizer, silent
from hades.ports.store import GraphStore, RowStore, Term
from hades.settings.tree import HistorySettings
from schemas.builds import ManifestEntry
from schemas.catalogue import NAMES, as_table
from schemas.ids import node_id
from schemas.sources import SourceKind

BATCH_CHARS = 32 << 20  # of text in one transaction
_READ_DOCUMENTS = 256
_VECTOR = ("embedding", "token_signs", "embedding_model")


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
    progress: ProgressReport = silent
    history: HistorySettings = field(default_factory=HistorySettings)
    workers: int = 0  # processes that parse files; 0: one a core, at most four
    hold: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext()  # be the only one that builds


def ingest(
    context: IngestContext,
    source: Source,
    phases: Sequence[Phase] = tuple(Phase),
    *,
    domain: str = "",
    until: datetime | None = None,
) -> IngestReport:
    """Run the phases asked for, in order, over a source; what was done. A `domain` is given to every document.

    What is dated after `until` is left out; what has no date was always there.
    """
    report = IngestReport(str(source.kind))
    if Phase.NODES in phases:
        with _time(report, Phase.NODES):
            read_nodes(context, source, report, domain, until)
    return work_from_store(context, phases, report)


def work_from_store(
    context: IngestContext, phases: Sequence[Phase], report: IngestReport | None = None
) -> IngestReport:
    """Run those of the phases that need no source; what was done, added to a report."""
    report = report or IngestReport(str(SourceKind.DOCUMENTS))
    for phase, work in ((Phase.CHUNKS, cut_chunks), (Phase.EMBEDDINGS, _embed), (Phase.EDGES, _derive)):
        if phase in phases:
            with _time(report, phase):
                work(context, report)
    return report


def read_nodes(
    context: IngestContext, source: Source, report: IngestReport, domain: str, until: datetime | None
) -> None:
    """Phase nodes: read the source; write documents that are new or changed; forget what a mirrored folder lost."""
    store = context.store
    seen: set[str] = set()
    rejected: list[RejectedInput] = []
    batch: dict[str, NodeRows] = {}
    size = 0
    for item in source.read():
        if isinstance(item, RejectedInput):
            rejected.append(item)
            continue
        if until is not None and item.created is not None and item.created > until:
            continue
        made = node_rows(replace(item, domain=domain) if domain else item, source.corpus)
        batch[made.key] = made  # of two of one key the last stays
        seen.add(made.key)
        size += len(item.text)
        if size > BATCH_CHARS:
            _write_documents(store, source, list(batch.values()), report)
            batch, size = {}, 0
        context.progress(Phase.NODES, len(seen), source.total)
    _write_documents(store, source, list(batch.values()), report)
    _write_quarantine(store, source, rejected, report)
    if source.mirrors:
        lost = sorted(manifest.keys_of_corpus(store, str(source.kind), source.corpus, source.place) - seen)
        report.removed = len(lost)
        remove_documents(store, lost)


def cut_chunks(context: IngestContext, report: IngestReport) -> None:
    """Phase chunks: cut the documents whose text or cut has changed."""
    store = context.store
    known = manifest.entries(store)
    stale = {key: one for key, one in known.items() if one.phases.get(Phase.CHUNKS) != _chunk_digest(one.sha256)}
    rows: list[Row] = []
    done: list[ManifestEntry] = []
    n_done = size = 0
    waiting = list(stale)
    for start in range(0, len(stale), _READ_DOCUMENTS):
        keys = waiting[start : start + _READ_DOCUMENTS]
        documents = store.get("documents", keys, columns=DOCUMENT_COLUMNS).to_pylist()
        rows += chunk_rows([chunked_text(row) for row in documents], context.tokenizer)
        done += [stale[key] for key in keys]
        n_done += len(keys)
        size += sum(len(row["text"]) for row in documents)
        if size > BATCH_CHARS or n_done == len(stale):
            _write_chunks(store, done, rows, report)
            rows, done, size = [], [], 0
        context.progress(Phase.CHUNKS, n_done, len(stale))


def _embed(context: IngestContext, report: IngestReport) -> None:
    report.embedded = embed_chunks(context.store, context.embedder, context.scratch, context.progress)


def _derive(context: IngestContext, report: IngestReport) -> None:
    changes = derive_edges(context.store, context.embedder, context.progress)
    report.derived = {
        name: {"added": change.added, "changed": change.changed, "removed": change.removed}
        for name, change in changes.items()
        if change.total
    }


def _write_documents(store: GraphStore, source: Source, read: Sequence[NodeRows], report: IngestReport) -> None:
    """Write what is new or changed of these documents in one transaction, and count it."""
    known = {key: entry.sha256 for key, entry in manifest.entries(store, sorted(one.key for one in read)).items()}
    changed = [one for one in read if known.get(one.key) != one.digest]
    replaced = [one.key for one in changed if one.key in known]
    if changed:
        with store.bulk(NAMES) as inside:
            _write_nodes(inside, source, changed, replaced)
    report.read += len(read)
    report.new += len(changed) - len(replaced)
    report.changed += len(replaced)
    report.unchanged += len(read) - len(changed)


def _write_nodes(store: RowStore, source: Source, changed: Sequence[NodeRows], replaced: Sequence[str]) -> None:
    for collection in ("documents", *OWNED_BY_DOCUMENT[1:]):
        rows = {row["_key"]: row for one in changed for row in one.rows.get(collection, ())}
        if replaced and collection != "documents":
            old = keys_of_documents(store, collection, replaced)
            remove_nodes(store, collection, sorted(old.difference(rows)))
        if rows:
            store.upsert(collection, as_table(collection, list(rows.values())))
    stated = {"source": str(source.kind), "corpus": source.corpus, "place": source.place}
    entries = [
        ManifestEntry(
            key=one.key,
            document=node_id("documents", one.key),
            origin=one.origin,
            sha256=one.digest,
            phases={"nodes": one.digest},
            **stated,
        )
        for one in changed
    ]
    manifest.record(store, entries)


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


def _write_chunks(store: GraphStore, batch: Sequence[ManifestEntry], rows: Sequence[Row], report: IngestReport) -> None:
    """Write the chunks of some documents in one transaction; those they had and have no longer go.

    A chunk of an unchanged text keeps its vector.
    """
    with store.bulk(NAMES) as inside:
        old = keys_of_documents(inside, "doc_chunks", [entry.key for entry in batch])
        new = {row["_key"] for row in rows}
        remove_nodes(inside, "doc_chunks", sorted(old - new))
        if rows:
            inside.upsert("doc_chunks", as_table("doc_chunks", _with_vectors(inside, rows, sorted(old & new))))
        for_chunks = [{**one.phases, str(Phase.CHUNKS): _chunk_digest(one.sha256)} for one in batch]
        done = [one.model_copy(update={"phases": phases}) for one, phases in zip(batch, for_chunks, strict=True)]
        manifest.record(inside, done)
    report.chunks += len(rows)


def _with_vectors(store: RowStore, rows: Sequence[Row], kept: Sequence[str]) -> list[Row]:
    held = store.get("doc_chunks", kept, columns=["_key", "sha256", *_VECTOR]).to_pylist()
    before = {(row["_key"], row["sha256"]): {name: row[name] for name in _VECTOR} for row in held}
    return [{**row, **before.get((row["_key"], row["sha256"]), dict.fromkeys(_VECTOR))} for row in rows]


def _chunk_digest(content: str) -> str:
    """What the phase chunks works from, by the hash of what the source said of a document."""
    return digest_of(content, chunks.CHUNKER_VERSION, chunks.MAX_TOKENS)


@contextmanager
def _time(report: IngestReport, phase: Phase) -> Iterator[None]:
    start = time.perf_counter()
    yield
    report.seconds[phase] = time.perf_counter() - start
