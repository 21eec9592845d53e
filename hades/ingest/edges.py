"""Phase 4: derive and write the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades import stage_ledger
from hades.entity_edits import Edits, fingerprint, refresh_entities, standing_edits, with_edits
from hades.ingest import manifest, stated_edges
from hades.ingest.cleanup import SWEPT, Change, correct_bridges, detach_entities, redact_logs
from hades.ingest.code_graph.corpus import blank_code, with_docstrings
from hades.ingest.code_graph.edges import (
    CODE_COLLECTIONS,
    code_mentions,
    code_relations,
    derive_code,
    symbol_entities,
)
from hades.ingest.entities.corpus import read_corpus
from hades.ingest.entities.describe import entity_domains, entity_summaries, merge_log_table
from hades.ingest.entities.find_names import read_names, read_statements
from hades.ingest.entities.links import (
    LinkedCorpus,
    link_chunks,
    link_companions,
    link_derivations,
    link_short_forms,
    link_titles,
    link_triples,
)
from hades.ingest.entities.meanings import NameMeanings, entities_table, resolve_meanings
from hades.ingest.entities.vectors import similar_edges, with_vectors
from hades.ports.services import Embedder, ProgressReport, silent
from hades.ports.store import GraphStore, RowStore, Term, scan_values
from models.arrays import Flags
from schemas.catalogue import columns_schema
from schemas.ids import key_of, node_id


def build_tables(
    store: RowStore,
    edits: Edits,
    embedder: Embedder,
    progress: ProgressReport,
) -> dict[str, pa.Table]:
    """All derived tables."""
    documents, chunks, funcs, files = _read(store)
    code = derive_code(
        documents,
        chunks,
        funcs.drop_columns(["docstring"]),
        files,
    )
    references = stated_edges.reference_edges(documents, chunks)
    progress("edges", 1, 4)
    derived = derive(chunks, documents)
    del chunks  # frees the memory of the texts
    progress("edges", 2, 4)
    titles = {key_of(row["document"]): row["entity"] for row in derived.titles.to_pylist()}
    symbols = stated_edges.symbols_of(derived.entities)
    of_code = symbol_entities(code, symbols)
    links = stated_edges.read_links(documents, titles, symbols)
    stated = stated_edges.stated_relations(chain(links, code_relations(code, of_code)))
    mentions = pa.concat_tables([derived.mentions, code_mentions(code, of_code)])
    described = with_docstrings(
        derived.entities,
        funcs,
        symbols,
        code.paths,
    )
    entities = with_vectors(
        store,
        embedder,
        with_edits(described, edits),
        derived.titles,
        progress,
    )
    relations = _one_each(pa.concat_tables([derived.relations, stated, similar_edges(entities)]))
    return {
        "entities": _with_degrees(entities, relations),
        "relations": relations,
        "mentions": _one_each(mentions),
        "references": references,
        **code.tables,
        "merge_log": derived.merge_log,
    }


def _with_degrees(entities: pa.Table, relations: pa.Table) -> pa.Table:
    """`deg_out`: how many relations leave each entity."""
    counted = pc.value_counts(relations["_from"].combine_chunks())
    ids = pc.binary_join_element_wise(
        "entities",
        entities["_key"],
        "/",
    )
    degree = counted.field("counts").take(
        pc.index_in(ids, value_set=counted.field("values")).combine_chunks()
    )
    index = entities.schema.get_field_index("deg_out")
    return entities.set_column(
        index,
        "deg_out",
        pc.fill_null(degree, 0).cast(pa.int64()),
    )


def _one_each(relations: pa.Table) -> pa.Table:
    """Each key once; of two sources of one relation the first given stays."""
    # Keys are numbered in order of their first rows.
    numbers = relations["_key"].combine_chunks().dictionary_encode().indices
    _, first_rows = np.unique(numbers, return_index=True)
    return relations.take(pa.array(first_rows))


@dataclass(frozen=True)
class DerivedRows:
    """What follows from documents in whatever order; `titles` joins documents to the entities of
    titles.
    """

    entities: pa.Table
    mentions: pa.Table
    relations: pa.Table
    merge_log: pa.Table
    titles: pa.Table  # document, entity: both `_id`


def derive(chunks: pa.Table, documents: pa.Table) -> DerivedRows:
    """Reads the corpus, decides which names are known and what each mention means, and links what
    is named together.
    """
    corpus = read_corpus(chunks, documents)
    origins = read_statements(corpus.documents)
    reading = read_names(corpus, origins)
    meanings = resolve_meanings(corpus, reading, origins)
    stated = meanings.stated
    resolved = meanings.resolved
    codes = reading.document.astype(np.int64) * max(1, len(reading.names)) + reading.name
    title = np.full(len(corpus.documents), -1)
    title[stated.document[stated.is_title]] = meanings.entity(stated.sense[stated.is_title])
    mentioned = meanings.entity(resolved.meaning[np.searchsorted(resolved.pairs, codes)])
    ids = pa.array([node_id("entities", key) for key in meanings.keys], pa.string())
    linked = LinkedCorpus(corpus, reading, mentioned, title, ids)
    stated_names = (
        stated.document[~stated.is_title],
        meanings.entity(stated.sense[~stated.is_title]),
    )
    mentions, frequency = link_chunks(linked, stated_names)
    relations = [
        link_titles(linked, stated_names),
        *link_triples(
            linked,
            _triples(linked, meanings),
            meanings.senses,
        ),
        link_companions(linked),
        *link_derivations(linked, meanings.senses),
        link_short_forms(
            linked,
            meanings.entity(resolved.of_name[reading.name]),
            meanings.senses,
        ),
    ]
    domains = entity_domains(linked, stated_names)
    summaries = entity_summaries(linked)
    titled = np.flatnonzero(title >= 0)
    titles = {
        "document": linked.document_ids.take(pa.array(titled)),
        "entity": ids.take(pa.array(title[titled])),
    }
    return DerivedRows(
        entities=entities_table(
            meanings,
            origins,
            frequency,
            domains,
            summaries,
        ),
        mentions=mentions,
        relations=pa.concat_tables(relations).combine_chunks(),
        merge_log=merge_log_table(meanings),
        titles=pa.table(titles),
    )


def _triples(
    linked: LinkedCorpus,
    meanings: NameMeanings,
) -> Iterator[tuple[int, int, str, int]]:
    """The triples that documents state, between the entities that they mean by the ends; -1 for
    none.
    """
    stated = meanings.stated
    rows = zip(
        stated.document.tolist(),
        stated.text,
        meanings.entity(stated.meant).tolist(),
        strict=True,
    )
    entity_of = {(document, text): entity for document, text, entity in rows}

    for row, document in enumerate(linked.corpus.documents):
        for subject, relation, target in document.facts.triples:
            yield row, entity_of.get((row, subject), -1), relation, entity_of.get((row, target), -1)


# Phase edges: everything that follows from all documents together, computed whole, written as a
# difference. Entities, mentions, relations and code edges are a function of the set of documents,
# so after any history of ingesting, changing and forgetting the store holds what a build from
# scratch would. One bulk write: all of it or none, and with it what later stages built on rows that
# go (`hades/ingest/cleanup`).
# Raise it with any change of what is derived: the next run derives all edges again.
DERIVE_VERSION = 17
# In writing order: nodes before the edges that join them. Removal goes the other way.
_ORDER = (
    "entities",
    "relations",
    "mentions",
    "references",
    "contains",
    "imports",
    "chunk_code_edges",
    "merge_log",
)
_BOUNDS = {"valid_until", "recorded_at", "retracted_at"}
# Columns that other builds fill in (weights, topics): they are not compared and survive a change of
# the rest.
_FOREIGN = {
    "entities": {"layer", "cluster_id", "prev_cluster_id"},
    "relations": {
        "weight",
        "weight_components",
        "cost",
        "learned",
        "layer_bridge",
        "sim",
        *_BOUNDS,
    },
    **dict.fromkeys(CODE_COLLECTIONS, _BOUNDS),
    "mentions": {"weight", "learned", *_BOUNDS},
}


def derive_edges(
    store: GraphStore,
    embedder: Embedder,
    progress: ProgressReport = silent,
) -> dict[str, Change]:
    """Bring every derived collection to what documents and curators say; empty when nothing changed
    since last time.
    """
    digest = _digest_documents(store, embedder)
    edits = standing_edits(store)

    if manifest.derive_digest(store) == _add_edits(digest, edits):
        # An older snapshot may have answered, and been logged, since the last derivation.
        redact_logs(store)
        return {}

    # A text that changed takes what a language model read in it along.
    if stated_edges.remove_unused(store):
        digest = _digest_documents(store, embedder)

    tables = build_tables(store, edits, embedder, progress)
    rows = {}
    for name, table in tables.items():
        rows[name] = table.num_rows

    progress("edges", 3, 4)
    with store.bulk(
        [*_ORDER, *SWEPT, "ingest_manifest"],
        unfinished=_reopen,
    ) as inside:
        changes = _write(inside, tables)
        current_edits = _catch_up(inside, embedder, edits)
        # The stages start over also where rows went back to what they once worked from.
        if any(change.total for change in changes.values()):
            stage_ledger.reopen(inside)

        manifest.record_derived(
            inside,
            _add_edits(digest, current_edits),
            rows,
        )

    progress("edges", 4, 4)
    return changes


def _digest_documents(store: RowStore, embedder: Embedder) -> str:
    """What the derived rows follow from: documents and models."""
    documents = manifest.phases_digest(store)
    extractions = list(scan_values(store, "extractions", "_key"))
    tag = embedder.model.tag
    embedded = store.count(
        "doc_chunks",
        where=[Term("embedding_model", "==", tag)],
    )
    return stage_ledger.digest_of(
        documents,
        tag,
        embedded,
        extractions,
        DERIVE_VERSION,
    )


def _add_edits(digest: str, edits: Edits) -> str:
    if edits:
        return stage_ledger.digest_of(digest, fingerprint(edits))
    return digest


def _reopen(store: RowStore) -> None:
    """Say that derived rows are half written, so that neither this phase nor a stage takes them for
    whole.
    """
    manifest.record_derived(store, "")
    stage_ledger.reopen(store)


def _catch_up(
    store: RowStore,
    embedder: Embedder,
    applied: Edits,
) -> Edits:
    """Apply what curators edited meanwhile; the edits worked from that still stand."""
    current = standing_edits(store)

    behind = []
    for key in {*applied, *current}:
        if applied.get(key) != current.get(key):
            behind.append(key)

    if behind:
        refresh_entities(store, behind, embedder)

    return {key: edits for key, edits in applied.items() if key in current}


def _read(store: RowStore) -> tuple[pa.Table, pa.Table, pa.Table, pa.Table]:
    """Documents, chunks of which only prose is visible, functions and files."""
    columns = ["_key", "origin", "title", "source", "created", "facts", "domains", "text"]
    documents = _all(store, "documents", columns, _length_for_text)
    chunks = _all(
        store,
        "doc_chunks",
        [
            "_key",
            "document",
            "text",
            "span",
            "title",
            "symbol",
            "kind",
            "sha256",
            "embedding_model",
        ],
    )
    documents = stated_edges.with_extractions(
        store,
        documents,
        chunks,
    )
    funcs = _all(
        store,
        "funcs",
        ["_key", "qualified_name", "document", "span", "docstring"],
    )
    files = _all(store, "files", ["_key", "document", "path"])
    return documents, blank_code(chunks, documents), funcs, files


def _write(store: RowStore, tables: dict[str, pa.Table]) -> dict[str, Change]:
    """Write what differs from what the store holds."""
    differences: dict[str, Difference] = {}
    for name in _ORDER:
        foreign = _FOREIGN.get(name, _BOUNDS | {"weight"})
        table = tables.pop(name)

        owned = []
        for column in table.column_names:
            if column not in foreign:
                owned.append(column)

        differences[name] = find_difference(store, name, owned, table)

    for name in reversed(_ORDER[1:]):  # edges before the nodes they join
        store.delete(name, keys=differences[name].stale)

    gone = differences["entities"].stale
    changes = {name: apply_writes(store, name, differences.pop(name)) for name in _ORDER}
    detached = detach_entities(store, gone)
    store.delete("entities", keys=gone)
    corrected = {
        "bridge_cache": correct_bridges(store),
        "query_logs": redact_logs(store),
    }
    return changes | detached | corrected


def _length_for_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The length of the text in place of the text, so that memory never holds every document."""
    length = pc.cast(pc.utf8_length(batch["text"]), pa.int64())
    return batch.drop_columns(["text"]).append_column("length", length)


