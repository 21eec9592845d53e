"""The meanings of all names: of those that a change touched, and for all others what the last derivation found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.keys import NodeIds
from hades.ingest.entities.linking import DocumentNames, LinkedCorpus
from hades.ingest.entities.reading import Reading
from hades.ingest.increment.former_derivation import OWNER, FormerArrays, FormerDerivation, NameLinks
from hades.ingest.increment.kept_mentions import KnownMentions
from hades.ingest.increment.name_meanings import NameMeanings
from hades.ingest.readings.signatures import Signatures, join_all, sign_texts
from hades.text.arrays import Flags, Hashes, Longs, distinct
from schemas.ids import node_id


@dataclass(frozen=True)
class EntityPlaces:
    """All entities in the order of their keys: where each comes from, and the number that each became."""

    keys: pa.StringArray
    signatures: Signatures  # of their ids
    place: Longs  # a row of the former entities or, counted on from these, an entity of the touched names
    of_former: Longs  # -1 for one that is gone
    of_touched: Longs

    def ids(self) -> NodeIds:
        """The ids of the entities."""
        return NodeIds(pc.binary_join_element_wise("entities", self.keys, "/"), self.signatures)


@dataclass(frozen=True)
class _MeaningRows:
    """What documents mean by names: rows of both and the entity, -1 for none."""

    document: Longs
    name: Longs
    entity: Longs


@dataclass(frozen=True)
class AllMeanings:
    """What every name means, by the numbers of all entities."""

    places: EntityPlaces
    of_name: Longs  # where the document does not tell, -1 for none
    elsewhere: _MeaningRows  # where a document tells
    stated: _MeaningRows
    meant: Longs  # beside `stated`: by the name alone
    is_title: Flags

    def link(self, corpus: Corpus, reading: Reading) -> LinkedCorpus:
        """The entity of every mention and of every title."""
        size = max(1, len(reading.names))
        codes = self.elsewhere.document * size + self.elsewhere.name
        order = np.argsort(codes)
        entity = self.of_name[reading.name]
        if len(order):
            asked = reading.document.astype(np.int64) * size + reading.name
            where = order[np.minimum(np.searchsorted(codes[order], asked), len(order) - 1)]
            entity = np.where(codes[where] == asked, self.elsewhere.entity[where], entity)
        title = np.full(len(corpus.documents), -1, dtype=np.int64)
        title[self.stated.document[self.is_title]] = self.stated.entity[self.is_title]
        return LinkedCorpus(corpus, reading, entity, title, len(self.places.keys))

    def given(self) -> DocumentNames:
        """What documents state beside their titles, in order of documents."""
        beside = np.flatnonzero(~self.is_title)
        beside = beside[np.argsort(self.stated.document[beside], kind="stable")]
        return DocumentNames(self.stated.document[beside], self.stated.entity[beside])

    def means(self, document: Longs, name: Longs, n_names: int) -> Longs:
        """The entity that documents mean by names that they state beside their titles, -1 for none."""
        beside = np.flatnonzero(~self.is_title)
        codes = self.stated.document[beside] * max(1, n_names) + self.stated.name[beside]
        order = np.argsort(codes, kind="stable")
        asked = document * max(1, n_names) + name
        if not len(order):
            return np.full(len(asked), -1, dtype=np.int64)
        where = order[np.minimum(np.searchsorted(codes[order], asked), len(order) - 1)]
        return np.where((codes[where] == asked) & (name >= 0), self.meant[beside[where]], -1)


def find_clashes(former: FormerDerivation | None, touched: Hashes, meanings: NameMeanings) -> Hashes:
    """Names, not touched, of entities that have the key of an entity of a touched name: both must be told apart."""
    if former is None:
        return np.zeros(0, dtype=np.uint64)
    table = former.entities.table
    shared = pc.is_in(table.column("_key"), value_set=pa.array(meanings.numbered.keys, pa.string())).to_numpy()
    owner = table.column(OWNER).to_numpy()[shared]
    return distinct(owner[~np.isin(owner, touched)])


def join_meanings(
    corpus: Corpus, reading: Reading, meanings: NameMeanings, former: FormerDerivation | None, touched: Hashes
) -> AllMeanings:
    """The meanings of touched names with those of all others, which the last derivation found."""
    places = _place_entities(meanings, former, touched)
    names = reading.names
    of_name = np.full(len(names), -1, dtype=np.int64)
    of_name[meanings.rows] = _map(places.of_touched, meanings.entity(meanings.resolved.of_name.astype(np.int64)))
    elsewhere, stated = _new_meanings(meanings, places), _new_statements(meanings, places)
    meant = _map(places.of_touched, meanings.entity(meanings.stated.meant))
    is_title = meanings.stated.is_title
    if former is not None:
        arrays = former.arrays
        kept = np.flatnonzero(~np.isin(arrays.name, touched))
        of_name[names.numbers(arrays.name[kept])] = _map(places.of_former, arrays.name_entity[kept])
        documents = _DocumentNumbers(corpus)

        def take(rows: Longs, document: Hashes, name: Hashes, entity: Longs) -> _MeaningRows:
            by_number = _map(places.of_former, entity[rows])
            return _MeaningRows(documents.find(document[rows]), names.numbers(name[rows]), by_number)

        rows = np.flatnonzero(~np.isin(arrays.pair_name, touched))
        elsewhere = _join(elsewhere, take(rows, arrays.pair_document, arrays.pair_name, arrays.pair_entity))
        rows = np.flatnonzero(~np.isin(arrays.stated_name, touched))
        stated = _join(stated, take(rows, arrays.stated_document, arrays.stated_name, arrays.stated_entity))
        meant = np.concatenate([meant, _map(places.of_former, arrays.stated_meant[rows])])
        is_title = np.concatenate([is_title, arrays.stated_title[rows]])
    return AllMeanings(places, of_name, elsewhere, stated, meant, is_title)


def find_beside(reading: Reading, pairs: Longs, rows: Longs, former: FormerDerivation | None) -> tuple[Longs, Longs]:
    """Documents and numbers of the meanings of all names but these: what a name means where no document tells."""
    if former is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    size = max(1, len(reading.names))
    is_other = np.ones(size, dtype=np.bool_)
    is_other[rows] = False
    name = pairs % size
    held = np.flatnonzero(is_other[name])
    arrays = former.arrays
    place = np.searchsorted(arrays.name, reading.names.identity[name[held]])
    return pairs[held] // size, np.unique(arrays.name_sense[place], return_inverse=True)[1].astype(np.int64)


def pack_arrays(
    corpus: Corpus,
    reading: Reading,
    signed: Signatures,
    links: NameLinks,
    meanings: NameMeanings,
    all_meanings: AllMeanings,
    former: FormerDerivation | None,
    known: KnownMentions,
) -> FormerArrays:
    """What the next derivation needs of this one."""
    identity, ids = reading.names.identity, corpus.document_ids
    sense = np.zeros(len(identity), dtype=np.uint64)
    if former is not None and len(former.arrays.name):
        place = np.minimum(np.searchsorted(former.arrays.name, identity), len(former.arrays.name) - 1)
        sense = former.arrays.name_sense[place]
    owned = zip(meanings.owner.tolist(), meanings.resolved.senses, strict=True)
    said = ("\x1f".join((str(owner), *one[:5])) for owner, one in owned)
    sense[meanings.rows] = sign_texts(said).high[meanings.resolved.of_name]
    elsewhere, stated = all_meanings.elsewhere, all_meanings.stated
    return FormerArrays(
        identity,
        signed.high,
        signed.low,
        all_meanings.of_name,
        sense,
        links.one,
        links.other,
        links.mark,
        meanings.doubtful_names(),
        ids[elsewhere.document],
        identity[elsewhere.name],
        elsewhere.entity,
        ids[stated.document],
        identity[stated.name],
        stated.entity,
        all_meanings.meant,
        all_meanings.is_title,
        known.sought,
        known.how,
        known.text,
        known.count,
        known.name,
        known.first,
        known.size,
    )


def _place_entities(meanings: NameMeanings, former: FormerDerivation | None, touched: Hashes) -> EntityPlaces:
    keys = pa.array(meanings.numbered.keys, pa.string())
    signed = sign_texts(node_id("entities", key) for key in meanings.numbered.keys)
    stay, n_former = np.zeros(0, dtype=np.int64), 0
    if former is not None:
        table = former.entities.table
        n_former = table.num_rows
        stay = np.flatnonzero(~np.isin(table.column(OWNER).to_numpy(), touched))
        keys = pa.concat_arrays([table.column("_key").combine_chunks().take(pa.array(stay)), keys])
        signed = join_all([former.entities.signatures.take(stay), signed])
    order = pc.sort_indices(keys).to_numpy().astype(np.int64)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    of_former = np.full(n_former, -1, dtype=np.int64)
    of_former[stay] = number[: len(stay)]
    place = np.concatenate([stay, n_former + np.arange(len(order) - len(stay))])[order]
    return EntityPlaces(keys.take(pa.array(order)), signed.take(order), place, of_former, number[len(stay) :])


def _new_meanings(meanings: NameMeanings, places: EntityPlaces) -> _MeaningRows:
    """Where documents mean something else by a touched name than it means otherwise."""
    resolved, size = meanings.resolved, max(1, len(meanings.reading.names))
    document, name = np.divmod(resolved.pairs, size)
    entity = meanings.entity(resolved.meaning.astype(np.int64))
    other = np.flatnonzero(resolved.meaning != resolved.of_name[name])
    return _MeaningRows(document[other], meanings.rows[name[other]], _map(places.of_touched, entity[other]))


def _new_statements(meanings: NameMeanings, places: EntityPlaces) -> _MeaningRows:
    stated = meanings.stated
    entity = _map(places.of_touched, meanings.entity(stated.sense))
    return _MeaningRows(stated.document, meanings.rows[stated.name], entity)


class _DocumentNumbers:
    """Documents by the numbers of their keys."""

    def __init__(self, corpus: Corpus) -> None:
        self._order = np.argsort(corpus.document_ids)
        self._ids = corpus.document_ids[self._order]

    def find(self, ids: Hashes) -> Longs:
        """The row of each document; each is there."""
        found: Longs = self._order[np.searchsorted(self._ids, ids)]
        return found


def _join(one: _MeaningRows, other: _MeaningRows) -> _MeaningRows:
    return _MeaningRows(
        np.concatenate([one.document, other.document]),
        np.concatenate([one.name, other.name]),
        np.concatenate([one.entity, other.entity]),
    )


def _map(numbers: Longs, values: Longs) -> Longs:
    """The number that each value became; -1 stays."""
    return np.append(numbers, -1)[values]
