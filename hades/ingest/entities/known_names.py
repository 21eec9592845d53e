"""Which names are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.entities.candidates import Mark
from hades.ingest.entities.mentions import ANY_CASE, CAPITALISED, INSIDE_SENTENCE, Trie, build_trie
from hades.ingest.entities.text_readings import TextReadings, find_ranges
from hades.text.word_lists import CALENDAR, FUNCTION_WORDS, NEUTRAL_TITLES, WEAK_CONNECTORS
from hades.text.words import (
    CAPITAL,
    CHAR_BASE,
    WORD_BASE,
    Bits,
    Flags,
    Hashes,
    Ints,
    Longs,
    Words,
    distinct,
    encode,
    running,
    span_hashes,
    tokenize,
)

# The known names: one row each, in order of identity, with why it is known and the words it is made of.


_FEW = 4  # a quarter of the names


class Origin:
    """Why a name is known, as bits of a plain number: names are asked for them by the hundred thousand."""

    TITLE = 1
    GIVEN = 2
    SYMBOL = 4
    NAME = 8
    TERM = 16
    CAPITAL = 32  # somewhere it is written with a capital
    RARE = 64  # met in one text only: kept where it stands, not looked for elsewhere
    PHRASE = 128  # an end of a stated triple and nothing else: a thing, but not looked for in texts
    STATED = TITLE | GIVEN | SYMBOL


class PlainNames(Sequence[tuple[str, ...]]):
    """Each name as folded words, put together when it is asked for: few names are."""

    def __init__(self, letters: Sequence[str], spelling: Ints, offsets: Longs) -> None:
        self._letters, self._spelling, self._offsets = letters, spelling, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, row: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[tuple[str, ...]]: ...
    def __getitem__(self, row: int | slice) -> tuple[str, ...] | Sequence[tuple[str, ...]]:
        if isinstance(row, slice):
            return [self[one] for one in range(*row.indices(len(self)))]
        begin, end = self._offsets[row], self._offsets[row + 1]
        return tuple([self._letters[one] for one in self._spelling[begin:end].tolist()])

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.take(np.arange(len(self))))

    def take(self, rows: Longs) -> list[tuple[str, ...]]:
        """Some of the names in the order given: of many, several times as fast as one by one."""
        sizes = self._offsets[rows + 1] - self._offsets[rows]
        words = list(map(self._letters.__getitem__, self._spelling[find_ranges(self._offsets[rows], sizes)].tolist()))
        ends = np.cumsum(sizes)
        return [tuple(words[begin:end]) for begin, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True)]


@dataclass(frozen=True)
class Names:
    """Known names; two spellings with the same folded words are one name."""

    identity: Hashes  # sorted
    offsets: Longs  # name i is made of words[offsets[i]:offsets[i + 1]]
    words: Hashes
    spelling: Ints  # beside `words`, rows of `letters`
    letters: tuple[str, ...]  # the distinct words, folded
    plain: PlainNames  # each name as folded words
    origin: Ints
    texts: Ints  # number of texts that propose it, later: that hold it

    def __len__(self) -> int:
        return len(self.identity)

    def numbers(self, identity: Hashes) -> Longs:
        """The row of each name by its identity, -1 where it is not known."""
        if not len(self.identity):
            return np.full(len(identity), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.identity, identity), len(self.identity) - 1)
        return np.where(self.identity[place] == identity, place, -1)

    def find_words(self, names: Sequence[Sequence[str]]) -> list[int]:
        """The row of each name given as folded words, at least one, -1 where it is not known."""
        if not names:
            return []
        held, sizes = self._hash_of, np.fromiter(map(len, names), dtype=np.int64, count=len(names))
        flat = [held.get(word, 0) for words in names for word in words]
        hashes = np.fromiter(flat, dtype=np.uint64, count=len(flat))
        begins = np.cumsum(sizes) - sizes
        powers = np.full(int(sizes.max()), WORD_BASE, dtype=np.uint64)
        powers[0] = 1
        np.cumprod(powers, out=powers)
        sums = np.add.reduceat(hashes * powers[np.arange(len(flat)) - np.repeat(begins, sizes)], begins)
        is_whole = np.logical_and.reduceat(hashes != 0, begins)
        rows: list[int] = np.where(is_whole, self.numbers(sums ^ (sums >> np.uint64(31))), -1).tolist()
        return rows

    @cached_property
    def _hash_of(self) -> dict[str, int]:
        """The hash of each word by its letters."""
        hashes, is_used = np.zeros(len(self.letters), dtype=np.uint64), np.zeros(len(self.letters), dtype=np.bool_)
        hashes[self.spelling], is_used[self.spelling] = self.words, True
        return dict(zip(compress(self.letters, is_used.tolist()), hashes[is_used].tolist(), strict=True))

    def has(self, why: int) -> Flags:
        """Which names are known for one of these reasons."""
        known: Flags = (self.origin & why) != 0
        return known

    def words_where(self, holds: Callable[[str], bool]) -> Flags:
        """Which words of all names, beside `words`, satisfy the test; asked once a distinct word."""
        answers = np.fromiter(map(holds, self.letters), dtype=np.bool_, count=len(self.letters))
        return answers[self.spelling]

    def with_word(self, place: int, holds: Callable[[str], bool]) -> Flags:
        """Which names have a first (0) or last (-1) word that satisfies the test."""
        rows = self.offsets[:-1] if place == 0 else self.offsets[1:] - 1
        return self.words_where(holds)[rows]

    def n_letters(self) -> Longs:
        """How many letters the words of each name have together."""
        ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self._word_lengths())])
        return np.diff(ends[self.offsets])

    def letter_hashes(self) -> Hashes:
        """One hash for the letters of each name, whatever words they are parted into."""
        lengths = self._word_lengths()
        before = np.cumsum(lengths) - lengths
        before -= np.repeat(before[self.offsets[:-1]], np.diff(self.offsets))
        powers = np.full(int(before.max(initial=0)) + 1, CHAR_BASE, dtype=np.uint64)
        powers[0] = 1
        np.cumprod(powers, out=powers)
        return np.add.reduceat(self.words * powers[before], self.offsets[:-1])

    def without_each_word(self) -> tuple[Longs, Longs, Hashes]:
        """For each word of each name the name, the place of the word, and a hash of what the name is without it."""
        sizes = np.diff(self.offsets)
        owner = np.repeat(np.arange(len(self)), sizes)
        place = np.arange(len(owner)) - self.offsets[:-1][owner]
        powers = np.full(int(sizes.max(initial=0)) + 1, WORD_BASE, dtype=np.uint64)
        powers[0] = 1
        np.cumprod(powers, out=powers)
        parts = self.words * powers[place]
        rest = np.add.reduceat(parts, self.offsets[:-1])[owner] - parts
        return owner, place, rest + place.astype(np.uint64) * np.uint64(CHAR_BASE) + powers[sizes[owner]]

    def _word_lengths(self) -> Longs:
        lengths: Longs = np.fromiter(map(len, self.letters), dtype=np.int64, count=len(self.letters))
        return lengths[self.spelling]

    def only(self, rows: Longs, texts: Ints) -> Names:
        """Some of the names, in the same order, with the number of texts that hold each."""
        sizes = np.diff(self.offsets)[rows]
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        inside = np.repeat(self.offsets[:-1][rows] - offsets[:-1], sizes) + np.arange(int(offsets[-1]))
        words, spelling, letters = self.words[inside], self.spelling[inside], self.letters
        if len(rows) * _FEW < len(self):  # most tests ask each distinct word
            used, again = np.unique(spelling, return_inverse=True)
            letters, spelling = tuple(letters[one] for one in used.tolist()), again.astype(np.int32)
        plain = PlainNames(letters, spelling, offsets)
        return Names(self.identity[rows], offsets, words, spelling, letters, plain, self.origin[rows], texts)


@dataclass(frozen=True)
class Place:
    """Names as they stand in some text: identity, and rows [first, last) of the tokens."""

    tokens: Words
    identity: Hashes
    first: Longs
    last: Longs


def whole(names: Sequence[str]) -> tuple[Place, Longs]:
    """Each given string as one name, and which string it is; strings without a letter or digit are left out."""
    tokens = tokenize(list(names))
    which, first = np.unique(tokens.text, return_index=True)
    last = np.concatenate([first[1:], np.full(min(1, len(first)), len(tokens))]).astype(np.int64)
    first = first.astype(np.int64)
    return Place(tokens, span_hashes(tokens, first, last), first, last), which.astype(np.int64)


def identities(names: Sequence[str]) -> Hashes:
    """The identity of each name as written; 0 for one without a letter or digit."""
    place, which = whole(names)
    result = np.zeros(len(names), dtype=np.uint64)
    result[which] = place.identity
    return result


def spell(identity: Hashes, places: Sequence[Place]) -> tuple[Longs, Hashes, Ints, tuple[str, ...], PlainNames]:
    """The words of every name, read off any one place where it stands: the middle columns of `Names`."""
    sizes = np.zeros(len(identity), dtype=np.int64)
    for place in places:
        sizes[np.searchsorted(identity, place.identity)] = place.last - place.first
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    words = np.zeros(int(offsets[-1]), dtype=np.uint64)
    for place in places:
        tokens = place.tokens
        to = offsets[np.searchsorted(identity, place.identity)]
        for step in range(int((place.last - place.first).max(initial=0))):
            inside = place.first + step < place.last
            words[to[inside] + step] = tokens.vocabulary[tokens.word[place.first[inside] + step]]
    spelling, known = encode(words)
    letters = _letters_of(known, places)
    return offsets, words, spelling, letters, PlainNames(letters, spelling, offsets)


def _letters_of(known: Hashes, places: Sequence[Place]) -> tuple[str, ...]:
    """The folded letters of each word, from the vocabulary of any place that has it."""
    letters = np.full(len(known), "", dtype=object)
    for place in places:
        vocabulary, folded = place.tokens.vocabulary, place.tokens.folded
        if not len(vocabulary):
            continue
        where = np.minimum(np.searchsorted(vocabulary, known), len(vocabulary) - 1)
        held = np.flatnonzero(vocabulary[where] == known)
        letters[held] = np.array(folded, dtype=object)[where[held]]
    return tuple(letters.tolist())


# The few numbers that decide what is known as a name; one frozen value, so a build can be repeated.


@dataclass(frozen=True)
class EntityRules:
    """Thresholds of the gazetteer, of alias resolution and of co-occurrence. Texts are chunks."""

    min_texts: int = 2  # a capitalised name met in fewer texts is kept where it stands, but not looked for elsewhere
    max_texts: int = 200  # one met in more tells nothing apart ...
    max_share: float = 0.005  # ... unless that is no larger share of the corpus than this
    term_min_texts: int = 3
    term_min_association: float = 0.25  # normalised pointwise mutual information of a term's halves
    term_min_share: float = 0.1  # of a proper noun's occurrences that a term beginning with it must hold
    case_free_letters: int = 10  # a single word at least this long is found in any case
    acronym_min_share: float = 0.6  # of the documents that explain an acronym, those that agree
    fuzzy_min_letters: int = 12
    fuzzy_min_score: float = 0.93
    max_related: int = 12  # co-occurrence relations kept for one entity
    min_together: int = 2  # sentences in which two entities must meet
    kept_apart: frozenset[tuple[str, str]] = frozenset()  # (alias, canonical) merges a person has undone

    def text_cap(self, n_texts: int) -> int:
        """The largest number of texts a found name may occur in."""
        return max(self.max_texts, int(self.max_share * n_texts))


# Which names are known: what titles and sources state, and what the texts propose often enough but not too often.


_CLOSED = FUNCTION_WORDS | CALENDAR | NEUTRAL_TITLES
_CLOSED_WORDS = pa.array(sorted(FUNCTION_WORDS | CALENDAR), pa.string())
_MET_OR_STATED = Origin.STATED | Origin.NAME | Origin.TERM
SOUGHT, RARE = 4, 8  # bits of `Gazetteer.how` beside the ways of writing
LONGEST_SOUGHT = 16  # words; longer titles are entities but nobody repeats them in running text


@dataclass(frozen=True)
class Gazetteer:
    """The known names, how each is sought, and the words that are no names by themselves."""

    names: Names
    how: Bits  # 0: not sought; else SOUGHT and how it must be written, or RARE
    common: frozenset[str]
    stated: tuple[int, ...]  # the row of each stated name, in the order given; -1 for one without a letter

    def build_trie(self, vocabulary: Hashes) -> tuple[Trie, Longs]:
        """The trie of the names that are sought and can be written with these words (sorted), and their rows."""
        place = np.minimum(np.searchsorted(vocabulary, self.names.words), max(0, len(vocabulary) - 1))
        absent = running(vocabulary[place] != self.names.words) if len(vocabulary) else running(place >= 0)
        offsets = self.names.offsets
        is_written: Flags = absent[offsets[1:]] == absent[offsets[:-1]]
        rows = np.flatnonzero(is_written & ((self.how & SOUGHT) != 0))
        sizes = np.diff(offsets)[rows]
        words = self.names.words[find_ranges(offsets[rows], sizes)]
        ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        case = self.how[rows] & ~np.uint8(SOUGHT)
        return build_trie(words, ends, case, np.ones(len(rows), dtype=np.bool_)), rows


@dataclass(frozen=True)
class _NameProposals:
    """Distinct names the texts propose, with one place each and how many texts propose them."""

    place: Place
    named: Ints
    termed: Ints
    defined: Flags
    joined: Flags
    count: Ints


def build_gazetteer(
    read: TextReadings, tokens: Words, stated: Sequence[tuple[str, int]], rules: EntityRules
) -> Gazetteer:
    """Decides over the whole corpus which names are known; the order of texts and of stated names does not matter.

    `tokens` are the words of `read`.
    """
    common = _common_words(read, tokens)
    n_texts = len(read)
    proposed = _propose(read, tokens, common)
    origin = _origin_of(tokens, proposed, common, n_texts, rules)
    keep = np.flatnonzero(origin)
    place = proposed.place
    found = Place(tokens, place.identity[keep], place.first[keep], place.last[keep])
    said, which = whole([name for name, _ in stated])
    why = np.array([why for _, why in stated], dtype=np.int32)[which]
    why |= np.where(_any_capital(said), Origin.CAPITAL, 0).astype(np.int32)
    identity = distinct(np.concatenate([found.identity, said.identity]))
    merged = np.zeros(len(identity), dtype=np.int32)
    merged[np.searchsorted(identity, found.identity)] = origin[keep]
    np.bitwise_or.at(merged, np.searchsorted(identity, said.identity), why)
    merged = np.where(merged & Origin.STATED, merged & ~Origin.RARE, merged).astype(np.int32)
    merged = np.where(merged & _MET_OR_STATED, merged & ~Origin.PHRASE, merged).astype(np.int32)
    texts = np.zeros(len(identity), dtype=np.int32)
    most = np.maximum(proposed.named, proposed.termed)
    texts[np.searchsorted(identity, found.identity)] = most[keep]
    names = Names(identity, *spell(identity, [found, said]), merged, texts)
    ordinary = frozenset(tokens.folded[index] for index in np.flatnonzero(common).tolist())
    rows = np.full(len(stated), -1, dtype=np.int64)
    rows[which] = np.searchsorted(identity, said.identity)
    return Gazetteer(names, _ways_to_seek(names, ordinary, rules), ordinary, tuple(rows.tolist()))


def _common_words(read: TextReadings, tokens: Words) -> Flags:
    """Distinct words that are no names by themselves: mostly in lower case where a capital would mean something.

    The capital of a word that opens a sentence, or is a piece of a name, may come from that.
    """
    capital, led = (tokens.shape & CAPITAL) != 0, read.opens() | read.pieces()
    size = len(tokens.vocabulary)
    upper = np.bincount(tokens.word[capital & ~led], minlength=size)
    lower = np.bincount(tokens.word[~capital], minlength=size)
    closed = pc.is_in(read.folded, value_set=_CLOSED_WORDS).to_numpy(zero_copy_only=False)
    common: Flags = closed | (lower > upper)
    return common


def _propose(read: TextReadings, tokens: Words, common: Flags) -> _NameProposals:
    """The names that texts propose, less spans that owe their first capital to the start of a sentence.

    An example of such a span is "Director John Huston".
    """
    accident = ((read.mark & int(Mark.INITIAL)) != 0) & common[tokens.word[read.first]]
    meant = np.flatnonzero(~accident)
    first, mark = read.first[meant], read.mark[meant]
    which, identity = encode(read.identity[meant])
    example = np.zeros(len(identity), dtype=np.int64)
    example[which[::-1]] = np.arange(len(which) - 1, -1, -1)
    defined, joined = np.zeros(len(identity), dtype=np.bool_), np.zeros(len(identity), dtype=np.bool_)
    defined[which[(mark & int(Mark.DEFINED)) != 0]] = True
    joined[which[(mark & int(Mark.JOINED)) != 0]] = True
    text = tokens.text[first].astype(np.int64)
    named, termed = (
        _texts_of(which, text, (mark & int(kind)) != 0, len(identity), len(read)) for kind in (Mark.NAME, Mark.TERM)
    )
    begin = first[example].astype(np.int64)
    place = Place(tokens, identity, begin, begin + read.size[meant[example]])
    count = np.bincount(which, minlength=len(identity)).astype(np.int32)
    return _NameProposals(place, named, termed, defined, joined, count)


def _texts_of(which: Ints, text: Longs, chosen: Flags, size: int, n_texts: int) -> Ints:
    """In how many texts each name is proposed among the chosen spans."""
    pairs = distinct(which[chosen].astype(np.int64) * n_texts + text[chosen])
    return np.bincount(pairs // max(1, n_texts), minlength=size).astype(np.int32)


def _origin_of(tokens: Words, proposed: _NameProposals, common: Flags, n_texts: int, rules: EntityRules) -> Ints:
    """Why each proposed name is known, 0 where it is not."""
    first, last = proposed.place.first, proposed.place.last
    cap = rules.text_cap(n_texts)
    ordinary = (last - first == 1) & common[tokens.word[first]]
    named = (proposed.named > 0) & (proposed.named <= cap) & ~(ordinary & ~proposed.defined)
    rare = named & (proposed.named < rules.min_texts) & ~proposed.defined
    named &= ~(rare & proposed.joined)
    termed = (proposed.termed >= rules.term_min_texts) & (proposed.termed <= cap)
    termed &= _association(tokens, proposed) >= rules.term_min_association
    termed &= _is_at_home(tokens, proposed, rules)
    lower = proposed.defined & ~_any_capital(proposed.place)
    termed |= lower & (proposed.named <= cap)
    origin = np.where(named & ~lower, Origin.NAME | Origin.CAPITAL, 0)
    origin |= np.where(rare & ~termed, Origin.RARE, 0) | np.where(termed, Origin.TERM, 0)
    return origin.astype(np.int32)


def _association(tokens: Words, proposed: _NameProposals) -> NDArray[np.float64]:
    """Normalised pointwise mutual information of a term's first and last word, by occurrences over all words."""
    total = max(2, len(tokens))
    word = np.bincount(tokens.word, minlength=len(tokens.vocabulary)) / total
    together = np.minimum(proposed.count / total, 0.5)
    apart = word[tokens.word[proposed.place.first]] * word[tokens.word[proposed.place.last - 1]]
    score: NDArray[np.float64] = np.log(together / apart) / -np.log(together)
    return score