def _all(
    store: RowStore,
    collection: str,
    columns: list[str],
    transform: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch,
) -> pa.Table:
    nothing = pa.RecordBatch.from_pylist(
        [],
        schema=columns_schema(collection, columns),
    )
    batches = [
        transform(batch.select(columns)) for batch in store.scan(collection, columns=columns)
    ]
    return pa.Table.from_batches(batches or [transform(nothing)]).combine_chunks()


@dataclass(frozen=True)
class Difference:
    """New rows whole, changed rows with the columns compared, keys of stale rows."""

    added: pa.Table
    changed: pa.Table
    stale: list[str]


def find_difference(
    store: RowStore,
    collection: str,
    owned: Sequence[str],
    table: pa.Table,
) -> Difference:
    """What separates the collection from the wanted rows (each key once), by the `owned`
    columns.
    """
    schema = pa.schema([column.with_nullable(True) for column in columns_schema(collection, owned)])
    expected = table.select(owned).cast(schema)
    keys = table["_key"].combine_chunks()
    is_new = np.ones(len(keys), np.bool_)
    changed: list[pa.Table] = [schema.empty_table()]

    stale: list[str] = []
    for batch in store.scan(collection, columns=list(owned)):
        row_of = pc.index_in(batch["_key"], value_set=keys)
        known = row_of.is_valid()
        stale += batch["_key"].filter(pc.invert(known)).to_pylist()
        rows = row_of.drop_null()
        is_new[rows.to_numpy()] = False
        wanted_rows = expected.take(rows)
        stored = batch.select(owned).filter(known)
        current = wanted_rows.combine_chunks().to_struct_array().combine_chunks()
        is_same = _equal(stored.to_struct_array(), current)
        changed.append(wanted_rows.filter(pa.array(~is_same)))

    return Difference(
        table.filter(pa.array(is_new)),
        pa.concat_tables(changed),
        stale,
    )


