"""From what each text says by itself to the names of the corpus: which of them are known, and where each stands."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hades.ingest.entities.candidates import Mark
from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.gazetteer import RARE, Gazetteer, build_gazetteer
from hades.ingest.entities.mentions import MentionMatches, add_proposals, find_mentions
from hades.ingest.entities.names import Names, Origin
from hades.ingest.entities.rules import EntityRules
from hades.ingest.increment.kept_mentions import KnownMentions, find_again
from hades.ingest.readings.text_readings import ACRONYM, LONG_FORM, OPENS, PIECE, TextReadings, find_ranges
from hades.text.arrays import Ints, Longs, distinct
from hades.text.tokens import Words


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
