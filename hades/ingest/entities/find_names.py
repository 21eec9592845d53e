"""Where the known names stand in a corpus: the longest known name from every word on, none across sentences."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hades.ingest.entities import known_names
from hades.ingest.entities.candidates import Mark, TextReadings, read_texts
from hades.ingest.entities.corpus import Corpus, Document
from hades.ingest.entities.known_names import Gazetteer, Names, Origin, build_gazetteer
from hades.text.words import CAPITAL, Bits, Flags, Ints, Longs, Tokens, running


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

    @property
    def pairs(self) -> Longs:
        """Sorted document * n_names + name of every document and name that it mentions."""
        return np.unique(self.document.astype(np.int64) * max(1, len(self.names)) + self.name)


@dataclass(frozen=True)
class MentionMatches:
    """Mentions in order of place: which name, and its rows [first, last) of the tokens."""

    name: Longs
    first: Longs
    last: Longs


def read_names(corpus: Corpus, stated: Mapping[str, int]) -> Reading:
    """Finds every known name in the corpus; `stated` says of every text that documents state as a name why."""
    read = read_texts(corpus.texts)
    tokens, gazetteer = read.tokens, build_gazetteer(read, list(stated.items()))
    found = _find_all(read, gazetteer)
    chunk = tokens.text[found.first]
    names, number = _drop_unused(gazetteer, found, chunk)
    begins = np.flatnonzero(read.starts)
    ends = np.append(begins[1:], len(tokens))[: len(begins)] - 1
    return Reading(
        names,
        gazetteer.common,
        number[found.name],
        chunk,
        corpus.document_of[chunk],
        tokens.start[found.first].astype(np.int64),
        tokens.end[found.last - 1].astype(np.int64),
        np.searchsorted(begins, found.first, side="right") - 1,
        tokens.start[begins].astype(np.int64),
        tokens.end[ends].astype(np.int64),
        tokens.text[begins].astype(np.int64),
        {text: int(number[row]) if row >= 0 else -1 for text, row in zip(stated, gazetteer.stated, strict=True)},
        _explain(read, names, corpus),
    )


def read_statements(documents: Sequence[Document]) -> dict[str, int]:
    """Every text that documents state as a name, and why, as bits of `Origin`."""
    why: dict[str, int] = {}
    for document in documents:
        for text, origin in _state(document):
            if text:
                why[text] = why.get(text, 0) | origin
    return why


def show_names(
    reading: Reading, stated: Mapping[str, int], texts: Sequence[str]
) -> tuple[list[str], dict[int, dict[str, int]]]:
    """How each name is shown, and all its spellings: as a title has it, else as stated, else as most texts write it."""
    written: dict[int, dict[str, int]] = defaultdict(dict)
    places = zip(reading.chunk.tolist(), reading.start.tolist(), reading.end.tolist(), strict=True)
    surfaces = [" ".join(texts[chunk][begin:end].split()) for chunk, begin, end in places]
    for (row, surface), count in Counter(zip(reading.name.tolist(), surfaces, strict=True)).items():
        written[row][surface] = count
    said: dict[int, tuple[bool, str]] = {}
    for text, row in reading.row_of.items():
        if row >= 0:
            here = (not stated[text] & Origin.TITLE, text)
            said[row] = min(here, said.get(row, here))
            written[row].setdefault(text, 0)
    shown = [
        said[row][1] if row in said else min(spellings, key=lambda text: (-spellings[text], text))
        for row, spellings in ((row, written[row]) for row in range(len(reading.names)))
    ]
    return shown, written


def find_mentions(
    tokens: Tokens, names: Sequence[tuple[str, ...]], how: Bits, starts: Flags, pieces: Flags
) -> MentionMatches:
    """The leftmost-longest mentions of names (folded words); none crosses the end of a sentence.

    `how` says how each name must be written; `pieces` are words that are only part of a longer name, and so no
    mentions of what they would be alone.
    """
    length, name = _longest(tokens, names, how, starts)
    length[(length == 1) & pieces] = 0
    first = np.flatnonzero(length)
    return _without_overlap(name[first], first, first + length[first])


def _state(document: Document) -> Iterator[tuple[str, int]]:
    """The names that a document states, with the reason: its title, also without the qualifier, and its facts."""
    facts = document.facts
    yield document.title, Origin.TITLE
    yield document.bare, Origin.TITLE
    yield from ((name, Origin.GIVEN) for name, _ in facts.names)
    yield from ((name, Origin.GIVEN) for name in facts.repositories)
    yield from ((end, Origin.PHRASE) for subject, _, target in facts.triples for end in (subject, target))
    yield from ((name, Origin.SYMBOL) for symbol in facts.symbols for name in symbol)


def _find_all(read: TextReadings, gazetteer: Gazetteer) -> MentionMatches:
    """Known names wherever they stand, and rare ones where they are proposed and nothing known is."""
    names, spans = gazetteer.names, read.spans
    sought = np.flatnonzero(gazetteer.how & known_names.SOUGHT)
    words = [names.plain[row] for row in sought.tolist()]
    found = find_mentions(
        read.tokens, words, gazetteer.how[sought] & ~np.uint8(known_names.SOUGHT), read.starts, read.pieces
    )
    found = MentionMatches(sought[found.name], found.first, found.last)
    proposed = np.flatnonzero((spans.mark & int(Mark.NAME | Mark.DEFINED)) == int(Mark.NAME))
    row = names.numbers(read.identity[proposed])
    rare = np.flatnonzero(np.append((gazetteer.how & known_names.RARE) != 0, False)[row])
    place = proposed[rare]
    return _add_proposals(found, row[rare], spans.first[place], spans.last[place], len(read.tokens))


def _add_proposals(found: MentionMatches, name: Longs, first: Longs, last: Longs, n_rows: int) -> MentionMatches:
    """The mentions and, where none of them stands, the longest of the proposed spans [first, last)."""
    taken = np.zeros(n_rows + 1, dtype=np.int32)
    taken[found.first] = 1
    taken[found.last] -= 1
    covered = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.cumsum(taken[:-1]))])
    free = np.flatnonzero(covered[last] == covered[first])
    order = free[np.lexsort((-last[free], first[free]))]
    extra = _without_overlap(name[order], first[order], last[order])
    columns = zip((found.name, found.first, found.last), (extra.name, extra.first, extra.last), strict=True)
    name, first, last = (np.concatenate(both) for both in columns)
    place = np.argsort(first, kind="stable")
    return MentionMatches(name[place], first[place], last[place])


def _without_overlap(name: Longs, first: Longs, last: Longs) -> MentionMatches:
    """Reads spans in order and keeps each that begins after the last one kept has ended."""
    kept, free = [], 0
    for index, (begin, end) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        if begin >= free:
            kept.append(index)
            free = end
    rows = np.array(kept, dtype=np.int64)
    return MentionMatches(name[rows], first[rows], last[rows])


def _longest(tokens: Tokens, names: Sequence[tuple[str, ...]], how: Bits, starts: Flags) -> tuple[Longs, Longs]:
    """For each row the words and the number of the longest name that begins there; zero words where none does.

    The names are a trie of words that is built level by level; all places in the texts take their next step together.
    """
    length, name = np.zeros(len(tokens), dtype=np.int64), np.full(len(tokens), -1, dtype=np.int64)
    number = {word: place for place, word in enumerate(tokens.folded)}
    used = [row for row, words in enumerate(names) if all(word in number for word in words)]
    sizes = np.array([len(names[row]) for row in used], dtype=np.int64)
    words = np.array([number[word] for row in used for word in names[row]], dtype=np.int64)
    offsets, of_name, numbers = np.cumsum(sizes) - sizes, np.zeros(len(used), dtype=np.int64), np.array(used)
    capitals, going = running((tokens.shape & CAPITAL) != 0), np.append(~starts, False)
    row, state = np.arange(len(tokens)), np.zeros(len(tokens), dtype=np.int64)
    for depth in range(int(sizes.max(initial=0))):
        alive = np.flatnonzero(sizes > depth)
        keys, of_name[alive] = np.unique(
            of_name[alive] * len(number) + words[offsets[alive] + depth], return_inverse=True
        )
        ended = np.full(len(keys), -1, dtype=np.int64)
        done = alive[sizes[alive] == depth + 1]
        ended[of_name[done]] = numbers[done]
        steps = state * len(number) + tokens.word[row + depth]
        place = np.minimum(np.searchsorted(keys, steps), len(keys) - 1)
        row, state = row[keys[place] == steps], place[keys[place] == steps]
        begin, here = row[ended[state] >= 0], ended[state[ended[state] >= 0]]
        written = capitals[begin + depth + 1] - capitals[begin]
        good = (how[here] == known_names.ANY_CASE) | (
            written > (how[here] == known_names.INSIDE_SENTENCE) * starts[begin]
        )
        length[begin[good]], name[begin[good]] = depth + 1, here[good]
        on = going[row + depth + 1]
        row, state = row[on], state[on]
    return length, name


def _drop_unused(gazetteer: Gazetteer, found: MentionMatches, chunk: Ints) -> tuple[Names, Ints]:
    """The names that are stated or met, and the row of each old row among them; the rest were only proposed."""
    names = gazetteer.names
    n_chunks = int(chunk.max(initial=0)) + 1
    texts = np.bincount(np.unique(found.name * n_chunks + chunk) // n_chunks, minlength=len(names)).astype(np.int32)
    is_used = np.append(texts > 0, False)  # the last place is for strings that are no name
    is_used[list(gazetteer.stated)] = True
    rows = np.flatnonzero(is_used[:-1])
    number = np.full(len(names), -1, dtype=np.int32)
    number[rows] = np.arange(len(rows), dtype=np.int32)
    return names.only(rows, texts[rows]), number


def _explain(read: TextReadings, names: Names, corpus: Corpus) -> tuple[tuple[int, int, int], ...]:
    """(document, short name, long name) of every acronym that a text explains."""
    acronym, n_explained = read.acronyms, len(read.acronyms)
    explained = read.identity[len(read.identity) - 2 * n_explained :]
    long, short = names.numbers(explained[:n_explained]), names.numbers(explained[n_explained:])
    document = corpus.document_of[read.tokens.text[acronym]]
    rows = zip(document.tolist(), short.tolist(), long.tolist(), strict=True)
    return tuple(sorted({row for row in rows if min(row) >= 0}))
