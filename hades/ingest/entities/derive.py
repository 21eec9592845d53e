"""Entities, mentions, relations and the merge log of a corpus: one pure function of the set of its documents.

The same documents give the same tables whatever order they came in, so a store that writes only the difference between
two derivations holds exactly what a build from scratch would. Names that a change does not touch keep what the last
derivation found (`hades/ingest/increment`); a derivation from scratch takes the same steps with every name touched."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.aliases import propose_aliases, propose_middle_names
from hades.ingest.entities.changed_names import (
    AllMeanings,
    close,
    find_beside,
    find_clashes,
    find_links,
    find_touched,
    join_meanings,
    pack_arrays,
    sign_names,
)
from hades.ingest.entities.corpus import Corpus, CorpusView, NodeIds, read_corpus
from hades.ingest.entities.describe import entity_domains, entity_summaries, log_rows, log_table, merge_log_table
from hades.ingest.entities.find_names import TRIPLES, Reading, Statements, read_names, read_statements
from hades.ingest.entities.known_names import EntityRules
from hades.ingest.entities.links import (
    DocumentNames,
    LinkedCorpus,
    Sentences,
    StatedRelation,
    link_chunks,
    link_companions,
    link_short_forms,
    link_titles,
    link_triples,
    read_stated_relations,
)
from hades.ingest.entities.meanings import NameMeanings, NameProposals, entities_table, find_spellings, resolve_meanings
from hades.ingest.entities.previous_run import OWNER, FormerDerivation, KeptDerivation
from hades.ingest.entities.resolve import Sense
from hades.ingest.entities.tables import DocumentColumns, mentions_table, relations_table
from hades.ingest.entities.text_readings import KeptReadings, TextReadings, find_ranges, read_chunks
from hades.ingest.workers import WorkerPool
from hades.ingest.write_changes import FormerRows, RowChange, find_change, keep_equal, take_runs
from hades.text.words import Flags, Hashes, Longs, distinct
from schemas.nodes import EntityType, NameType

_BESIDE = (OWNER, "stem", "qualifier")  # columns of kept entities that are none of the collection


@dataclass(frozen=True)
class DerivedRows:
    """What follows from a corpus, in the catalogue's schemas; `titles` joins documents to the entities of titles."""

    entities: pa.Table
    mentions: pa.Table
    relations: pa.Table
    merge_log: pa.Table
    titles: pa.Table  # document, entity: both `_id`
    changes: Mapping[str, RowChange] = field(default_factory=dict)  # of some collections, since the last derivation
    last: str = ""  # names the derivation that the changes are counted from, "" for none
    name: str = ""  # names this derivation as it is kept, "" where it is not


def derive(
    view: CorpusView,
    rules: EntityRules | None = None,
    scratch: Path | None = None,
    pool: WorkerPool | None = None,
) -> DerivedRows:
    """Reads the corpus, decides which names are known and what each mention means, and links what is named together.

    In the folder `scratch` it keeps what it read and found; the result is the same without it.
    """
    rules = rules or EntityRules()
    with _collector_paused():
        corpus = read_corpus(view)
        readings = KeptReadings(scratch) if scratch is not None else None
        kept = KeptDerivation(scratch, rules) if scratch is not None else None
        former = kept.load() if kept else None
        read, statements = _read(corpus, former, pool or WorkerPool(1), readings)
        rows, made = _derive(corpus, read, statements, rules, former)
        if kept is None:
            return rows
        last = kept.name
        kept.keep(made)
        return replace(rows, changes=_find_changes(former, made), last=last, name=kept.name)


def _find_changes(former: FormerDerivation | None, made: FormerDerivation) -> dict[str, RowChange]:
    """What changed in the collections whose rows are reused by signature."""
    if former is None:
        return {}
    pairs = {"mentions": (former.mentions, made.mentions), "relations": (former.relations, made.relations)}
    found = {name: find_change(before, now) for name, (before, now) in pairs.items()}
    return {name: change for name, change in found.items() if change is not None}


