"""Entities, mentions, relations and the merge log of a corpus: one pure function of the set of its documents.

The same documents give the same tables whatever order they came in, so a store that writes only the difference between
two derivations holds exactly what a build from scratch would.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hades.ingest.entities.aliases import (
    Merged,
    merge_names,
    propose_acronyms,
    propose_aliases,
    propose_middle_names,
)
from hades.ingest.entities.corpus import Corpus, CorpusView, read_corpus
from hades.ingest.entities.entity_rows import Numbered, Spellings, entities_table, number_entities
from hades.ingest.entities.linking import Linked, link_chunks, link_companions, link_titles, link_triples
from hades.ingest.entities.merge_log import log_rows, merge_log_table
from hades.ingest.entities.reading import Reading, read_names, shown_names, stated_names
from hades.ingest.entities.resolve import Resolved, resolve_mentions
from hades.ingest.entities.rules import EntityRules
from hades.ingest.entities.senses import state_senses
from hades.ingest.entities.tables import relations_table
from hades.ingest.entities.tokens import Longs, distinct
from hades.ingest.entities.triples import Sentences, StatedRelation, stated_relations
from schemas.ids import node_id


@dataclass(frozen=True)
class Derived:
    """What follows from a corpus, in the catalogue's schemas; `titles` joins each document to the entity of its title."""

    entities: pa.Table
    mentions: pa.Table
    relations: pa.Table
    merge_log: pa.Table
    titles: pa.Table  # document, entity: both `_id`


def derive(view: CorpusView, rules: EntityRules | None = None) -> Derived:
    """Reads the corpus, decides which names are known and what each mention means, and links what is named together."""
    with _collector_paused():
        return _derive(read_corpus(view), rules or EntityRules())


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


def _derive(corpus: Corpus, rules: EntityRules) -> Derived:
    stated_strings = stated_names(corpus)
    reading = read_names(corpus, stated_strings, rules)
    shown, written = shown_names(reading, stated_strings)
    pairs = distinct(reading.document.astype(np.int64) * max(1, len(reading.names)) + reading.name)
    merged = _merge(corpus, reading, shown, pairs, rules)
    resolved = _resolve(corpus, reading, shown, merged, pairs, rules)
    stated = list(_stated_things(corpus, reading, resolved))
    numbered = number_entities(resolved.senses, {*np.unique(resolved.meaning).tolist(), *(one.sense for one in stated)})
    linked = _linked(corpus, reading, resolved, numbered)
    given = [(one.document, int(numbered.of_sense[one.sense])) for one in stated if not one.is_title]
    ids = numbered.ids()
    mentions, frequency = link_chunks(linked, _beside_text(linked, given), ids)
    relations = [
        link_titles(linked, given),
        link_triples(linked, _triples(linked, resolved, numbered)),
        link_companions(linked, rules),
    ]
    documents = [node_id("documents", document.key) for document in corpus.documents]
    return Derived(
        entities_table(numbered, _spellings(linked, resolved, numbered, stated, written), frequency),
        mentions,
        relations_table(relations, ids, documents, corpus.created),
        merge_log_table(log_rows(merged.log, resolved, shown, written)),
        _titles(linked, documents, ids),
    )


class _StatedThing(NamedTuple):
    """A sense that a document states, in which words, and whether as its own title."""

    document: int
    sense: int
    name: int
    text: str
    is_title: bool = False


def _merge(corpus: Corpus, reading: Reading, shown: Sequence[str], pairs: Longs, rules: EntityRules) -> Merged:
    """Folds names that are spellings of each other; acronyms come second, since plurals must agree on what they mean."""
    names = reading.names
    proposals = propose_aliases(names, reading.common, rules)
    if reading.definitions:
        first = merge_names(names, shown, proposals, rules)
        proposals += propose_acronyms(reading.definitions, first.canonical, rules)
    proposals += propose_middle_names(names, _Holds(corpus, reading, pairs))
    return merge_names(names, shown, proposals, rules)


class _Holds:
    """Whether some document holds two names, in its text or as its title."""

    def __init__(self, corpus: Corpus, reading: Reading, pairs: Longs) -> None:
        size = max(1, len(reading.names))
        titles = [(index, reading.row_of[one.bare]) for index, one in enumerate(corpus.documents) if one.bare]
        codes = np.array([index * size + row for index, row in titles if row >= 0], dtype=np.int64)
        self._size, self._codes = size, distinct(np.concatenate([pairs, codes]))
        self._order = np.argsort(self._codes % size, kind="stable")
        self._names = (self._codes % size)[self._order]

    def __call__(self, one: int, other: int) -> bool:
        documents = [self._documents(row) for row in (one, other)]
        return bool(np.intersect1d(documents[0], documents[1], assume_unique=True).size)

    def _documents(self, name: int) -> Longs:
        begin, end = np.searchsorted(self._names, (name, name + 1))
        held: Longs = self._codes[self._order[begin:end]] // self._size
        return held


