"""The four phases of ingestion, each independent, idempotent and resumable: nodes, chunks,
embeddings, edges.

nodes needs the source; the others work from the store, so any of them can be run again alone. Each
batch of documents is one transaction: a run that is stopped leaves whole documents, and the next
run goes on from there.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import chain
from operator import itemgetter
from pathlib import Path

from hades.ingest import chunks, manifest
from hades.ingest.chunks import DOCUMENT_COLUMNS, chunk_rows, chunked_text, embed_chunks
from hades.ingest.edges import derive_edges
from hades.ingest.forget import remove_documents
from hades.ingest.manifest import (
    MAX_LISTED,
    OWNED_BY_DOCUMENT,
    IngestReport,
    keys_of_documents,
    remove_nodes,
)
from hades.ingest.nodes import NodeRows, node_rows, quarantine_row
from hades.ingest.sources.material import RejectedInput, Source
from hades.ingest.sources.remote.remotes import RemoteSources
from hades.ingest.stated_rights import SourceRights
from hades.ports.services import Embedder, ProgressReport, Tokenizer, silent
from hades.ports.store import GraphStore, Row, RowStore, Term
from hades.settings.tree import HistorySettings
from hades.snapshot.rights_file import Readers, RightsFile
from hades.stage_ledger import digest_of
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
    # Be the only one that builds.
    hold: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext()
    remotes: RemoteSources | None = None
    # Bring back rows that were written and are gone. A build does not: its contracts name them.
    restores: bool = True
    rights: RightsFile | None = None  # where it is kept who may read what


def ingest(
    context: IngestContext,
    source: Source,
    phases: Sequence[Phase] = tuple(Phase),
    *,
    domain: str = "",
    until: datetime | None = None,
    only: frozenset[str] | None = None,
) -> IngestReport:
    """Run the given phases, in order, over a source and report on them. Every document gets the
    `domain`.

    What is dated after `until` is left out; what has no date was always there. With `only` the
    source reads these files, and the others are as they were.
    """
    report = IngestReport(str(source.kind))
    if Phase.NODES in phases:
        with _time(report, Phase.NODES):
            read_nodes(
                context,
                source,
                report,
                domain,
                until,
                only,
            )

    return work_from_store(context, phases, report)


def work_from_store(
    context: IngestContext,
    phases: Sequence[Phase],
    report: IngestReport | None = None,
) -> IngestReport:
    """Run those of the phases that need no source; what was done, added to a report."""
    report = report or IngestReport(str(SourceKind.DOCUMENTS))
    for phase, work in (
        (Phase.CHUNKS, cut_chunks),
        (Phase.EMBEDDINGS, _embed),
        (Phase.EDGES, _derive),
    ):
        if phase in phases:
            with _time(report, phase):
                work(context, report)

    return report


def read_nodes(
    context: IngestContext,
    source: Source,
    report: IngestReport,
    domain: str,
    until: datetime | None,
    only: frozenset[str] | None = None,
) -> None:
    """Phase nodes: read the source; write documents that are new or changed; forget what a mirrored
    folder lost.
    """
    store = context.store
    if source.place:
        kind = str(source.kind)
        place = source.place
        source.corpus = manifest.distinct_corpus(
            store,
            kind,
            source.corpus,
            place,
        )

    if source.place and context.rights:
        rights = SourceRights(source.place)
    else:
        rights = None

    readers: dict[str, Readers] = {}
    lost = _lost_rows(context, ("documents", *OWNED_BY_DOCUMENT[1:]))
    read_keys: set[str] = set()
    rejected: list[RejectedInput] = []
    batch: dict[str, NodeRows] = {}

    size = 0
    for document in source.read():
        if isinstance(document, RejectedInput):
            rejected.append(document)
            continue

        if until is not None and document.created is not None and document.created > until:
            continue

        node = node_rows(
            replace(document, domain=domain) if domain else document,
            source.corpus,
        )
        batch[node.key] = node  # of two of one key the last stays
        read_keys.add(node.key)

        if rights is not None:
            readers[node_id("documents", node.key)] = rights.of_material(document)

        size += len(document.text)
        if size > BATCH_CHARS:
            keep_rights(context, readers)
            _write_documents(
                store,
                source,
                list(batch.values()),
                report,
                lost,
            )
            batch = {}
            size = 0

        context.progress(
            Phase.NODES,
            len(read_keys),
            source.total,
        )

    keep_rights(context, readers)
    _write_documents(
        store,
        source,
        list(batch.values()),
        report,
        lost,
    )
    _write_quarantine(
        store,
        source,
        rejected,
        report,
        only,
    )

    if source.mirrors:
        known = manifest.keys_of_place(
            store,
            str(source.kind),
            source.place,
            only,
        )
        gone = sorted(known - read_keys)
        report.removed = len(gone)
        remove_documents(store, gone)


def keep_rights(context: IngestContext, readers: Mapping[str, Readers]) -> None:
    """Keep who may read documents, by `_id`; before they are written, so that none is ever shown
    without.
    """
    if context.rights is not None:
        context.rights.record(readers)


def cut_chunks(context: IngestContext, report: IngestReport) -> None:
    """Phase chunks: cut the documents whose text or cut has changed."""
    store = context.store
    lost = _lost_rows(context, ("doc_chunks",))

    stale = {}
    for key, entry in manifest.entries(store).items():
        if key in lost or entry.phases.get(Phase.CHUNKS) != _chunk_digest(entry.sha256):
            stale[key] = entry

    rows: list[Row] = []
    cut_entries: list[ManifestEntry] = []
    n_done = size = 0
    waiting = list(stale)

    for start in range(0, len(stale), _READ_DOCUMENTS):
        keys = waiting[start : start + _READ_DOCUMENTS]
        documents = store.get(
            "documents",
            keys,
            columns=DOCUMENT_COLUMNS,
        ).to_pylist()
        rows += chunk_rows([chunked_text(row) for row in documents], context.tokenizer)
        # None of a document whose row is lost.
        cut_entries += [stale[row["_key"]] for row in documents]
        report.restored += sum(row["_key"] in lost for row in documents)
        n_done += len(keys)
        size += sum(len(row["text"]) for row in documents)

        if size > BATCH_CHARS or n_done == len(stale):
            _write_chunks(store, cut_entries, rows, report)
            rows = []
            cut_entries = []
            size = 0

        context.progress(Phase.CHUNKS, n_done, len(stale))


def _embed(context: IngestContext, report: IngestReport) -> None:
    report.embedded = embed_chunks(
        context.store,
        context.embedder,
        context.scratch,
        context.progress,
    )


def _lost_rows(context: IngestContext, collections: Sequence[str]) -> set[str]:
    """Documents (keys) whose lost rows are to be brought back."""
    if not context.restores:
        return set()
    return manifest.documents_with_lost_rows(context.store, collections)


def _derive(context: IngestContext, report: IngestReport) -> None:
    if context.restores:
        counts = manifest.count_derived_rows(context.store)
    else:
        counts = []

    if any(count.stored != count.written for count in counts):
        manifest.forget_derived(context.store)

    changes = derive_edges(
        context.store,
        context.embedder,
        context.progress,
    )
    report.derived = {
        name: {
            "added": change.added,
            "changed": change.changed,
            "removed": change.removed,
        }
        for name, change in changes.items()
        if change.total
    }


def _write_documents(
    store: GraphStore,
    source: Source,
    documents: Sequence[NodeRows],
    report: IngestReport,
    lost: Set[str],
) -> None:
    """Write what is new, changed or lost of these documents in one transaction, and count it."""
    known = manifest.entries(store, sorted(document.key for document in documents))

    new = []
    for document in documents:
        if document.key not in known:
            new.append(document)

    old = []
    for document in documents:
        if document.key in known:
            old.append(document)

    changed = []
    for document in old:
        if known[document.key].sha256 != document.digest:
            changed.append(document)

    unchanged = []
    for document in old:
        if known[document.key].sha256 == document.digest:
            unchanged.append(document)

    restored = []
    for document in unchanged:
        if document.key in lost:
            restored.append(document)

    replaced = [*changed, *restored]
    moved = []
    for entry in known.values():
        if entry.place != source.place:
            moved.append(entry)

    if new or replaced or moved:
        with store.bulk(NAMES) as inside:
            manifest.record(
                inside,
                [entry.model_copy(update={"place": source.place}) for entry in moved],
            )
            keys = [document.key for document in replaced]
            _write_nodes(
                inside,
                source,
                [*new, *replaced],
                keys,
            )

    report.read += len(documents)
    report.new += len(new)
    report.changed += len(changed)
    report.restored += len(restored)
    report.unchanged += len(unchanged) - len(restored)


def _write_nodes(
    store: RowStore,
    source: Source,
    changed: Sequence[NodeRows],
    replaced: Sequence[str],
) -> None:
    for collection in ("documents", *OWNED_BY_DOCUMENT[1:]):
        rows_of_documents = (document.rows.get(collection, ()) for document in changed)
        rows = {}
        for row in chain.from_iterable(rows_of_documents):
            rows[row["_key"]] = row

        if replaced and collection != "documents":
            old = keys_of_documents(store, collection, replaced)
            remove_nodes(
                store,
                collection,
                sorted(old.difference(rows)),
            )

        if rows:
            store.upsert(collection, as_table(collection, list(rows.values())))

    stated = {
        "source": str(source.kind),
        "corpus": source.corpus,
        "place": source.place,
    }
    entries = []
    for document in changed:
        entries.append(
            ManifestEntry(
                key=document.key,
                document=node_id("documents", document.key),
                origin=document.origin,
                sha256=document.digest,
                phases={
                    "nodes": document.digest,
                    manifest.ROWS: _rows_written(document),
                },
                **stated,
            )
        )

    manifest.record(store, entries)


def _rows_written(document: NodeRows) -> dict[str, int]:
    """How many rows of each collection belong to a document."""
    return {name: len(set(map(itemgetter("_key"), rows))) for name, rows in document.rows.items()}


def _write_quarantine(
    store: GraphStore,
    source: Source,
    rejected: Sequence[RejectedInput],
    report: IngestReport,
    only: frozenset[str] | None,
) -> None:
    """Set aside what could not be used; what the same source set aside before and now reads well is
    cleared.
    """
    rows = {}
    for row in map(quarantine_row, rejected):
        rows[row["_key"]] = {**row, "corpus": source.corpus}

    report.quarantined.update(str(rejection.reason) for rejection in rejected)
    report.set_aside += [
        {
            "uri": rejection.uri,
            "reason": str(rejection.reason),
            "detail": rejection.detail,
        }
        for rejection in rejected[:MAX_LISTED]
    ]
    where = [Term("source", "==", str(source.kind)), Term("corpus", "==", source.corpus)]

    if only is not None:
        where.append(Term("uri", "in", sorted(only)))

    with store.bulk(["quarantine"]) as inside:
        inside.delete("quarantine", where=where)
        if rows:
            inside.upsert("quarantine", as_table("quarantine", list(rows.values())))


def _write_chunks(
    store: GraphStore,
    batch: Sequence[ManifestEntry],
    rows: Sequence[Row],
    report: IngestReport,
) -> None:
    """Write the chunks of some documents in one transaction; those they had and have no longer go.

    A chunk of an unchanged text keeps its vector.
    """
    with store.bulk(NAMES) as inside:
        old = keys_of_documents(
            inside,
            "doc_chunks",
            [entry.key for entry in batch],
        )
        new = {row["_key"] for row in rows}
        remove_nodes(
            inside,
            "doc_chunks",
            sorted(old - new),
        )

        if rows:
            inside.upsert(
                "doc_chunks",
                as_table("doc_chunks", _with_vectors(inside, rows, sorted(old & new))),
            )

        counts = Counter(row["document"] for row in rows)
        manifest.record(
            inside,
            [_cut_entry(entry, counts[entry.document]) for entry in batch],
        )

    report.chunks += len(rows)


def _cut_entry(entry: ManifestEntry, chunks_written: int) -> ManifestEntry:
    """The entry of a document that was cut into this number of chunks."""
    rows = {
        **entry.phases.get(manifest.ROWS, {}),
        "doc_chunks": chunks_written,
    }
    phases = {
        **entry.phases,
        str(Phase.CHUNKS): _chunk_digest(entry.sha256),
        manifest.ROWS: rows,
    }
    return entry.model_copy(update={"phases": phases})


def _with_vectors(
    store: RowStore,
    rows: Sequence[Row],
    kept_keys: Sequence[str],
) -> list[Row]:
    stored = store.get(
        "doc_chunks",
        kept_keys,
        columns=["_key", "sha256", *_VECTOR],
    ).to_pylist()
    stored_rows = {}
    for row in stored:
        stored_rows[(row["_key"], row["sha256"])] = row

    missing = dict.fromkeys(_VECTOR)
    return [
        {
            **row,
            **stored_rows.get((row["_key"], row["sha256"]), missing),
        }
        for row in rows
    ]


def _chunk_digest(content: str) -> str:
    """What the phase chunks works from, by the hash of what the source said of a document."""
    return digest_of(
        content,
        chunks.CHUNKER_VERSION,
        chunks.MAX_TOKENS,
    )


@contextmanager
def _time(report: IngestReport, phase: Phase) -> Iterator[None]:
    start = time.perf_counter()
    yield
    report.seconds[phase] = time.perf_counter() - start