def _read(
    corpus: Corpus, former: FormerDerivation | None, pool: WorkerPool, kept: KeptReadings | None
) -> tuple[TextReadings, Statements]:
    """What the chunks say and what the documents state; this process parses documents while others read chunks."""
    before = former.statements if former else None
    if pool.workers == 1:
        return read_chunks(corpus, pool, kept), read_statements(corpus, before)
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(read_chunks, corpus, pool, kept)
        statements = read_statements(corpus, before)
        return reading.result(), statements


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Hundreds of thousands of small tuples are made, none in a cycle; looking for cycles costs a sixth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _derive(
    corpus: Corpus, read: TextReadings, statements: Statements, rules: EntityRules, former: FormerDerivation | None
) -> tuple[DerivedRows, FormerDerivation]:
    mentions_before = former.arrays.mentions() if former else None
    reading, known = read_names(corpus, read, statements.why, rules, mentions_before)
    pairs = distinct(reading.document.astype(np.int64) * max(1, len(reading.names)) + reading.name)
    stated, titles = statements.names(reading)
    names = reading.names
    size, titled = max(1, len(names)), np.flatnonzero(titles >= 0)
    held = distinct(np.concatenate([pairs, titled * size + titles[titled]]))
    middle_names = propose_middle_names(names, partial(_hold_both, held, size))
    proposals = NameProposals(propose_aliases(names, reading.common, rules), middle_names)
    links = find_links(corpus, statements, reading, proposals.all(), pairs, titles)
    signed = sign_names(corpus, reading, stated)
    touched = find_touched(former.arrays, names.identity, signed, links) if former else names.identity

    def resolve(touched: Hashes) -> NameMeanings:
        rows = np.flatnonzero(np.isin(names.identity, touched))
        documents = distinct(stated[0][np.isin(stated[1], rows)]).tolist()
        beside = find_beside(reading, pairs, rows, former)
        return resolve_meanings(corpus, reading, rows, proposals, statements.why, documents, rules, beside)

    meanings = resolve(touched)
    while former and len(clashes := find_clashes(former, touched, meanings)):
        arrays = former.arrays
        touched = close(distinct(np.concatenate([touched, clashes])), links, arrays.links())
        meanings = resolve(touched)
    all_meanings = join_meanings(corpus, reading, meanings, former, touched)
    arrays = pack_arrays(corpus, reading, signed, links, meanings, all_meanings, former, known)
    made = _build_rows(corpus, reading, statements, rules, meanings, all_meanings, former, touched)
    entities, mentions, relations, log, titles_table = made
    rows = DerivedRows(
        entities.table.drop_columns([*_BESIDE]), mentions.table, relations.table, merge_log_table(log), titles_table
    )
    return rows, FormerDerivation(arrays, entities, mentions, relations, log, statements.kept)


def _hold_both(codes: Longs, n_names: int, one: Longs, other: Longs) -> Flags:
    """Whether some document holds both names, pair by pair; `codes` are sorted document * n_names + name."""
    held = np.zeros(len(one), dtype=np.bool_)
    wanted, which = np.unique(one, return_inverse=True)
    name = codes % n_names
    rows = np.flatnonzero(np.isin(name, wanted))
    order = rows[np.argsort(name[rows], kind="stable")]
    begin, end = (np.searchsorted(name[order], wanted, side=side)[which] for side in ("left", "right"))
    pair = np.repeat(np.arange(len(one)), end - begin)
    document = codes[order[find_ranges(begin, end - begin)]] // n_names
    asked = document * n_names + other[pair]
    place = np.minimum(np.searchsorted(codes, asked), max(0, len(codes) - 1))
    held[pair[codes[place] == asked]] = True
    return held


def _build_rows(
    corpus: Corpus,
    reading: Reading,
    statements: Statements,
    rules: EntityRules,
    meanings: NameMeanings,
    all_meanings: AllMeanings,
    former: FormerDerivation | None,
    touched: Hashes,
) -> tuple[FormerRows, FormerRows, FormerRows, pa.Table, pa.Table]:
    """Entities, mentions, relations and the merge log as they are kept, and the entities of titles."""
    linked, given = all_meanings.link(corpus, reading), all_meanings.given()
    ids = all_meanings.places.ids()
    found, frequency = link_chunks(linked, given)
    chunk_keys = pa.array(corpus.chunk_keys, pa.string())
    chunks = NodeIds(pc.binary_join_element_wise("doc_chunks", chunk_keys, "/"), corpus.chunk_ids)
    mentions = mentions_table(chunks, ids, found, former.mentions if former else None)
    entities = _build_entities(corpus, statements, meanings, all_meanings, frequency, former)
    parts = [
        link_titles(linked, given),
        link_triples(linked, _triples(linked, all_meanings, statements)),
        link_companions(linked, rules),
        link_short_forms(linked, all_meanings.of_name[reading.name], _EntitySenses(entities.table)),
    ]
    keys = pa.array(corpus.documents.keys, pa.string())
    documents = DocumentColumns(
        pc.binary_join_element_wise("documents", keys, "/"), corpus.documents.created, corpus.document_signatures
    )
    relations = relations_table(parts, ids, documents, former.relations if former else None)
    log = log_table(
        log_rows(
            meanings.reading.names,
            meanings.owner.tolist(),
            meanings.merged.log,
            meanings.resolved,
            meanings.shown,
            meanings.written,
        )
    )
    if former:
        stays = ~np.isin(former.merge_log.column(OWNER).to_numpy(), touched)
        log = pa.concat_tables([former.merge_log.filter(pa.array(stays)), log])
    titled = np.flatnonzero(linked.title >= 0)
    columns = [documents.ids.take(pa.array(titled)), ids.column.take(pa.array(linked.title[titled]))]
    return entities, mentions, relations, log, pa.table(columns, names=["document", "entity"])