def _resolve(
    corpus: Corpus, reading: Reading, shown: Sequence[str], merged: Merged, pairs: Longs, rules: EntityRules
) -> Resolved:
    canonical = np.array(merged.canonical, dtype=np.int32)
    first = np.searchsorted(corpus.document_of, np.arange(len(corpus.documents)))
    openings = [
        corpus.texts[chunk] if chunk < len(corpus.texts) and corpus.document_of[chunk] == index else ""
        for index, chunk in enumerate(first.tolist())
    ]

    def canonical_of(name: str) -> int:
        row = reading.row_of.get(name, -1)
        return merged.canonical[row] if row >= 0 else -1

    stated = state_senses(corpus, canonical_of, openings)
    return resolve_mentions(reading.names, canonical, shown, stated, pairs, reading.definitions, rules)


def _stated_things(corpus: Corpus, reading: Reading, resolved: Resolved) -> Iterator[_StatedThing]:
    """Everything documents state: their titles, the names given with them, their symbols and the ends of their triples."""
    for index, document in enumerate(corpus.documents):
        title, facts = resolved.stated.title_of[index], document.facts
        if title >= 0:
            yield _StatedThing(index, title, reading.row_of[document.bare], document.bare, True)
        if not facts:
            continue
        texts = {
            *(name for name, _ in facts.names),
            *(qualified for _, qualified in facts.symbols),
            *facts.repositories,
            *(end for subject, _, target in facts.triples for end in (subject, target)),
        }
        for text in sorted(texts):
            row = reading.row_of.get(text, -1)
            if row >= 0:
                yield _StatedThing(index, resolved.means(index, row), row, text)


def _linked(corpus: Corpus, reading: Reading, resolved: Resolved, numbered: Numbered) -> Linked:
    codes = reading.document.astype(np.int64) * max(1, len(reading.names)) + reading.name
    sense = resolved.meaning[np.searchsorted(resolved.pairs, codes)]
    title = np.array(resolved.stated.title_of, dtype=np.int64)
    titled = np.where(title >= 0, numbered.of_sense[title], -1).astype(np.int64) if len(title) else title
    return Linked(corpus, reading, numbered.of_sense[sense].astype(np.int64), titled, len(numbered.keys))


def _beside_text(linked: Linked, given: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What documents without a title state beside their text, as (first chunk, entity); no title can carry it."""
    found: set[tuple[int, int]] = set()
    of = linked.corpus.document_of
    named = set(zip(linked.reading.document.tolist(), linked.entity.tolist(), strict=True)) if given else set()
    for document, entity in given:
        chunk = int(np.searchsorted(of, document))
        held = chunk < len(of) and of[chunk] == document
        if held and linked.title[document] < 0 and (document, entity) not in named:
            found.add((chunk, entity))
    return sorted(found)


def _triples(linked: Linked, resolved: Resolved, numbered: Numbered) -> list[StatedRelation]:
    documents = linked.corpus.documents
    triples = [(index, triple) for index, document in enumerate(documents) for triple in document.facts.triples]

    def meaning(document: int, text: str) -> int:
        sense = resolved.means(document, linked.reading.row_of.get(text, -1))
        return int(numbered.of_sense[sense]) if sense >= 0 else -1

    wanted = {index for index, _ in triples}
    sentences = Sentences(linked.reading.document, linked.reading.sentence, linked.entity, wanted)
    return stated_relations(triples, meaning, sentences)


def _spellings(
    linked: Linked,
    resolved: Resolved,
    numbered: Numbered,
    stated: Sequence[_StatedThing],
    written: Mapping[int, Mapping[str, int]],
) -> Spellings:
    """Every way each entity is written in texts or stated by sources, and why its names are known."""
    names = linked.reading.names
    size = max(1, len(names))
    spellings = Spellings(len(numbered.keys))
    meant = numbered.of_sense[resolved.meaning].astype(np.int64)
    for code in distinct(meant * size + resolved.pairs % size).tolist():
        spellings.texts[code // size].update(text for text, count in written[code % size].items() if count)
    for one in stated:
        entity = int(numbered.of_sense[one.sense])
        spellings.texts[entity].add(one.text)
        spellings.origin[entity] |= int(names.origin[one.name])
    np.bitwise_or.at(spellings.origin, meant, names.origin[resolved.pairs % size])
    return spellings


def _titles(linked: Linked, documents: Sequence[str], ids: Sequence[str]) -> pa.Table:
    rows = [(documents[index], ids[title]) for index, title in enumerate(linked.title.tolist()) if title >= 0]
    columns = {"document": [row[0] for row in rows], "entity": [row[1] for row in rows]}
    return pa.table(columns, schema=pa.schema([("document", pa.string()), ("entity", pa.string())]))
