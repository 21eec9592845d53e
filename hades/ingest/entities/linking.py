"""What the mentions join: chunks to entities, titles to what their texts name, entities to those named beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hades.ingest.entities.cooccurrence import co_occurrences
from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.reading import Reading
from hades.ingest.entities.rules import EntityRules
from hades.ingest.entities.tables import RelationRows, lists_array, mentions_table
from hades.ingest.entities.tokens import Longs
from hades.ingest.entities.triples import StatedRelation
from schemas.edges import RelationType
from schemas.ids import node_id


@dataclass(frozen=True)
class Linked:
    """The corpus with every mention resolved: the entity of each mention, and of each document's title (-1 for none)."""

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


def link_chunks(linked: Linked, extra: Sequence[tuple[int, int]], ids: Sequence[str]) -> tuple[pa.Table, Longs]:
    """Mentions and how often each entity is mentioned. A document's title counts once in each of its chunks.

    `extra` are (chunk, entity) that a document without title states beside its text.
    """
    size = max(1, linked.n_entities)
    said = linked.reading.chunk.astype(np.int64) * size + linked.entity
    title = linked.title[linked.corpus.document_of]
    titled = np.flatnonzero(title >= 0)
    beside = np.array(sorted(chunk * size + entity for chunk, entity in extra), dtype=np.int64)
    codes, row = np.unique(np.concatenate([said, titled * size + title[titled], beside]), return_inverse=True)
    count = np.bincount(row, minlength=len(codes))
    row_said = row[: len(said)]
    order = np.lexsort((linked.reading.start, row_said))
    positions = lists_array(linked.reading.start[order], row_said[order], len(codes))
    chunks = [node_id("doc_chunks", key) for key in linked.corpus.chunk_keys]
    entity = codes % size
    table = mentions_table(chunks, ids, codes // size, entity, count, positions)
    return table, np.bincount(entity, weights=count, minlength=linked.n_entities).astype(np.int64)


def link_titles(linked: Linked, given: Sequence[tuple[int, int]]) -> RelationRows:
    """From the entity of a title to what its text names, and to what the source states: `given` are (document, entity)."""
    size = max(1, linked.n_entities)
    source = linked.title[linked.reading.document]
    held = np.flatnonzero((source >= 0) & (source != linked.entity))
    codes, first, count = np.unique(
        source[held] * size + linked.entity[held], return_index=True, return_counts=True
    )
    document, begin, end = linked.sentence_span(held[first])
    more = _stated_codes(linked, given, size, codes)
    spans = [_whole_span(linked.corpus, here) for _, here in more]
    codes = np.concatenate([codes, np.array([code for code, _ in more], dtype=np.int64)])
    order = np.argsort(codes, kind="stable")
    return RelationRows(
        RelationType.REFERS_TO,
        (codes // size)[order],
        (codes % size)[order],
        np.concatenate([document, np.array([here for _, here in more], dtype=np.int64)])[order],
        np.concatenate([begin, np.array([span[0] for span in spans], dtype=np.int64)])[order],
        np.concatenate([end, np.array([span[1] for span in spans], dtype=np.int64)])[order],
        np.concatenate([count, np.ones(len(more), dtype=np.int64)])[order],
    )


def link_triples(linked: Linked, relations: Sequence[StatedRelation]) -> RelationRows:
    """Stated relations in their own words, with the sentence that fits, or the document's text where none does."""
    spans: list[tuple[int, int]] = []
    mention_of = dict(zip(linked.reading.sentence[::-1].tolist(), range(len(linked.entity) - 1, -1, -1), strict=True))
    for relation in relations:
        if relation.sentence < 0:
            spans.append(_whole_span(linked.corpus, relation.document))
        else:
            _, begin, end = linked.sentence_span(np.array([mention_of[relation.sentence]]))
            spans.append((int(begin[0]), int(end[0])))
    column = np.array([(one.source, one.target, one.document, one.count) for one in relations], dtype=np.int64).reshape(-1, 4)
    span = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return RelationRows(
        RelationType.REFERS_TO,
        column[:, 0],
        column[:, 1],
        column[:, 2],
        span[:, 0],
        span[:, 1],
        column[:, 3],
        label=[one.label for one in relations],
    )


def link_companions(linked: Linked, rules: EntityRules) -> RelationRows:
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


def _stated_codes(
    linked: Linked, given: Sequence[tuple[int, int]], size: int, known: Longs
) -> list[tuple[int, int]]:
    """Title-to-entity pairs that only the source states, with the first document that does."""
    seen = set(known.tolist()) if given else set()
    first: dict[int, int] = {}
    for document, entity in sorted(given):
        title = int(linked.title[document])
        code = title * size + entity
        if title >= 0 and title != entity and code not in seen:
            first.setdefault(code, document)
    return sorted(first.items())


def _whole_span(corpus: Corpus, document: int) -> tuple[int, int]:
    """The span of a document's first chunk; an empty span at its start when it has none."""
    chunk = int(np.searchsorted(corpus.document_of, document))
    if chunk < len(corpus.texts) and corpus.document_of[chunk] == document:
        begin = int(corpus.begins[chunk])
        return begin, begin + len(corpus.texts[chunk])
    return 0, 0
