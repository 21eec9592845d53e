"""Which names a change touches, joined with the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.aliases import PRIORITY, Alias
from hades.ingest.entities.corpus import Corpus, NodeIds, Signatures, join_all, sign_numbers, sign_texts
from hades.ingest.entities.find_names import PARTED, KnownMentions, Reading, Statements
from hades.ingest.entities.known_names import Names, Origin
from hades.ingest.entities.links import DocumentNames, LinkedCorpus
from hades.ingest.entities.meanings import NameMeanings
from hades.ingest.entities.previous_run import OWNER, FormerArrays, FormerDerivation, NameLinks
from hades.ingest.entities.resolve import LONGEST_PERSON, short_names
from hades.text.words import Flags, Hashes, Longs, distinct
from schemas.ids import node_id

# Which names may change each other: spellings of one name, acronyms, short forms in one document, parts of symbols.
# What a name stands for follows from itself and from the names that it is linked with, over any number of links.
# Names that could never act on each other may be linked; that costs time only.


_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def find_links(
    corpus: Corpus,
    statements: Statements,
    reading: Reading,
    proposals: Sequence[Alias],
    pairs: Longs,
    titles: Longs,
) -> NameLinks:
    """All links. `pairs` are sorted document * n_names + name, `titles` the name of each document's title, or -1."""
    identity = reading.names.identity
    rows = np.array([(one.alias, one.canonical) for one in proposals], dtype=np.int64).reshape(-1, 2)
    rules = np.array([PRIORITY.index(one.rule) for one in proposals], dtype=np.int64)
    scores = np.array([one.score for one in proposals], dtype=np.float64).view(np.uint64)
    told = np.array([row[1:] for row in reading.definitions], dtype=np.int64).reshape(-1, 2)
    short = _short_links(reading.names, pairs, titles)
    rows = np.concatenate([rows, told, short])
    mark = np.zeros(len(rows), dtype=np.uint64)
    mark[: len(rules)] = sign_numbers(rules + 1).mix(scores).high
    symbols = _symbol_links(corpus, statements, reading)
    links = NameLinks(
        np.concatenate([identity[rows[:, 0]], symbols[0]]),
        np.concatenate([identity[rows[:, 1]], symbols[1]]),
        np.concatenate([mark, np.zeros(len(symbols[0]), dtype=np.uint64)]),
    )
    _, first = np.unique(links.codes(), return_index=True)
    return NameLinks(links.one[first], links.other[first], links.mark[first])


def _short_links(names: Names, pairs: Longs, titles: Longs) -> Longs:
    """(short, full) rows of names that one document holds, where the short one has the first or last word of the full.

    That is more than `short_forms.py` lets pass: it also asks what kind of thing the full name is.
    """
    size = max(1, len(names))
    document, name = pairs // size, pairs % size
    words = np.diff(names.offsets)
    full = names.has(Origin.NAME | Origin.STATED) & names.has(Origin.CAPITAL) & ~names.has(Origin.TERM)
    full &= (words > 1) & (words <= LONGEST_PERSON)
    held, titled = np.flatnonzero(full[name]) if len(name) else name, np.flatnonzero(titles >= 0)
    full_document, full_name = np.concatenate([document[held], titled]), np.concatenate([name[held], titles[titled]])
    short = np.flatnonzero(short_names(names)[name]) if len(name) else name
    short_document, short_name = document[short], name[short]
    last, first = names.offsets[1:] - 1, names.offsets[:-1]
    found = [
        _join(_code(full_document, names.words[ends[full_name]]), _code(short_document, names.words[last[short_name]]))
        for ends in (last, first)
    ]
    return np.concatenate([np.stack([short_name[right], full_name[left]], axis=1) for left, right in found])


def _code(document: Longs, word: Hashes) -> Hashes:
    codes: Hashes = document.astype(np.uint64) * _SPREAD ^ word
    return codes


def _join(left: Hashes, right: Hashes) -> tuple[Longs, Longs]:
    """All pairs of places with equal values."""
    order = np.argsort(left, kind="stable")
    ordered = left[order]
    begin, end = (np.searchsorted(ordered, right, side=side) for side in ("left", "right"))
    count = end - begin
    place = np.repeat(np.arange(len(right)), count)
    inside = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return order[np.repeat(begin, count) + inside], place


