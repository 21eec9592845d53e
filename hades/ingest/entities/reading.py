"""From what each text says by itself to the names of the corpus: which of them are known, and where each stands."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hades.ingest.entities.candidates import Mark
from hades.ingest.entities.corpus import Corpus
from hades.ingest.entities.gazetteer import Gazetteer, build_gazetteer
from hades.ingest.entities.mentions import MentionMatches, add_proposals, find_mentions
from hades.ingest.entities.names import Names, Origin
from hades.ingest.entities.rules import EntityRules
from hades.ingest.readings.text_readings import ACRONYM, LONG_FORM, TextReadings
from hades.text.arrays import Flags, Ints, Longs, distinct
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
    surface: tuple[str, ...]  # each mention as written, white space made single
    row_of: Mapping[str, int]  # the name row of every stated string, -1 for one without a letter
    definitions: tuple[tuple[int, int, int], ...]  # (document, short name, long name) explained in texts


def read_names(corpus: Corpus, read: TextReadings, stated: Mapping[str, int], rules: EntityRules) -> Reading:
    """Finds every known name in the corpus, those that documents state among them; `read` holds its chunks in order."""
    tokens, starts = read.words(), read.opens()
    strings = sorted(stated)
    gazetteer = build_gazetteer(read, tokens, [(text, stated[text]) for text in strings], rules)
    found = _find(read, tokens, starts, gazetteer)
    chunk = tokens.text[found.first]
    names, number = _alive(gazetteer.names, found, chunk)
    start, end = tokens.start[found.first].astype(np.int64), tokens.end[found.last - 1].astype(np.int64)
    begins = np.flatnonzero(starts)
    ends = np.concatenate([begins[1:], np.full(min(1, len(begins)), len(tokens))]) - 1
    rows = zip(chunk.tolist(), start.tolist(), end.tolist(), strict=True)
    return Reading(
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
        _clean([corpus.texts[index][begin:stop] for index, begin, stop in rows]),
        {text: int(number[row]) if row >= 0 else -1 for text, row in zip(strings, gazetteer.stated, strict=True)},
        _explain(read, tokens, names, corpus),
    )


def read_stated_names(corpus: Corpus) -> dict[str, int]:
    """Every string that documents state as a name, and why."""
    stated: dict[str, int] = defaultdict(int)
    for document in corpus.documents:
        facts = document.facts
        for title in filter(None, (document.title, document.bare)):
            stated[title] |= Origin.TITLE
        for given in (*(name for name, _ in facts.names), *facts.repositories):
            stated[given] |= Origin.GIVEN
        for subject, _, target in facts.triples:
            stated[subject] |= Origin.PHRASE
            stated[target] |= Origin.PHRASE
        for short, qualified in facts.symbols:
            stated[short] |= Origin.SYMBOL
            stated[qualified] |= Origin.SYMBOL
    stated.pop("", None)
    return dict(stated)


def show_names(reading: Reading, stated: Mapping[str, int]) -> tuple[list[str], dict[int, dict[str, int]]]:
    """How each name is shown, and all its spellings: as a title has it, else as stated, else as most texts write it."""
    written: dict[int, dict[str, int]] = defaultdict(dict)
    for (row, surface), count in Counter(zip(reading.name.tolist(), reading.surface, strict=True)).items():
        written[row][surface] = count
    said: dict[int, tuple[bool, str]] = {}
    for text, why in stated.items():
        if (row := reading.row_of[text]) >= 0:
            here = (not why & Origin.TITLE, text)
            said[row] = min(here, said.get(row, here))
            written[row].setdefault(text, 0)
    shown = [
        said[row][1] if row in said else _most_written(written.get(row), words)
        for row, words in enumerate(reading.names.plain)
    ]
    return shown, written


def _most_written(spellings: Mapping[str, int] | None, words: tuple[str, ...]) -> str:
    if not spellings:
        return " ".join(words)
    if len(spellings) == 1:
        return next(iter(spellings))
    return min(spellings, key=lambda text: (-spellings[text], text))


def _find(read: TextReadings, tokens: Words, starts: Flags, gazetteer: Gazetteer) -> MentionMatches:
    """Known names wherever they stand, and rare ones where they were proposed and nothing known stands."""
    found = find_mentions(tokens, gazetteer.trie, starts, read.pieces())
    names = gazetteer.names
    proposed = np.flatnonzero((read.mark & int(Mark.NAME | Mark.DEFINED)) == int(Mark.NAME))
    row = names.numbers(read.identity[proposed])
    rare = np.flatnonzero((row >= 0) & names.has(Origin.RARE)[row])
    first = read.first[proposed[rare]].astype(np.int64)
    return add_proposals(found, row[rare], first, first + read.size[proposed[rare]], len(tokens))


def _clean(surfaces: list[str]) -> tuple[str, ...]:
    """Each spelling with its white space made single; worked out once a spelling."""
    clean = {surface: " ".join(surface.split()) for surface in set(surfaces)}
    return tuple(map(clean.__getitem__, surfaces))


def _alive(names: Names, found: MentionMatches, chunk: Ints) -> tuple[Names, Ints]:
    """The names that are stated or met, and the row of each old row among them; the rest were only proposed."""
    met = distinct(found.name.astype(np.int64) * (int(chunk.max(initial=0)) + 1) + chunk)
    texts = np.bincount(met // (int(chunk.max(initial=0)) + 1), minlength=len(names)).astype(np.int32)
    rows = np.flatnonzero((texts > 0) | names.has(Origin.STATED | Origin.PHRASE))
    number = np.zeros(len(names), dtype=np.int32)
    number[rows] = np.arange(len(rows), dtype=np.int32)
    return names.only(rows, texts[rows]), number


def _explain(read: TextReadings, tokens: Words, names: Names, corpus: Corpus) -> tuple[tuple[int, int, int], ...]:
    acronym = np.flatnonzero(read.rule == ACRONYM)
    short = names.numbers(read.identity[acronym])
    long = names.numbers(read.identity[read.rule == LONG_FORM])
    document = corpus.document_of[tokens.text[read.first[acronym]]]
    rows = zip(document.tolist(), short.tolist(), long.tolist(), strict=True)
    return tuple(sorted({row for row in rows if min(row) >= 0}))
