"""Mentions of a corpus, kept where nothing changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.ingest.entities.candidates import Mark
from hades.ingest.entities.corpus import Corpus, Document
from hades.ingest.entities.known_names import RARE, EntityRules, Gazetteer, Names, Origin, build_gazetteer
from hades.ingest.entities.mentions import MentionMatches, add_proposals, find_mentions
from hades.ingest.entities.text_readings import ACRONYM, LONG_FORM, OPENS, PIECE, TextReadings, find_ranges
from hades.ingest.write_changes import FormerRows, reuse_rows
from hades.text.words import Bits, Flags, Hashes, Ints, Longs, Words, distinct

# Mentions chunk by chunk: a text that the last derivation knew keeps its mentions unless a name in it is sought
# anew. Which mentions a text holds follows from its words and from how each name that stands in it is sought
# (`Gazetteer`). A name that is no longer sought, or otherwise, matters where it was mentioned; one that is sought
# anew wherever its words stand. All other texts hold the mentions that they held.


_MOST = 2_000  # names sought anew; for more all texts are read


@dataclass(frozen=True)
class KnownMentions:
    """How names are sought, and of each text the mentions: names, first words counted in the text, and words."""

    sought: Hashes  # sorted
    how: Bits
    text: Hashes  # a number for each text
    count: Ints
    name: Hashes
    first: Ints
    size: Bits


Find = Callable[[Longs], MentionMatches]  # the mentions of some texts, by rows of all words


def find_again(
    read: TextReadings, names: Names, how: Bits, texts: Hashes, former: KnownMentions | None, find: Find
) -> tuple[MentionMatches, KnownMentions]:
    """The mentions of all texts, and what the next derivation needs of them. `texts` numbers the texts by content."""
    begins = np.cumsum(read.n_words) - read.n_words
    dirty = _find_dirty(read, names, how, texts, former) if former else None
    if dirty is None or former is None:
        found = find(np.arange(len(read)))
    else:
        found = _join(find(np.flatnonzero(dirty)), _take_former(names, texts, former, begins, np.flatnonzero(~dirty)))
    text = np.searchsorted(begins, found.first, side="right") - 1
    seen = np.flatnonzero(how)
    kept = KnownMentions(
        names.identity[seen],
        how[seen],
        texts,
        np.bincount(text, minlength=len(read)).astype(np.int32),
        names.identity[found.name],
        (found.first - begins[text]).astype(np.int32),
        (found.last - found.first).astype(np.uint8),
    )
    return found, kept


def _find_dirty(read: TextReadings, names: Names, how: Bits, texts: Hashes, former: KnownMentions) -> Flags | None:
    """Texts whose mentions must be found again; None when these are nearly all."""
    before = np.zeros(len(names), dtype=np.uint8)
    place = names.numbers(former.sought)
    before[place[place >= 0]] = former.how[place >= 0]
    changed = np.flatnonzero(before != how)
    anew = changed[how[changed] != 0]
    if len(anew) > _MOST:
        return None
    flipped = np.concatenate([names.identity[changed], former.sought[place < 0]])
    owner = np.repeat(np.arange(len(former.text)), former.count)
    touched = np.zeros(len(former.text), dtype=np.bool_)
    touched[owner[np.isin(former.name, flipped)]] = True
    dirty: Flags = ~np.isin(texts, former.text[~touched])
    dirty[_texts_with(read, names, anew)] = True
    return dirty


def _texts_with(read: TextReadings, names: Names, rows: Longs) -> Longs:
    """Texts in which the words of one of these names stand one after the other."""
    ends = np.cumsum(read.n_words)
    found: list[Longs] = []
    words = [names.words[names.offsets[row] : names.offsets[row + 1]] for row in rows.tolist()]
    numbers = [number for one in words if (number := _known_words(read.vocabulary, one)) is not None]
    if not numbers:
        return np.zeros(0, dtype=np.int64)
    is_first = np.zeros(len(read.vocabulary), dtype=np.bool_)
    is_first[[int(number[0]) for number in numbers]] = True
    starts = np.flatnonzero(is_first[read.word])
    opening = read.word[starts]
    for number in numbers:
        here = starts[opening == number[0]]
        for step, word in enumerate(number[1:].tolist(), 1):
            here = here[here + step < len(read.word)]
            here = here[read.word[here + step] == word]
        found.append(np.searchsorted(ends, here, side="right"))
    return np.concatenate(found)


def _known_words(vocabulary: Hashes, words: Hashes) -> Longs | None:
    """The words as rows of the vocabulary; None when one of them is not there."""
    place = np.searchsorted(vocabulary, words)
    held = place < len(vocabulary)
    return place if held.all() and (vocabulary[place] == words).all() else None


def _take_former(names: Names, texts: Hashes, former: KnownMentions, begins: Longs, clean: Longs) -> MentionMatches:
    """The mentions of texts that are as they were."""
    order = np.argsort(former.text, kind="stable")
    place = order[np.searchsorted(former.text[order], texts[clean])] if len(clean) else clean
    count = former.count[place]
    offset = np.cumsum(former.count, dtype=np.int64) - former.count
    rows = find_ranges(offset[place], count)
    first = former.first[rows].astype(np.int64) + np.repeat(begins[clean], count)
    name = names.numbers(former.name[rows]).astype(np.int32)
    return MentionMatches(name, first, first + former.size[rows])


def _join(one: MentionMatches, other: MentionMatches) -> MentionMatches:
    """The mentions of both, in order of place."""
    first = np.concatenate([one.first, other.first])
    order = np.argsort(first, kind="stable")
    name, last = np.concatenate([one.name, other.name]), np.concatenate([one.last, other.last])
    return MentionMatches(name[order], first[order], last[order])


# From what each text says by itself to the names of the corpus: which of them are known, and where each stands.


@dataclass(frozen=True)
class Reading:
    """Mentions in order of place, one row each, with the document, the chunk, its characters and its sentence."""

    names: Names
    common: frozenset[str]
    name: Ints
    chunk: Ints
    document: Ints
    start: Longs
    end: Longs
    sentence: Longs
    sentence_begin: Longs  # of each sentence, in characters of its chunk
    sentence_end: Longs
    sentence_chunk: Longs
    row_of: Mapping[str, int]  # the name row of every stated string, -1 for one without a letter
    definitions: tuple[tuple[int, int, int], ...]  # (document, short name, long name) explained in texts

    def only(self, rows: Longs) -> Reading:
        """Some of the names (rows in order) with their mentions; documents, chunks and sentences keep their numbers."""
        if len(rows) == len(self.names):
            return self
        number = np.full(len(self.names) + 1, -1, dtype=np.int32)  # the last one is for no name
        number[rows] = np.arange(len(rows), dtype=np.int32)
        held = np.flatnonzero(number[self.name] >= 0)
        told = ((document, int(number[short]), int(number[long])) for document, short, long in self.definitions)
        return replace(
            self,
            names=self.names.only(rows, self.names.texts[rows]),
            name=number[self.name[held]],
            chunk=self.chunk[held],
            document=self.document[held],
            start=self.start[held],
            end=self.end[held],
            sentence=self.sentence[held],
            row_of={text: int(number[row]) for text, row in self.row_of.items() if number[row] >= 0},
            definitions=tuple(row for row in told if min(row) >= 0),
        )


def read_names(
    corpus: Corpus,
    read: TextReadings,
    stated: Mapping[str, int],
    rules: EntityRules,
    former: KnownMentions | None = None,
) -> tuple[Reading, KnownMentions]:
    """Finds every known name in the corpus, those that documents state among them; `read` holds its chunks in order.

    Texts keep the mentions that they had in the last derivation where nothing speaks against it.
    """
    tokens, starts = read.words(), read.opens()
    strings = list(stated)
    gazetteer = build_gazetteer(read, tokens, [(text, stated[text]) for text in strings], rules)
    texts = corpus.text_ids
    find = partial(_find, read, tokens, gazetteer)
    found, known = find_again(read, gazetteer.names, gazetteer.how, texts, former, find)
    chunk = tokens.text[found.first]
    names, number = _alive(gazetteer, found, chunk)
    start, end = tokens.start[found.first].astype(np.int64), tokens.end[found.last - 1].astype(np.int64)
    begins = np.flatnonzero(starts)
    ends = np.concatenate([begins[1:], np.full(min(1, len(begins)), len(tokens))]) - 1
    reading = Reading(
        names,
        gazetteer.common,
        number[found.name],
        chunk,
        corpus.document_of[chunk],
        start,
        end,
        np.searchsorted(begins, found.first, side="right") - 1,
        tokens.start[begins].astype(np.int64),
        tokens.end[ends].astype(np.int64),
        tokens.text[begins].astype(np.int64),
        {text: int(number[row]) if row >= 0 else -1 for text, row in zip(strings, gazetteer.stated, strict=True)},
        _explain(read, tokens, names, corpus),
    )
    return reading, known


def show_names(
    reading: Reading, stated: Mapping[str, int], texts: Sequence[str]
) -> tuple[list[str], dict[int, dict[str, int]]]:
    """How each name is shown, and all its spellings: as a title has it, else as stated, else as most texts write it."""
    written: dict[int, dict[str, int]] = defaultdict(dict)
    places = zip(reading.chunk.tolist(), reading.start.tolist(), reading.end.tolist(), strict=True)
    surfaces = _clean([texts[chunk][begin:end] for chunk, begin, end in places])
    for (row, surface), count in Counter(zip(reading.name.tolist(), surfaces, strict=True)).items():
        written[row][surface] = count
    said: dict[int, tuple[bool, str]] = {}
    for text, row in reading.row_of.items():
        if row >= 0:
            here = (not stated[text] & Origin.TITLE, text)
            said[row] = min(here, said.get(row, here))
            written[row].setdefault(text, 0)
    plain = reading.names.plain
    shown = [
        said[row][1] if row in said else _most_written(written[row]) if row in written else " ".join(plain[row])
        for row in range(len(plain))
    ]
    return shown, written


def _most_written(spellings: Mapping[str, int]) -> str:
    if len(spellings) == 1:
        return next(iter(spellings))
    return min(spellings, key=lambda text: (-spellings[text], text))


def _find(read: TextReadings, tokens: Words, gazetteer: Gazetteer, texts: Longs) -> MentionMatches:
    """Known names wherever they stand in these texts, and rare ones where they are proposed and nothing known is."""
    rows = find_ranges((np.cumsum(read.n_words) - read.n_words)[texts], read.n_words[texts])
    place = np.full(len(tokens) + 1, -1, dtype=np.int64)  # of each word among those of these texts
    place[rows] = np.arange(len(rows))
    some = tokens.take(rows)
    is_used = np.zeros(len(tokens.vocabulary), dtype=np.bool_)
    is_used[some.word] = True
    trie, named = gazetteer.build_trie(tokens.vocabulary[is_used])
    found = find_mentions(some, trie, (some.shape & OPENS) != 0, (some.shape & PIECE) != 0)
    found = MentionMatches(named[found.name].astype(np.int32), found.first, found.last)
    proposed = np.flatnonzero((read.mark & int(Mark.NAME | Mark.DEFINED)) == int(Mark.NAME))
    proposed = proposed[place[read.first[proposed]] >= 0]
    row = gazetteer.names.numbers(read.identity[proposed])
    rare = np.flatnonzero((row >= 0) & ((gazetteer.how & RARE) != 0)[row])
    first = place[read.first[proposed[rare]]]
    found = add_proposals(found, row[rare], first, first + read.size[proposed[rare]], len(rows))
    return MentionMatches(found.name, rows[found.first], rows[found.last - 1] + 1)


def _clean(surfaces: list[str]) -> tuple[str, ...]:
    """Each spelling with its white space made single; worked out once a spelling."""
    clean = {surface: " ".join(surface.split()) for surface in set(surfaces)}
    return tuple(map(clean.__getitem__, surfaces))


def _alive(gazetteer: Gazetteer, found: MentionMatches, chunk: Ints) -> tuple[Names, Ints]:
    """The names that are stated or met, and the row of each old row among them; the rest were only proposed."""
    names = gazetteer.names
    met = distinct(found.name.astype(np.int64) * (int(chunk.max(initial=0)) + 1) + chunk)
    texts = np.bincount(met // (int(chunk.max(initial=0)) + 1), minlength=len(names)).astype(np.int32)
    is_alive = np.append(texts > 0, False)  # the last place is for strings that are no name
    is_alive[list(gazetteer.stated)] = True
    rows = np.flatnonzero(is_alive[:-1])
    number = np.full(len(names), -1, dtype=np.int32)
    number[rows] = np.arange(len(rows), dtype=np.int32)
    return names.only(rows, texts[rows]), number


def _explain(read: TextReadings, tokens: Words, names: Names, corpus: Corpus) -> tuple[tuple[int, int, int], ...]:
    acronym = np.flatnonzero(read.rule == ACRONYM)
    short = names.numbers(read.identity[acronym])
    long = names.numbers(read.identity[read.rule == LONG_FORM])
    document = corpus.document_of[tokens.text[read.first[acronym]]]
    rows = zip(document.tolist(), short.tolist(), long.tolist(), strict=True)
    return tuple(sorted({row for row in rows if min(row) >= 0}))


# What documents state as names: a document that the last derivation read alike keeps what it stated. One row a
# document: the texts that it states, why each is a name, and which kinds of statements it makes.


PARTED, TRIPLES = 1, 2  # bits of `kinds`: names that have parts (symbols and repositories), triples
_SCHEMA = pa.schema(
    [("text", pa.list_(pa.string())), ("origin", pa.list_(pa.int32())), ("bare", pa.int64()), ("kinds", pa.uint8())]
)


class Statements:
    """Every text that a document states as a name, in order of documents; one text perhaps twice."""

    def __init__(self, kept: FormerRows) -> None:
        self.kept = kept
        texts, origins, bare, kinds = (kept.table.column(name).combine_chunks() for name in _SCHEMA.names)
        counts: Longs = pc.list_value_length(texts).to_numpy().astype(np.int64)
        self.text: list[str] = texts.flatten().to_pylist()
        self.document: Longs = np.repeat(np.arange(len(counts)), counts)
        self._origin: list[int] = origins.flatten().to_pylist()
        self._kinds = kinds.to_numpy()
        self._bare: Longs = np.where(bare.to_numpy() >= 0, np.cumsum(counts) - counts + bare.to_numpy(), -1)

    @cached_property
    def why(self) -> Mapping[str, int]:
        """Why each different text is a name."""
        why = dict.fromkeys(self.text, 0)
        for text, origin in zip(self.text, self._origin, strict=True):
            why[text] |= origin
        return why

    def documents_with(self, kind: int) -> list[int]:
        """The documents that make statements of this kind."""
        rows: list[int] = np.flatnonzero(self._kinds & kind).tolist()
        return rows

    def names(self, reading: Reading) -> tuple[tuple[Longs, Longs], Longs]:
        """Documents and the rows of the names that they state, each pair once; and the name of each title.

        A title is taken without its qualifier; -1 for none.
        """
        size = max(1, len(reading.names))
        row = np.fromiter(map(reading.row_of.__getitem__, self.text), dtype=np.int64, count=len(self.text))
        codes = distinct((self.document * size + row)[row >= 0])
        return (codes // size, codes % size), np.append(row, -1)[self._bare]


def read_statements(corpus: Corpus, former: FormerRows | None = None) -> Statements:
    """Every text that documents state as a name, and why; documents that are as they were are not parsed."""

    def build(rows: Longs) -> pa.Table:
        corpus.documents.parse(rows)
        return _tabulate([corpus.documents[row] for row in rows.tolist()])

    return Statements(reuse_rows(former, corpus.rows, build))


def _tabulate(documents: Sequence[Document]) -> pa.Table:
    said = [_state(one) for one in documents]
    columns = [
        [[text for text, _ in one] for one in said],
        [[origin for _, origin in one] for one in said],
        [-1 if not one.bare else int(one.bare != one.title) for one in documents],
        [_find_kinds(one) for one in documents],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _find_kinds(document: Document) -> int:
    facts = document.facts
    return (PARTED if facts.symbols or facts.repositories else 0) | (TRIPLES if facts.triples else 0)


def _state(document: Document) -> list[tuple[str, int]]:
    """The names that a document states, with the reason; its title first, then the title without its qualifier."""
    title, facts = Origin.TITLE, document.facts
    said = [(document.title, title)]
    if document.bare != document.title:
        said.append((document.bare, title))
    if facts:
        said += [(name, Origin.GIVEN) for name, _ in facts.names]
        said += [(name, Origin.GIVEN) for name in facts.repositories]
        said += [(end, Origin.PHRASE) for subject, _, target in facts.triples for end in (subject, target)]
        said += [(name, Origin.SYMBOL) for symbol in facts.symbols for name in symbol]
    return [one for one in said if one[0]]
