"""Entities, mentions, relations and the merge log of a corpus: one pure function of the set of its documents.

The same documents give the same tables whatever order they came in, so a store that writes only the difference between
two derivations holds exactly what a build from scratch would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

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
from schemas.ids import node_id


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
    ids = pa.array([node_id("entities", key) for key in meanings.keys], pa.string())
    linked = LinkedCorpus(corpus, reading, mentioned, title, ids)
    given = stated.document[~stated.is_title], meanings.entity(stated.sense[~stated.is_title])
    mentions, frequency = link_chunks(linked, given)
    relations = [
        link_titles(linked, given),
        *link_triples(linked, _triples(linked, meanings), meanings.senses),
        link_companions(linked),
        link_derivations(linked, meanings.senses),
        link_short_forms(linked, meanings.entity(resolved.of_name[reading.name]), meanings.senses),
    ]
    titled = np.flatnonzero(title >= 0)
    return DerivedRows(
        entities_table(meanings, why, frequency, entity_domains(linked, given), entity_summaries(linked)),
        mentions,
        pa.concat_tables(relations).combine_chunks(),
        merge_log_table(meanings),
        pa.table({"document": linked.document_ids.take(pa.array(titled)), "entity": ids.take(pa.array(title[titled]))}),
    )


def _triples(linked: LinkedCorpus, meanings: NameMeanings) -> Iterator[tuple[int, int, str, int]]:
    """The triples that documents state, between the entities that they mean by the ends; -1 for none."""
    stated = meanings.stated
    rows = zip(stated.document.tolist(), stated.text, meanings.entity(stated.meant).tolist(), strict=True)
    entity_of = {(document, text): entity for document, text, entity in rows}
    for row, document in enumerate(linked.corpus.documents):
        for subject, relation, target in document.facts.triples:
            yield row, entity_of.get((row, subject), -1), relation, entity_of.get((row, target), -1)
