"""Entities, mentions, relations and the merge log of a corpus: one pure function of the set of its documents.

The same documents give the same tables whatever order they came in, so a store that writes only the difference between
two derivations holds exactly what a build from scratch would."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np
import pyarrow as pa

from hades.ingest.entities.corpus import read_corpus
from hades.ingest.entities.describe import entity_domains, entity_summaries, merge_log_table
from hades.ingest.entities.find_names import read_names, read_statements
from hades.ingest.entities.links import (
    DocumentNames,
    LinkedCorpus,
    Sentences,
    StatedRelation,
    link_chunks,
    link_companions,
    link_derivations,
    link_short_forms,
    link_titles,
    link_triples,
    may_derive,
    read_stated_relations,
    says_derived,
)
from hades.ingest.entities.meanings import NameMeanings, entities_table, resolve_meanings
from hades.ingest.entities.tables import mentions_table, relations_table
from schemas.ids import node_id
from schemas.nodes import RelationType


@dataclass(frozen=True)
class DerivedRows:
    """What follows from a corpus, in the catalogue's schemas; `titles` joins documents to the entities of titles."""

    entities: pa.Table
    mentions: pa.Table
    relations: pa.Table
    merge_log: pa.Table
    titles: pa.Table  # document, entity: both `_id`


def derive(chunks: pa.Table, documents: pa.Table) -> DerivedRows:
    """Reads the corpus, decides which names are known and what each mention means, and links what is named together."""
    corpus = read_corpus(chunks, documents)
    why = read_statements(corpus.documents)
    reading = read_names(corpus, why)
    meanings = resolve_meanings(corpus, reading, why)
    stated, resolved = meanings.stated, meanings.resolved
    codes = reading.document.astype(np.int64) * max(1, len(reading.names)) + reading.name
    title = np.full(len(corpus.documents), -1, dtype=np.int64)
    title[stated.document[stated.is_title]] = meanings.entity(stated.sense[stated.is_title])
    mentioned = meanings.entity(resolved.meaning[np.searchsorted(resolved.pairs, codes)])
    linked = LinkedCorpus(corpus, reading, mentioned, title, len(meanings.keys))
    given = DocumentNames(stated.document[~stated.is_title], meanings.entity(stated.sense[~stated.is_title]))
    found, frequency = link_chunks(linked, given)
    triples = _triples(linked, meanings)
    derived = [
        says_derived(one.label) and may_derive(meanings.senses[one.source], meanings.senses[one.target])
        for one in triples
    ]
    parts = [
        link_titles(linked, given),
        link_triples(linked, [one for one, is_derived in zip(triples, derived, strict=True) if not is_derived]),
        link_triples(linked, list(compress(triples, derived)), RelationType.DERIVES_FROM),
        link_companions(linked),
        link_derivations(linked, meanings.senses),
        link_short_forms(linked, meanings.entity(resolved.of_name[reading.name]), meanings.senses),
    ]
    ids = pa.array([node_id("entities", key) for key in meanings.keys], pa.string())
    chunk_ids = pa.array([node_id("doc_chunks", key) for key in corpus.chunk_keys], pa.string())
    document_ids = pa.array([node_id("documents", one.key) for one in corpus.documents], pa.string())
    titled = np.flatnonzero(title >= 0)
    return DerivedRows(
        entities_table(meanings, why, frequency, entity_domains(linked, given), entity_summaries(linked)),
        mentions_table(chunk_ids, ids, found),
        pa.concat_tables([relations_table(part, ids, document_ids, corpus.created) for part in parts]).combine_chunks(),
        merge_log_table(meanings),
        pa.table({"document": document_ids.take(pa.array(titled)), "entity": ids.take(pa.array(title[titled]))}),
    )


def _triples(linked: LinkedCorpus, meanings: NameMeanings) -> list[StatedRelation]:
    """The relations that documents state as triples, between the entities that they mean by the ends."""
    stated = meanings.stated
    rows = zip(stated.document.tolist(), stated.text, meanings.entity(stated.meant).tolist(), strict=True)
    entity_of = {(document, text): entity for document, text, entity in rows}
    documents = [row for row, one in enumerate(linked.corpus.documents) if one.facts.triples]
    triples = [
        (row, entity_of.get((row, subject), -1), relation, entity_of.get((row, target), -1))
        for row in documents
        for subject, relation, target in linked.corpus.documents[row].facts.triples
    ]
    reading = linked.reading
    return read_stated_relations(triples, Sentences(reading.document, reading.sentence, linked.entity, documents))
