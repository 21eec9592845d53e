"""What the mentions join: chunks to entities, titles to what their texts name, entities to those named beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hades.ingest.entities.cooccurrence import co_occurrences
from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.reading import Reading
from hades.ingest.entities.rules import EntityRules
from hades.ingest.entities.tables import MentionRows, RelationRows, lists_array
from hades.ingest.entities.triples import StatedRelation
from hades.text.arrays import Longs, distinct
from schemas.graph_types import RelationType


@dataclass(frozen=True)
class LinkedCorpus:
    """The corpus with every mention resolved: the entity of each mention and of each document's title (-1: none)."""

    corpus: Corpus
    reading: Reading
    entity: Longs
    title: Longs
    n_entities: int

    def sentence_span(self, mention: Longs) -> tuple[Longs, Longs, Longs]:
        """Document and [begin, end) in it of the sentence each mention stands in."""
        sentence, chunk = self.reading.sentence[mention], self.reading.chunk[mention]
        offset = self.corpus.begins[chunk]
        return (
            self.reading.document[mention].astype(np.int64),
            offset + self.reading.sentence_begin[sentence],
            offset + self.reading.sentence_end[sentence],
        )


@dataclass(frozen=True)
class DocumentNames:
    """What sources state beside the text: this document, that entity. In order of documents."""

    document: Longs
    entity: Longs


def link_chunks(linked: LinkedCorpus, given: DocumentNames) -> tuple[MentionRows, Longs]:
    """Mentions and how often each entity is mentioned. A document's title counts once in each of its chunks.

    What a document without title states beside its text counts in its first chunk, since no title can carry it.
    """
    size = max(1, linked.n_entities)
    said = linked.reading.chunk.astype(np.int64) * size + linked.entity
    title = linked.title[linked.corpus.document_of]
    titled = np.flatnonzero(title >= 0)
    beside = distinct(_beside_text(linked, given, size))
    beside = beside[~np.isin(beside, said)] if len(beside) else beside
    codes, row = np.unique(np.concatenate([said, titled * size + title[titled], beside]), return_inverse=True)
    count = np.bincount(row, minlength=len(codes))
    row_said = row[: len(said)]
    order = np.lexsort((linked.reading.start, row_said))
    positions = lists_array(linked.reading.start[order], row_said[order], len(codes))
    entity = codes % size
    found = MentionRows(codes // size, entity, count, positions, row_said[order])
    return found, np.bincount(entity, weights=count, minlength=linked.n_entities).astype(np.int64)


def link_titles(linked: LinkedCorpus, given: DocumentNames) -> RelationRows:
    """From the entity of a title to what its text names, and to what its source states beside the text."""
    size = max(1, linked.n_entities)
    source = linked.title[linked.reading.document]
    held = np.flatnonzero((source >= 0) & (source != linked.entity))
    codes, first, count = np.unique(source[held] * size + linked.entity[held], return_index=True, return_counts=True)
    document, begin, end = linked.sentence_span(held[first])
    title = linked.title[given.document]
    told = np.flatnonzero((title >= 0) & (title != given.entity))
    more, which = np.unique(title[told] * size + given.entity[told], return_index=True)
    place = np.minimum(np.searchsorted(codes, more), max(0, len(codes) - 1))
    fresh = codes[place] != more if len(codes) else np.ones(len(more), dtype=np.bool_)
    more, where = more[fresh], given.document[told][which[fresh]]
    spans = linked.corpus.first_chunk(where)
    codes = np.concatenate([codes, more])
    order = np.argsort(codes, kind="stable")
    return RelationRows(
        RelationType.REFERS_TO,
        (codes // size)[order],
        (codes % size)[order],
        np.concatenate([document, where])[order],
        np.concatenate([begin, spans[0]])[order],
        np.concatenate([end, spans[1]])[order],
        np.concatenate([count, np.ones(len(more), dtype=np.int64)])[order],
    )


def link_triples(linked: LinkedCorpus, relations: Sequence[StatedRelation]) -> RelationRows:
    """Stated relations in their own words, with the sentence that fits, or the first chunk where none does."""
    columns = [(one.source, one.target, one.document, one.count, one.mention) for one in relations]
    source, target, document, count, mention = np.array(columns, dtype=np.int64).reshape(-1, 5).T
    begin, end = linked.corpus.first_chunk(document)
    named = np.flatnonzero(mention >= 0)
    _, begin[named], end[named] = linked.sentence_span(mention[named])
    labels = [one.label for one in relations]
    return RelationRows(RelationType.REFERS_TO, source, target, document, begin, end, count, label=labels)


def link_companions(linked: LinkedCorpus, rules: EntityRules) -> RelationRows:
    """Entities named in the same sentences, from the smaller id to the larger."""
    together = co_occurrences(linked.entity.astype(np.int32), linked.reading.sentence, rules)
    document, begin, end = linked.sentence_span(together.mention)
    return RelationRows(
        RelationType.RELATED_TO,
        together.left,
        together.right,
        document,
        begin,
        end,
        together.count,
        strength=together.strength,
        together=together.count,
    )


def _beside_text(linked: LinkedCorpus, given: DocumentNames, size: int) -> Longs:
    """(first chunk, entity) codes of what documents without a title state."""
    bare = np.flatnonzero(linked.title[given.document] < 0)
    document, of = given.document[bare], linked.corpus.document_of
    chunk = np.searchsorted(of, document)
    held = np.flatnonzero(chunk < len(of))
    held = held[of[chunk[held]] == document[held]]
    codes: Longs = chunk[held] * size + given.entity[bare][held]
    return codes
