"""Entities, mentions, relations and the merge log of a corpus: one pure function of the set of its documents.

The same documents give the same tables whatever order they came in, so a store that writes only the difference between
two derivations holds exactly what a build from scratch would.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from hades.ingest.entities.aliases import (
    AliasMerge,
    merge_names,
    propose_acronyms,
    propose_aliases,
    propose_middle_names,
)
from hades.ingest.entities.coreference import link_short_forms
from hades.ingest.entities.corpus import Corpus, CorpusView, read_corpus
from hades.ingest.entities.entity_domains import entity_domains
from hades.ingest.entities.entity_rows import EntityNumbers, Spellings, entities_table, number_entities
from hades.ingest.entities.keys import EdgeKeys, NodeIds
from hades.ingest.entities.linking import (
    DocumentNames,
    LinkedCorpus,
    link_chunks,
    link_companions,
    link_titles,
    link_triples,
)
from hades.ingest.entities.merge_log import log_rows, merge_log_table
from hades.ingest.entities.names import Origin
from hades.ingest.entities.page_kinds import page_kinds
from hades.ingest.entities.reading import Reading, read_names, read_stated_names, show_names
from hades.ingest.entities.resolve import SenseResolution, resolve_mentions
from hades.ingest.entities.rules import EntityRules
from hades.ingest.entities.senses import state_senses
from hades.ingest.entities.summaries import entity_summaries
from hades.ingest.entities.tables import relations_table
from hades.ingest.entities.triples import Sentences, StatedRelation, read_stated_relations
from hades.ingest.readings.kept_answers import KeptAnswers
from hades.ingest.readings.kept_readings import KeptReadings
from hades.ingest.readings.read_chunks import read_chunks
from hades.ingest.readings.text_readings import TextReadings
from hades.ingest.workers.worker_pool import WorkerPool
from hades.text.arrays import Flags, Longs, distinct
from schemas.ids import node_id
from schemas.nodes import NameType


@dataclass(frozen=True)
class DerivedRows:
    """What follows from a corpus, in the catalogue's schemas; `titles` joins documents to the entities of titles."""

    entities: pa.Table
    mentions: pa.Table
    relations: pa.Table
    merge_log: pa.Table
    titles: pa.Table  # document, entity: both `_id`


def derive(
    view: CorpusView,
    rules: EntityRules | None = None,
    scratch: Path | None = None,
    pool: WorkerPool | None = None,
) -> DerivedRows:
    """Reads the corpus, decides which names are known and what each mention means, and links what is named together.

    In the folder `scratch` it keeps what follows from single texts and sentences; the result is the same without it.
    """
    with _collector_paused():
        corpus = read_corpus(view)
        readings = KeptReadings(scratch) if scratch is not None else None
        read = read_chunks(corpus, pool or WorkerPool(1), readings)
        return _derive(corpus, read, rules or EntityRules(), KeptAnswers(scratch) if scratch is not None else None)


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


def _derive(corpus: Corpus, read: TextReadings, rules: EntityRules, kept: KeptAnswers | None) -> DerivedRows:
    stated_strings = read_stated_names(corpus)
    reading = read_names(corpus, read, stated_strings, rules)
    shown, written = show_names(reading, stated_strings)
    pairs = distinct(reading.document.astype(np.int64) * max(1, len(reading.names)) + reading.name)
    merged = _merge(corpus, reading, shown, pairs, rules)
    resolved = _resolve(corpus, page_kinds(corpus, kept), reading, shown, merged, pairs, rules)
    stated = _read_stated_things(corpus, reading, resolved)
    numbered = number_entities(resolved.senses, np.concatenate([resolved.meaning, stated.sense]))
    linked = _link(corpus, reading, resolved, numbered)
    beside = np.flatnonzero(~stated.is_title)
    given = DocumentNames(stated.document[beside], numbered.of_sense[stated.sense[beside]].astype(np.int64))
    ids, keys = NodeIds(numbered.ids()), EdgeKeys(kept)
    mentions, frequency = link_chunks(linked, given, ids, keys)
    relations = [
        link_titles(linked, given),
        link_triples(linked, _triples(linked, resolved, numbered)),
        link_companions(linked, rules),
        link_short_forms(linked, numbered.of_sense[resolved.of_name[reading.name]].astype(np.int64), numbered.senses),
    ]
    documents = [node_id("documents", document.key) for document in corpus.documents]
    return DerivedRows(
        entities_table(
            numbered,
            _spellings(linked, resolved, numbered, stated, written, stated_strings),
            frequency,
            entity_domains(linked, given),
            entity_summaries(linked, kept),
        ),
        mentions,
        relations_table(relations, ids, documents, corpus.created, keys),
        merge_log_table(log_rows(merged.log, resolved, shown, written)),
        _titles(linked, documents, ids.ids),
    )


@dataclass(frozen=True)
class _StatedThings:
    """Names that documents state, in order of documents: which name, in which words, what it means, if as a title."""

    document: Longs
    name: Longs
    sense: Longs
    is_title: Flags
    text: tuple[str, ...]


