"""The known names: one row each, in order of identity, with why it is known and the words it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import overload

import numpy as np

from hades.ingest.readings.text_readings import find_ranges
from hades.text.arrays import Flags, Hashes, Ints, Longs, encode
from hades.text.tokens import CHAR_BASE, WORD_BASE, Words, span_hashes, tokenize

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