def apply_writes(
    store: RowStore,
    collection: str,
    change: Difference,
) -> Change:
    """Write what is new or changed; nodes before the edges that join them."""
    if change.added.num_rows:
        store.upsert(collection, change.added.sort_by("_key"))

    if change.changed.num_rows:
        fixed = []
        for name in change.changed.column_names:
            if name not in ("_from", "_to"):
                fixed.append(name)

        store.patch(collection, change.changed.select(fixed).sort_by("_key"))

    return Change(
        added=change.added.num_rows,
        changed=change.changed.num_rows,
        removed=len(change.stale),
        removed_keys=tuple(change.stale),
    )


def _equal(first: pa.Array, second: pa.Array) -> Flags:
    """Row by row equality; null equals null. Lists and structs by their parts, which Arrow does not
    compare itself.
    """
    nulls = pc.is_null(first).to_numpy(zero_copy_only=False)
    same_null = nulls == pc.is_null(second).to_numpy(zero_copy_only=False)

    if pa.types.is_struct(first.type):
        is_same = np.ones(len(first), bool)
        for number in range(first.type.num_fields):
            is_same &= _equal(pc.struct_field(first, number), pc.struct_field(second, number))
    elif pa.types.is_list(first.type):
        is_same = _equal_lists(first, second)
    else:
        is_same = pc.fill_null(pc.equal(first, second), False).to_numpy(zero_copy_only=False)

    agreed: Flags = same_null & (nulls | is_same)
    return agreed


def _equal_lists(first: pa.Array, second: pa.Array) -> Flags:
    lengths = pc.fill_null(pc.list_value_length(first), 0).to_numpy()
    is_same: Flags = lengths == pc.fill_null(pc.list_value_length(second), 0).to_numpy()
    rows = np.flatnonzero(is_same)
    first = first.take(pa.array(rows))
    second = second.take(pa.array(rows))
    different = ~_equal(first.flatten(), second.flatten())
    is_same[np.repeat(rows, lengths[rows])[different]] = False
    return is_same