def _build_entities(
    corpus: Corpus,
    statements: Statements,
    meanings: NameMeanings,
    all_meanings: AllMeanings,
    frequency: Longs,
    former: FormerDerivation | None,
) -> FormerRows:
    """All entities: those of touched names are built, the others are the former ones."""
    places, linked = all_meanings.places, _link_touched(corpus, meanings)
    stated = meanings.stated
    beside = np.flatnonzero(~stated.is_title)
    given = DocumentNames(stated.document[beside], meanings.entity(stated.sense[beside]))
    table = entities_table(
        meanings.numbered,
        find_spellings(meanings, statements.why),
        frequency[places.of_touched],
        entity_domains(linked, given),
        entity_summaries(linked),
    )
    owner = np.zeros(table.num_rows, dtype=np.uint64)
    used = np.flatnonzero(meanings.numbered.of_sense >= 0)
    owner[meanings.numbered.of_sense[used]] = meanings.owner[used]
    table = table.append_column(OWNER, pa.array(owner))
    for name in ("stem", "qualifier"):
        values = [getattr(one, name) for one in meanings.numbered.senses]
        table = table.append_column(name, pa.array(values, pa.string()))
    if former:
        before = former.entities.table
        table = take_runs(before, *keep_equal(before, table, places.place))
    return FormerRows(table, places.signatures)


def _link_touched(corpus: Corpus, meanings: NameMeanings) -> LinkedCorpus:
    """The mentions of touched names with their entities, by the numbers that these have among themselves."""
    reading, resolved = meanings.reading, meanings.resolved
    codes = reading.document.astype(np.int64) * max(1, len(reading.names)) + reading.name
    sense = resolved.meaning[np.searchsorted(resolved.pairs, codes)].astype(np.int64)
    title = np.full(len(corpus.documents), -1, dtype=np.int64)
    titled = meanings.stated.is_title
    title[meanings.stated.document[titled]] = meanings.entity(meanings.stated.sense[titled])
    return LinkedCorpus(corpus, reading, meanings.entity(sense), title, len(meanings.numbered.keys))


class _EntitySenses:
    """The sense of an entity by its number."""

    def __init__(self, entities: pa.Table) -> None:
        self._columns = [entities.column(name) for name in ("name", "stem", "qualifier", "type", "entity_type")]

    def __call__(self, entity: int) -> Sense:
        name, stem, qualifier, kind, name_type = (column[entity].as_py() for column in self._columns)
        return Sense(name, stem, qualifier, EntityType(kind), NameType(name_type))


def _triples(linked: LinkedCorpus, all_meanings: AllMeanings, statements: Statements) -> list[StatedRelation]:
    reading = linked.reading
    stating, facts = statements.documents_with(TRIPLES), linked.corpus.documents
    triples = [(index, triple) for index in stating for triple in facts[index].facts.triples]
    documents = np.array([index for index, _ in triples], dtype=np.int64)

    def ends(place: int) -> Sequence[int]:
        rows = np.array([reading.row_of.get(triple[place], -1) for _, triple in triples], dtype=np.int64)
        found: list[int] = all_meanings.means(documents, rows, len(reading.names)).tolist()
        return found

    rows = zip(documents.tolist(), ends(0), (triple[1] for _, triple in triples), ends(2), strict=True)
    return read_stated_relations(
        rows, Sentences(reading.document, reading.sentence, linked.entity, set(documents.tolist()))
    )