def _is_at_home(tokens: Words, proposed: _NameProposals, rules: EntityRules) -> Flags:
    """Whether a term that begins with a proper noun is that noun's usual company: Markov chain, not German composer."""
    head = proposed.place.first
    total = np.bincount(tokens.word, minlength=len(tokens.vocabulary))
    usual: Flags = proposed.count >= rules.term_min_share * total[tokens.word[head]]
    usual |= (tokens.shape[head] & CAPITAL) == 0
    return usual


def _any_capital(place: Place) -> Flags:
    counts = running((place.tokens.shape & CAPITAL) != 0)
    capital: Flags = counts[place.last] > counts[place.first]
    return capital


def _ways_to_seek(names: Names, common: frozenset[str], rules: EntityRules) -> Bits:
    """How each name is sought: names worth looking for say how they must be written to be meant."""
    sizes, why = np.diff(names.offsets), names.origin
    ordinary = _all_words(names, common.__contains__)
    capital, term = (why & Origin.CAPITAL) != 0, (why & Origin.TERM) != 0
    bare = _all_words(names, lambda word: len(word) == 1 or word.isdigit())
    sought = ((why & (Origin.RARE | Origin.PHRASE)) == 0) & (sizes <= LONGEST_SOUGHT) & ~bare & ~_sums_of_names(names)
    case = np.where(ordinary & capital & ~term, INSIDE_SENTENCE, ANY_CASE)
    one = sizes == 1
    closed = _all_words(names, _CLOSED.__contains__)
    marked = _all_words(names, lambda word: "_" in word)
    long = _all_words(names, lambda word: len(word) >= rules.case_free_letters)
    sought &= ~(one & (closed | (~capital & (ordinary | ~marked))))
    case = np.where(one & ~ordinary & ~long & ~marked, CAPITALISED, np.where(one & ordinary, INSIDE_SENTENCE, case))
    return np.where(sought, SOUGHT | case, np.where(names.has(Origin.RARE), RARE, 0)).astype(np.uint8)