def _merge(corpus: Corpus, reading: Reading, shown: Sequence[str], pairs: Longs, rules: EntityRules) -> AliasMerge:
    """Folds names that are spellings of each other; acronyms second, once plurals agree on the long form."""
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
    corpus: Corpus,
    kinds: Sequence[NameType | None],
    reading: Reading,
    shown: Sequence[str],
    merged: AliasMerge,
    pairs: Longs,
    rules: EntityRules,
) -> SenseResolution:
    canonical = np.array(merged.canonical, dtype=np.int32)

    def canonical_of(name: str) -> int:
        row = reading.row_of.get(name, -1)
        return merged.canonical[row] if row >= 0 else -1

    stated = state_senses(corpus, canonical_of, kinds)
    return resolve_mentions(reading.names, canonical, shown, stated, pairs, reading.definitions, rules)


def _read_stated_things(corpus: Corpus, reading: Reading, resolved: SenseResolution) -> _StatedThings:
    """Everything documents state: titles, names given with them, their symbols and the ends of their triples."""
    row_of, title_of = reading.row_of, resolved.stated.title_of
    documents: list[int] = []
    texts: list[str] = []
    first: list[int] = []
    for index, document in enumerate(corpus.documents):
        if title_of[index] >= 0:
            first.append(len(texts))
            texts.append(document.bare)
            documents.append(index)
        if document.facts:
            named = document.facts.all_names()
            texts.extend(named)
            documents.extend([index] * len(named))
    where = np.array(documents, dtype=np.int64)
    names = np.fromiter((row_of.get(text, -1) for text in texts), dtype=np.int64, count=len(texts))
    is_title = np.zeros(len(texts), dtype=np.bool_)
    is_title[first] = True
    sense = resolved.means(where, names)
    symbols = resolved.stated.symbols
    if symbols:
        exact = np.fromiter((symbols.get(text, -1) for text in texts), dtype=np.int64, count=len(texts))
        sense = np.where(exact >= 0, exact, sense)
    sense[is_title] = np.array(title_of, dtype=np.int64)[where[is_title]]
    known = np.flatnonzero(sense >= 0)
    kept = tuple(texts[row] for row in known.tolist()) if len(known) < len(texts) else tuple(texts)
    return _StatedThings(where[known], names[known], sense[known], is_title[known], kept)


def _link(corpus: Corpus, reading: Reading, resolved: SenseResolution, numbered: EntityNumbers) -> LinkedCorpus:
    codes = reading.document.astype(np.int64) * max(1, len(reading.names)) + reading.name
    sense = resolved.meaning[np.searchsorted(resolved.pairs, codes)]
    title = np.array(resolved.stated.title_of, dtype=np.int64)
    titled = np.append(numbered.of_sense, -1)[title].astype(np.int64)  # -1, without a title, is the last place
    return LinkedCorpus(corpus, reading, numbered.of_sense[sense].astype(np.int64), titled, len(numbered.keys))


def _triples(linked: LinkedCorpus, resolved: SenseResolution, numbered: EntityNumbers) -> list[StatedRelation]:
    row_of = linked.reading.row_of
    triples = [(index, triple) for index, one in enumerate(linked.corpus.documents) for triple in one.facts.triples]
    documents = np.array([index for index, _ in triples], dtype=np.int64)
    ends = [
        resolved.means(documents, np.array([row_of.get(triple[end], -1) for _, triple in triples], dtype=np.int64))
        for end in (0, 2)
    ]
    subject, target = (np.where(end >= 0, numbered.of_sense[end], -1).tolist() for end in ends)
    rows = zip(documents.tolist(), subject, (triple[1] for _, triple in triples), target, strict=True)
    reading = linked.reading
    sentences = Sentences(reading.document, reading.sentence, linked.entity, set(documents.tolist()))
    return read_stated_relations(rows, sentences)


def _spellings(
    linked: LinkedCorpus,
    resolved: SenseResolution,
    numbered: EntityNumbers,
    stated: _StatedThings,
    written: Mapping[int, Mapping[str, int]],
    why: Mapping[str, int],
) -> Spellings:
    """Every way each entity is written in texts or stated by sources, and why its names are known."""
    names = linked.reading.names
    size = max(1, len(names))
    spellings = Spellings(len(numbered.keys))
    meant = numbered.of_sense[resolved.meaning].astype(np.int64)
    for code in distinct(meant * size + resolved.pairs % size).tolist():
        spellings.texts[code // size].update(text for text, count in written[code % size].items() if count)
    said = numbered.of_sense[stated.sense]
    for entity, text in zip(said.tolist(), stated.text, strict=True):
        # The end of a triple is no spelling to go by: "state" must not find every State.
        if why[text] != Origin.PHRASE or not spellings.texts[entity]:
            spellings.texts[entity].add(text)
    np.bitwise_or.at(spellings.origin, said, names.origin[stated.name])
    np.bitwise_or.at(spellings.origin, meant, names.origin[resolved.pairs % size])
    return spellings


def _titles(linked: LinkedCorpus, documents: Sequence[str], ids: Sequence[str]) -> pa.Table:
    rows = [(documents[index], ids[title]) for index, title in enumerate(linked.title.tolist()) if title >= 0]
    columns = {"document": [row[0] for row in rows], "entity": [row[1] for row in rows]}
    return pa.table(columns, schema=pa.schema([("document", pa.string()), ("entity", pa.string())]))