def _symbol_links(corpus: Corpus, statements: Statements, reading: Reading) -> tuple[Hashes, Hashes]:
    """Code symbols with the name of their last part, and with all others that share it."""
    identity, row_of = reading.names.identity, reading.row_of
    ends: dict[str, list[int]] = {}
    for row in statements.documents_with(PARTED):
        facts = corpus.documents[row].facts
        for name in (*(qualified for _, qualified in facts.symbols), *facts.repositories):
            last = name.rpartition(".")[2]
            held = ends.setdefault(last, [row_of.get(last, -1)])
            held.append(row_of.get(name, -1))
    hubs = sign_texts(f"symbol {last}" for last in ends).high
    hub = np.repeat(hubs, [len(held) for held in ends.values()])
    rows = np.array([row for held in ends.values() for row in held], dtype=np.int64)
    known = rows >= 0
    return hub[known], identity[rows[known]]


# Which names a change touches: those that follow from something else than last time, and all linked with them.


def sign_names(corpus: Corpus, reading: Reading, stated: tuple[Longs, Longs]) -> Signatures:
    """The signature of all that each name follows from, so far as it is its own.

    That is why it is known, which of its words are common, the chunks that mention it and where, and the documents that
    state it: `stated` are documents and names. The signature of a chunk covers its text, that of a document its chunks.
    """
    names, size = reading.names, len(reading.names)
    common = names.words_where(reading.common.__contains__)
    place = np.arange(len(common)) - np.repeat(names.offsets[:-1], np.diff(names.offsets))
    bits = common.astype(np.uint64) << np.minimum(place, 63).astype(np.uint64)
    ordinary = np.bitwise_or.reduceat(bits, names.offsets[:-1]) if size else bits
    own = (
        sign_numbers(names.identity).mix(names.origin.astype(np.int64)).mix(names.texts.astype(np.int64)).mix(ordinary)
    )
    said = corpus.chunk_signatures.take(reading.chunk.astype(np.int64)).mix(reading.start).mix(reading.end)
    told = np.array(reading.definitions, dtype=np.int64).reshape(-1, 3)
    document = np.concatenate([stated[0], told[:, 0], told[:, 0]])
    name = np.concatenate([stated[1], told[:, 1], told[:, 2]])
    kind = np.repeat(np.arange(2), [len(stated[0]), 2 * len(told)])
    return own.join(said.add_up(reading.name.astype(np.int64), size)).join(
        corpus.document_signatures.take(document).mix(kind).add_up(name, size)
    )


def find_touched(former: FormerArrays, identity: Hashes, signed: Signatures, links: NameLinks) -> Hashes:
    """Identities of the names, also of former ones, that must be looked at again."""
    seeds = [former.always, *_changed_names(former, identity, signed)]
    before = former.links()
    codes = before.codes(), links.codes()
    for one, code, others in ((before, codes[0], codes[1]), (links, codes[1], codes[0])):
        moved = ~np.isin(code, others)
        seeds += [one.one[moved], one.other[moved]]
    return close(distinct(np.concatenate(seeds)), before, links)


def close(seeds: Hashes, *links: NameLinks) -> Hashes:
    """The names and all that are linked with them over any number of links."""
    one = np.concatenate([part.one for part in links])
    other = np.concatenate([part.other for part in links])
    while True:
        here, there = np.isin(one, seeds), np.isin(other, seeds)
        reached = np.concatenate([one[there & ~here], other[here & ~there]])
        if not len(reached):
            return seeds
        left = here == there
        one, other = one[left & ~here], other[left & ~here]
        seeds = distinct(np.concatenate([seeds, reached]))


def _changed_names(former: FormerArrays, identity: Hashes, signed: Signatures) -> tuple[Hashes, Hashes]:
    """Names that are new or follow from something else, and names that are no more."""
    if not len(former.name):
        return identity, former.name
    place = np.minimum(np.searchsorted(former.name, identity), len(former.name) - 1)
    same = (former.name[place] == identity) & former.signatures().take(place).equal(signed)
    return identity[~same], former.name[~np.isin(former.name, identity)]


# The meanings of all names: of those that a change touched, and for all others what the last derivation found.


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
        elsewhere = _join_meanings(elsewhere, take(rows, arrays.pair_document, arrays.pair_name, arrays.pair_entity))
        rows = np.flatnonzero(~np.isin(arrays.stated_name, touched))
        stated = _join_meanings(stated, take(rows, arrays.stated_document, arrays.stated_name, arrays.stated_entity))
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


def _join_meanings(one: _MeaningRows, other: _MeaningRows) -> _MeaningRows:
    return _MeaningRows(
        np.concatenate([one.document, other.document]),
        np.concatenate([one.name, other.name]),
        np.concatenate([one.entity, other.entity]),
    )


def _map(numbers: Longs, values: Longs) -> Longs:
    """The number that each value became; -1 stays."""
    return np.append(numbers, -1)[values]
