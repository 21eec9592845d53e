"""Where the known names stand in a corpus: the longest known name from every word on, none across
sentences.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np

from hades.ingest.entities import known_names
from hades.ingest.entities.candidates import Mark, TextReadings, read_texts
from hades.ingest.entities.corpus import Corpus, Document
from hades.ingest.entities.known_names import Gazetteer, Names, Origin, build_gazetteer
from hades.text.words import CAPITAL, Bits, Tokens, running
from models.arrays import Flags, Ints, Longs, rows_of

Definition = tuple[int, int, int]  # a document that explains a short name, that, the long one


@dataclass(frozen=True)
class Reading:
    """Mentions in order of place, one row each, with the document, the chunk, its characters and
    its sentence.
    """

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
    definitions: tuple[Definition, ...]

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

    def only(self, rows: Longs) -> MentionMatches:
        """Some of the mentions, in this order."""
        return MentionMatches(
            self.name[rows],
            self.first[rows],
            self.last[rows],
        )


def read_names(corpus: Corpus, stated: Mapping[str, int]) -> Reading:
    """Finds every known name in the corpus; `stated` says of every text that documents state as a
    name why.
    """
    readings = read_texts(corpus.texts)
    tokens = readings.tokens
    gazetteer = build_gazetteer(readings, list(stated.items()))
    matches = _find_all(readings, gazetteer)
    chunk = tokens.text[matches.first]
    names, number = _drop_unused(gazetteer, matches, chunk)
    begins = np.flatnonzero(readings.starts)
    ends = np.append(begins[1:], len(tokens))[: len(begins)] - 1
    # The number behind the last one is for strings that are no name.
    stated_rows = np.append(number, -1)[list(gazetteer.stated)].tolist()
    return Reading(
        names=names,
        common=gazetteer.common,
        name=number[matches.name],
        chunk=chunk,
        document=corpus.document_of[chunk],
        start=tokens.start[matches.first].astype(np.int64),
        end=tokens.end[matches.last - 1].astype(np.int64),
        sentence=np.searchsorted(begins, matches.first, side="right") - 1,
        sentence_begin=tokens.start[begins].astype(np.int64),
        sentence_end=tokens.end[ends].astype(np.int64),
        sentence_chunk=tokens.text[begins].astype(np.int64),
        row_of=dict(zip(stated, stated_rows, strict=True)),
        definitions=_explained_acronyms(readings, names, corpus),
    )


def read_statements(documents: Sequence[Document]) -> dict[str, int]:
    """Every text that documents state as a name, and why, as bits of `Origin`."""
    origins: dict[str, int] = {}
    for document in documents:
        for text, origin in _stated_names(document):
            if text:
                origins[text] = origins.get(text, 0) | origin

    return origins


def show_names(
    reading: Reading,
    stated: Mapping[str, int],
    texts: Sequence[str],
) -> tuple[list[str], dict[int, Counter[str]]]:
    """How each name is shown, and all its spellings: as a title has it, else as stated, else as
    most texts write it.
    """
    written: dict[int, Counter[str]] = defaultdict(Counter)
    for row, chunk, begin, end in rows_of(
        reading.name,
        reading.chunk,
        reading.start,
        reading.end,
    ):
        written[row][" ".join(texts[chunk][begin:end].split())] += 1

    stated_form: dict[int, str] = {}
    for text in sorted(
        stated,
        key=lambda text: (not stated[text] & Origin.TITLE, text),
    ):
        row = reading.row_of[text]
        if row >= 0:
            stated_form.setdefault(row, text)
            written[row].setdefault(text, 0)

    shown = []
    for row in range(len(reading.names)):
        spellings = written[row]
        most_written = min(spellings, key=lambda text: (-spellings[text], text))
        shown.append(stated_form.get(row, most_written))

    return shown, written


def find_mentions(
    tokens: Tokens,
    names: Sequence[tuple[str, ...]],
    how: Bits,
    starts: Flags,
    pieces: Flags,
) -> MentionMatches:
    """The leftmost-longest mentions of names (folded words); none crosses the end of a sentence.

    `how` says how each name must be written; `pieces` are words that are only part of a longer
    name, and so no mentions of what they would be alone.
    """
    length, name = _longest(tokens, names, how, starts)
    length[(length == 1) & pieces] = 0
    first = np.flatnonzero(length)
    return _without_overlap(
        MentionMatches(
            name[first],
            first,
            first + length[first],
        )
    )


def _stated_names(document: Document) -> Iterator[tuple[str, int]]:
    """The names that a document states, with the reason: its title, also without the qualifier, and
    its facts.
    """
    facts = document.facts
    yield document.title, Origin.TITLE
    yield document.bare, Origin.TITLE

    for name in (*(name for name, _ in facts.names), *facts.repositories):
        yield name, Origin.GIVEN

    for subject, _, target in facts.triples:
        yield subject, Origin.PHRASE
        yield target, Origin.PHRASE

    for short, qualified in facts.symbols:
        yield short, Origin.SYMBOL
        yield qualified, Origin.SYMBOL


def _find_all(readings: TextReadings, gazetteer: Gazetteer) -> MentionMatches:
    """Known names wherever they stand, and rare ones where they are proposed and nothing known
    is.
    """
    names = gazetteer.names
    spans = readings.spans
    sought_rows = np.flatnonzero(gazetteer.how & known_names.SOUGHT)
    words = [names.plain[row] for row in sought_rows.tolist()]
    matches = find_mentions(
        readings.tokens,
        words,
        gazetteer.how[sought_rows] & ~np.uint8(known_names.SOUGHT),
        readings.starts,
        readings.pieces,
    )
    matches = MentionMatches(
        sought_rows[matches.name],
        matches.first,
        matches.last,
    )
    proposed = np.flatnonzero(spans.marked(Mark.NAME) & ~spans.marked(Mark.DEFINED))
    row = names.numbers(readings.identity[proposed])
    is_rare = np.append(gazetteer.how & known_names.RARE, 0)[row] != 0
    chosen = proposed[is_rare]
    rare = MentionMatches(
        row[is_rare],
        spans.first[chosen],
        spans.last[chosen],
    )
    return _add_proposals(matches, rare, len(readings.tokens))


def _add_proposals(
    matches: MentionMatches,
    proposed: MentionMatches,
    n_rows: int,
) -> MentionMatches:
    """The mentions and, where none of them stands, the longest of the proposed ones."""
    changes = np.zeros(n_rows + 1, np.int32)
    changes[matches.first] = 1
    changes[matches.last] -= 1
    covered = running(np.cumsum(changes[:-1]))
    free = proposed.only(np.flatnonzero(covered[proposed.last] == covered[proposed.first]))
    extra = _without_overlap(free.only(np.lexsort((-free.last, free.first))))
    every = MentionMatches(
        np.concatenate([matches.name, extra.name]),
        np.concatenate([matches.first, extra.first]),
        np.concatenate([matches.last, extra.last]),
    )
    return every.only(np.argsort(every.first, kind="stable"))


def _without_overlap(matches: MentionMatches) -> MentionMatches:
    """Reads spans in order and keeps each that begins after the last one kept has ended."""
    indices = []

    free = 0
    for index, (begin, end) in enumerate(rows_of(matches.first, matches.last)):
        if begin >= free:
            indices.append(index)
            free = end

    return matches.only(np.array(indices, np.int64))


def _longest(
    tokens: Tokens,
    names: Sequence[tuple[str, ...]],
    how: Bits,
    starts: Flags,
) -> tuple[Longs, Longs]:
    """For each row the words and the number of the longest name that begins there; zero words where
    none does.

    The names are a trie of words that is built level by level; all places in the texts take their
    next step together.
    """
    length = np.zeros(len(tokens), np.int64)
    name = np.full(len(tokens), -1)
    number = dict(zip(tokens.folded, count()))
    used = [row for row, words in enumerate(names) if number.keys() >= set(words)]
    used_names = [names[row] for row in used]
    sizes = np.fromiter(map(len, used_names), np.int64)
    words = np.fromiter(
        map(number.__getitem__, chain.from_iterable(used_names)),
        np.int64,
    )
    offsets = np.cumsum(sizes) - sizes
    of_name = np.zeros(len(used), np.int64)
    numbers = np.array(used, np.int64)
    capitals = running(tokens.written(CAPITAL))
    is_inside_sentence = np.append(~starts, False)
    # Places that are still on a path of the trie, and the node that each has reached.
    row = np.arange(len(tokens))
    state = np.zeros(len(tokens), np.int64)

    for depth in range(int(sizes.max(initial=0))):
        alive = np.flatnonzero(sizes > depth)
        keys, of_name[alive] = np.unique(
            of_name[alive] * len(number) + words[offsets[alive] + depth],
            return_inverse=True,
        )
        ended = np.full(len(keys), -1)
        complete = alive[sizes[alive] == depth + 1]
        ended[of_name[complete]] = numbers[complete]
        steps = state * len(number) + tokens.word[row + depth]
        node = np.minimum(np.searchsorted(keys, steps), len(keys) - 1)
        has_step = keys[node] == steps
        row = row[has_step]
        state = node[has_step]
        is_end = ended[state] >= 0
        begin = row[is_end]
        ended_name = ended[state[is_end]]
        n_capitals = capitals[begin + depth + 1] - capitals[begin]
        # The capital of a word that opens a sentence does not count.
        least = (how[ended_name] == known_names.INSIDE_SENTENCE) * starts[begin]
        is_written_so = (how[ended_name] == known_names.ANY_CASE) | (n_capitals > least)
        length[begin[is_written_so]] = depth + 1
        name[begin[is_written_so]] = ended_name[is_written_so]
        goes_on = is_inside_sentence[row + depth + 1]
        row = row[goes_on]
        state = state[goes_on]

    return length, name


def _drop_unused(
    gazetteer: Gazetteer,
    matches: MentionMatches,
    chunk: Ints,
) -> tuple[Names, Ints]:
    """The names that are stated or met, and the row of each old row among them; the rest were only
    proposed.
    """
    names = gazetteer.names
    n_chunks = int(chunk.max(initial=0)) + 1
    pairs = np.unique(matches.name * n_chunks + chunk)
    texts = np.bincount(pairs // n_chunks, minlength=len(names)).astype(np.int32)
    is_used = np.append(texts > 0, False)  # the last place is for strings that are no name
    is_used[list(gazetteer.stated)] = True
    rows = np.flatnonzero(is_used[:-1])
    number = np.full(len(names), -1, dtype=np.int32)
    number[rows] = np.arange(len(rows))
    return names.only(rows, texts[rows]), number


def _explained_acronyms(
    readings: TextReadings,
    names: Names,
    corpus: Corpus,
) -> tuple[Definition, ...]:
    """(document, short name, long name) of every acronym that a text explains."""
    acronyms = readings.acronyms
    explained = readings.identity[len(readings.identity) - 2 * len(acronyms) :]
    long, short = np.split(names.numbers(explained), 2)
    document = corpus.document_of[readings.tokens.text[acronyms]]
    return tuple(sorted({row for row in rows_of(document, short, long) if min(row) >= 0}))
