"""Phase edges: everything that follows from all documents together, computed whole, written as a difference.

Entities, mentions, relations and code edges are a function of the set of documents, so after any history of ingesting,
changing and forgetting the store holds what a build from scratch would. One bulk write: all of it or none, and
with it what later stages built on rows that go (`hades/ingest/cleanup`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from hades.build_state import ledger
from hades.build_state.entity_edits import EDITS, Edits, refresh_entities, standing_edits
from hades.ingest import manifest
from hades.ingest.cleanup.logs import redact_logs
from hades.ingest.cleanup.sweep import SWEPT, clear_up, detach_entities, reopen_stages
from hades.ingest.cleanup.topics import StandingRows
from hades.ingest.code.prose import blank_code
from hades.ingest.code.tables import (
    CODE_COLLECTIONS,
    CodeDerivation,
    derive_code,
    derive_code_bytes,
)
from hades.ingest.derivation_digest import add_edits, digest_documents
from hades.ingest.derived_tables import CorpusRows, build_tables
from hades.ingest.entities.corpus import CorpusView
from hades.ingest.entities.derive import DerivedRows, derive
from hades.ingest.entities.pair_cache import PairCache
from hades.ingest.entities.rules import EntityRules
from hades.ingest.entity_vectors import BASIS, EntityVectors
from hades.ingest.last_derivation import LastDerivation, LastRows
from hades.ingest.openie import remove_unused, with_extractions
from hades.ingest.reference_edges import reference_edges
from hades.ingest.report import Progress, silent
from hades.ingest.sync_rows import (
    Change,
    Comparison,
    Difference,
    Suspects,
    apply_removals,
    apply_writes,
    find_difference,
    suspect_all,
    suspect_changed,
)
from hades.ingest.workers.arrow_bytes import to_bytes
from hades.ingest.workers.memory_use import give_back_memory
from hades.ingest.workers.worker_pool import WorkerPool
from hades.ports.store import GraphStore, RowStore
from hades.ports.text import Embedder
from schemas.catalogue import collection_named
from schemas.ids import node_id

MANY_SYMBOLS = 15_000  # from here on a child process, which takes a second to start, costs less than it gives

# In writing order: nodes before the edges that join them. Removal goes the other way.
_ORDER = ("entities", "relations", "mentions", "references", "contains", "imports", "chunk_code_edges", "merge_log")
# Columns that other builds fill in and a comparison must leave alone.
_FOREIGN = {
    "entities": {"layer", "cluster_id", "prev_cluster_id", "confidence"},
    "relations": {
        "weight", "weight_components", "cost", "learned", "layer_bridge", "sim",
        "valid_from", "valid_until", "recorded_at", "retracted_at",
    },
    **{name: {"valid_until", "recorded_at", "retracted_at"} for name in CODE_COLLECTIONS},
    "mentions": {"weight", "learned", "valid_from", "valid_until", "recorded_at", "retracted_at"},
}  # fmt: skip
_BOUNDS = {"valid_from", "valid_until", "recorded_at", "retracted_at"}


def derive_edges(
    store: GraphStore,
    embedder: Embedder,
    rules: EntityRules,
    progress: Progress = silent,
    scratch: Path | None = None,
    pool: WorkerPool | None = None,
    digest: str = "",
) -> dict[str, Change]:
    """Bring every derived collection to what documents and curators say; empty when nothing changed since last time.

    In the folder `scratch` it keeps what costs much to find and seldom changes; the result is the same without it.
    A caller that has the `digest` of the documents already gives it: it takes a scan of all chunks.
    """
    digest, edits = digest or digest_documents(store, embedder, rules), standing_edits(store)
    if manifest.derive_digest(store) == add_edits(digest, edits):
        redact_logs(store)  # an older snapshot may have answered, and been logged, since the last derivation
        return {}
    if remove_unused(store):  # a text that changed takes what a language model read in it along
        digest = digest_documents(store, embedder, rules)
    corpus = _read(store, pool or WorkerPool(1), scratch)
    progress("edges", 1, 4)
    derived = derive(CorpusView(corpus.chunks, corpus.documents), rules, scratch, pool)
    corpus = replace(corpus, chunks=corpus.chunks.drop_columns(["text", "span", "title"]))  # the texts have been read
    give_back_memory()
    progress("edges", 2, 4)
    last = LastDerivation(scratch) if scratch is not None else None
    before = last.load(manifest.derive_digest(store)) if last else LastRows()
    if before.derivation != derived.last or not derived.last:
        before = LastRows()  # what follows from names is not told from those rows
    vectors = EntityVectors(store, embedder, derived.titles, progress)
    cache = PairCache(scratch) if scratch is not None else None
    wanted, beside = build_tables(corpus, derived, edits, vectors, cache, before.tables)
    progress("edges", 3, 4)
    with store.bulk([*_ORDER, *SWEPT, "ingest_manifest"], unfinished=_reopen) as inside:
        vectors.store = inside
        standing = StandingRows(corpus.chunks, wanted["entities"].select(["_key", "name", "frequency"]))
        stage = partial(_stage, last, add_edits(digest, edits), beside, derived.name)
        suspect = partial(_suspect, derived, beside, before)
        changes = _write(inside, wanted, vectors, suspect, standing, stage, is_known=bool(before.tables))
        laid, is_behind = _catch_up(inside, embedder, edits)
        reopen_stages(inside, changes)
        manifest.record_derived(inside, add_edits(digest, laid))
    if last:
        last.commit("" if is_behind else add_edits(digest, laid))
    progress("edges", 4, 4)
    return changes


def _reopen(store: RowStore) -> None:
    """Say that derived rows are half written, so that neither this phase nor a stage takes them for whole."""
    manifest.record_derived(store, "")
    ledger.reopen(store)


def _catch_up(store: RowStore, embedder: Embedder, seen: Edits) -> tuple[Edits, bool]:
    """Lay on what curators said meanwhile; what remains of the edits worked from, and whether any had to be laid on."""
    now = standing_edits(store)
    behind = [key for key in {*seen, *now} if seen.get(key) != now.get(key)]
    if behind:
        refresh_entities(store, behind, embedder)
    return {key: edits for key, edits in seen.items() if key in now}, bool(behind)


def _read(store: RowStore, pool: WorkerPool, scratch: Path | None) -> CorpusRows:
    columns = ["_key", "origin", "title", "source", "created", "facts", "domains", "text"]
    documents = _all(store, "documents", columns, _length_for_text)
    chunks = _all(
        store,
        "doc_chunks",
        ["_key", "document", "text", "span", "title", "symbol", "kind", "sha256", "embedding_model"],
    )
    documents = with_extractions(store, documents, chunks)
    chunks = blank_code(chunks, documents)
    funcs = _all(store, "funcs", ["_key", "qualified_name", "document", "span", "docstring"])
    files = _all(store, "files", ["_key", "document", "path"])
    code = _start_code(pool, (documents, chunks, funcs.drop_columns(["docstring"]), files), scratch)
    return CorpusRows(documents, chunks, code, reference_edges(documents, chunks), funcs)


def _start_code(
    pool: WorkerPool, tables: tuple[pa.Table, pa.Table, pa.Table, pa.Table], scratch: Path | None
) -> Future[CodeDerivation]:
    """What follows from code needs nothing of what follows from names: of much code a worker process works it out.

    `tables` are documents, chunks, functions and files.
    """
    documents, chunks, funcs, files = tables
    if not funcs.num_rows and not files.num_rows:  # every edge of code ends at a file or a symbol
        documents, chunks = documents.slice(0, 0), chunks.slice(0, 0)
    if pool.workers == 1 or funcs.num_rows < MANY_SYMBOLS:
        done: Future[CodeDerivation] = Future()
        done.set_result(derive_code(documents, chunks, funcs, files, scratch))
        return done
    read = (documents.drop_columns(["title", "source", "domains"]), chunks.drop_columns(["title"]), funcs, files)
    return pool.submit(derive_code_bytes, *map(to_bytes, read), scratch)


def _write(
    store: RowStore,
    wanted: dict[str, pa.Table],
    vectors: EntityVectors,
    suspect: Callable[[Comparison, pa.Table], Suspects | None],
    standing: StandingRows,
    stage: Callable[[Mapping[str, pa.Table]], None],
    *,
    is_known: bool,
) -> dict[str, Change]:
    """Write what differs. `is_known` says whether the rows of the last derivation are."""
    found: dict[str, Difference] = {}
    for name in _ORDER:
        comparison = Comparison(name, _find_owned(name, wanted[name]), _find_compared(name, wanted[name]))
        if name == "entities":
            comparison = replace(comparison, complete=vectors.fill, suspects=_edited_once(store))
        found[name] = find_difference(store, comparison, wanted[name], suspect(comparison, wanted[name]))
    stage(wanted)
    wanted.clear()  # what is to be written is in `found`
    vectors.clear()
    give_back_memory()
    for name in reversed(_ORDER):
        if name != "entities":
            apply_removals(store, name, found[name])
    gone, moved = found["entities"], found["relations"]
    changed = [node_id("entities", key) for key in gone.stale]
    changed += [node_id("relations", key) for key in (*moved.stale, *moved.changed.column("_key").to_pylist())]
    changes = {name: apply_writes(store, name, found.pop(name)) for name in _ORDER}
    left = detach_entities(store, gone.stale, standing)
    apply_removals(store, "entities", gone)
    return changes | left | clear_up(store, changed if is_known else None)


def _suspect(
    derived: DerivedRows, beside: Mapping[str, pa.Table], before: LastRows, how: Comparison, wanted: pa.Table
) -> Suspects | None:
    """Which rows of a collection may differ from the last derivation; None where that is not known."""
    name = how.collection
    if name not in before.tables:
        return None
    if name not in beside:
        return suspect_all(how, wanted, before.tables[name])
    if name not in derived.changes:
        return None
    own: pa.Table = getattr(derived, name)
    return suspect_changed(how, derived.changes[name], own, beside[name], before.tables[name], before.counts[name])


def _stage(
    last: LastDerivation | None,
    digest: str,
    beside: Mapping[str, pa.Table],
    derivation: str,
    tables: Mapping[str, pa.Table],
) -> None:
    """Keep what the next derivation compares with: of collections with rows `beside` names only these."""
    if last:
        kept = {name: beside.get(name, table) for name, table in tables.items()}
        rows = {name: table.select(_find_compared(name, tables[name])) for name, table in kept.items()}
        last.stage(digest, LastRows(rows, {name: table.num_rows for name, table in tables.items()}, derivation))


def _edited_once(store: RowStore) -> list[str]:
    """Entities that a curator edited at any time: their rows may have been written since the last derivation."""
    scan = store.scan(EDITS, columns=["entity"])
    return sorted({key for batch in scan for key in batch.column("entity").to_pylist()})


def _find_owned(collection: str, table: pa.Table) -> list[str]:
    """The columns that derivation fills."""
    names = [name for name in table.column_names if name != BASIS]
    if collection == "entities" and "embedding" not in names:
        names.append("embedding")
    foreign = _FOREIGN.get(collection, _BOUNDS | {"weight"})
    return [name for name in names if name not in foreign]


def _find_compared(collection: str, table: pa.Table) -> list[str]:
    """The columns by which two derivations are compared: vectors by what they are made of."""
    foreign = _FOREIGN.get(collection, _BOUNDS | {"weight"})
    return [name for name in table.column_names if name not in foreign and name != "embedding"]


def _length_for_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """How long the text is, in place of the text: nobody should hold every document at once."""
    length = pc.cast(pc.utf8_length(batch.column("text")), pa.int64())
    return batch.drop_columns(["text"]).append_column("length", length)


def _all(
    store: RowStore,
    collection: str,
    columns: list[str],
    kept: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch,
) -> pa.Table:
    declared = collection_named(collection)
    assert declared is not None
    nothing = pa.RecordBatch.from_pylist([], schema=pa.schema([declared.schema.field(name) for name in columns]))
    batches = [kept(batch.select(columns)) for batch in store.scan(collection, columns=columns)]
    return pa.Table.from_batches(batches or [kept(nothing)]).combine_chunks()