def _all_words(names: Names, holds: Callable[[str], bool]) -> Flags:
    """Which names consist of words that satisfy the test; asked once a distinct word."""
    answers = np.fromiter(map(holds, names.letters), dtype=np.bool_, count=len(names.letters))
    failed = running(~answers[names.spelling])
    passed: Flags = failed[names.offsets[1:]] == failed[names.offsets[:-1]]
    return passed


def _sums_of_names(names: Names) -> Flags:
    """Which names only join two known ones, as "India and Pakistan" does; a stated name is never that."""
    joins = ~_all_words(names, lambda word: word not in WEAK_CONNECTORS)
    sums: Flags = joins & (np.diff(names.offsets) > 2) & ~names.has(Origin.STATED | Origin.TERM)
    asked = [
        (row, words[:index], words[index + 1 :])
        for row, words in zip(np.flatnonzero(sums).tolist(), names.plain.take(np.flatnonzero(sums)), strict=True)
        for index in range(1, len(words) - 1)
        if words[index] in WEAK_CONNECTORS
    ]
    sums[:] = False
    heads = names.find_words([head for _, head, _ in asked])
    tails = names.find_words([tail for _, _, tail in asked])
    for (row, _, _), head, tail in zip(asked, heads, tails, strict=True):
        sums[row] |= head >= 0 and tail >= 0
    return sums
