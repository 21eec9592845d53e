"""Which names are known: what titles and sources state, and what texts propose often enough but not too often."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hades.ingest.entities.candidates import Mark, TextReadings
from hades.text.word_lists import CALENDAR, FUNCTION_WORDS, NEUTRAL_TITLES, OPENERS, WEAK_CONNECTORS
from hades.text.words import CAPITAL, QUOTE, Bits, Flags, Hashes, Ints, Longs, Tokens, running, span_hashes, tokenize

_CLOSED_CLASS = FUNCTION_WORDS | CALENDAR | OPENERS
_AND = frozenset(("and",))
_IDENTIFIER = re.compile(r"--.+|[a-z]{2,}(?:_[a-z]{2,})+")
_NO_NAMES = _CLOSED_CLASS | NEUTRAL_TITLES
ANY_CASE, CAPITALISED, INSIDE_SENTENCE, SOUGHT, RARE = 0, 1, 2, 4, 8  # how a name is sought
LONGEST_SOUGHT = 16  # words; longer titles are entities but nobody repeats them in running text
# Texts are chunks.
_MIN_TEXTS = 2  # a capitalised name met in fewer texts is kept where it stands, but not looked for elsewhere
_MAX_TEXTS = 200  # one met in more tells nothing apart ...
_MAX_SHARE = 0.005  # ... unless that is no larger share of the corpus than this
_TERM_MIN_TEXTS = 3
_TERM_MIN_ASSOCIATION = 0.25  # normalised pointwise mutual information of a term's halves
_TERM_MIN_SHARE = 0.1  # of a proper noun's occurrences that a term beginning with it must hold
_CASE_FREE_LETTERS = 10  # a single word at least this long is found in any case


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


@dataclass(frozen=True)
class Names:
    """Known names in order of identity; two spellings with the same folded words are one name."""

    identity: Hashes  # sorted
    plain: Sequence[tuple[str, ...]]  # each name as folded words
    origin: Ints
    texts: Ints  # number of texts that propose it, later: that hold it

    def __len__(self) -> int:
        return len(self.identity)

    @cached_property
    def sizes(self) -> Longs:
        """How many words each name has."""
        return np.fromiter(map(len, self.plain), dtype=np.int64, count=len(self.plain))

    @cached_property
    def _row_of(self) -> dict[tuple[str, ...], int]:
        return {words: row for row, words in enumerate(self.plain)}

    def find(self, words: tuple[str, ...]) -> int:
        """The row of the name with these folded words, -1 where it is not known."""
        return self._row_of.get(words, -1)

    def numbers(self, identity: Hashes) -> Longs:
        """The row of each name by its identity, -1 where it is not known."""
        if not len(self.identity):
            return np.full(len(identity), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.identity, identity), len(self.identity) - 1)
        return np.where(self.identity[place] == identity, place, -1)

    def has(self, why: int) -> Flags:
        """Which names are known for one of these reasons."""
        known: Flags = (self.origin & why) != 0
        return known

    def where(self, holds: Callable[[tuple[str, ...]], bool]) -> Flags:
        """Which names satisfy a test of their words."""
        return np.fromiter(map(holds, self.plain), dtype=np.bool_, count=len(self.plain))

    def only(self, rows: Longs, texts: Ints) -> Names:
        """Some of the names, in the same order, with the number of texts that hold each."""
        return Names(self.identity[rows], [self.plain[row] for row in rows.tolist()], self.origin[rows], texts)


@dataclass(frozen=True)
class Place:
    """Names as they stand in some text: identity, and rows [first, last) of the tokens."""

    tokens: Tokens
    identity: Hashes
    first: Longs
    last: Longs

    def spell(self) -> list[tuple[str, ...]]:
        """Each name as folded words."""
        word, folded = self.tokens.word, self.tokens.folded
        spans = zip(self.first.tolist(), self.last.tolist(), strict=True)
        return [tuple([folded[one] for one in word[first:last].tolist()]) for first, last in spans]

    def any_capital(self) -> Flags:
        """Which names are written with a capital there."""
        counts = running((self.tokens.shape & CAPITAL) != 0)
        capital: Flags = counts[self.last] > counts[self.first]
        return capital


def read_whole(names: Sequence[str]) -> tuple[Place, Longs]:
    """Each given string as one name, and which string it is; strings without a letter or digit are left out."""
    tokens = tokenize(list(names))
    which, first = np.unique(tokens.text, return_index=True)
    last = np.append(first[1:], len(tokens))[: len(first)]
    return Place(tokens, span_hashes(tokens, first, last), first, last), which.astype(np.int64)


@dataclass(frozen=True)
class Gazetteer:
    """The known names, how each is sought, and the words that are no names by themselves."""

    names: Names
    how: Bits  # 0: not sought; else SOUGHT and how it must be written, or RARE
    common: frozenset[str]
    stated: tuple[int, ...]  # the row of each stated name, in the order given; -1 for one without a letter


@dataclass(frozen=True)
class _NameProposals:
    """Distinct names the texts propose, with one place each and how many texts propose them."""

    place: Place
    named: Ints
    termed: Ints
    defined: Flags
    joined: Flags
    count: Longs
    of_word: Longs  # how often each word of the vocabulary stands in prose


def build_gazetteer(read: TextReadings, stated: Sequence[tuple[str, int]]) -> Gazetteer:
    """Decides over the whole corpus which names are known; the order of texts and of stated names does not matter."""
    tokens = read.tokens
    common = _common_words(read)
    proposed = _propose(read, common)
    origin = _origin_of(proposed, common, read.n_texts)
    keep = np.flatnonzero(origin)
    place = proposed.place
    found = Place(tokens, place.identity[keep], place.first[keep], place.last[keep])
    said, which = read_whole([name for name, _ in stated])
    why = np.array([why for _, why in stated], dtype=np.int32)[which]
    why |= np.where(said.any_capital(), Origin.CAPITAL, 0).astype(np.int32)
    identity = np.unique(np.concatenate([found.identity, said.identity]))
    of_found, of_said = np.searchsorted(identity, found.identity), np.searchsorted(identity, said.identity)
    merged, texts = np.zeros(len(identity), dtype=np.int32), np.zeros(len(identity), dtype=np.int32)
    merged[of_found], texts[of_found] = origin[keep], np.maximum(proposed.named, proposed.termed)[keep]
    np.bitwise_or.at(merged, of_said, why)
    merged[(merged & Origin.STATED) != 0] &= ~Origin.RARE
    merged[(merged & (Origin.STATED | Origin.NAME | Origin.TERM)) != 0] &= ~Origin.PHRASE
    plain: list[tuple[str, ...]] = [()] * len(identity)
    for one, rows in ((found, of_found), (said, of_said)):
        for row, words in zip(rows.tolist(), one.spell(), strict=True):
            plain[row] = words
    names = Names(identity, plain, merged, texts)
    ordinary = frozenset(tokens.folded[index] for index in np.flatnonzero(common).tolist())
    rows = np.full(len(stated), -1, dtype=np.int64)
    rows[which] = of_said
    return Gazetteer(names, _ways_to_seek(names, ordinary), ordinary, tuple(rows.tolist()))


def _common_words(read: TextReadings) -> Flags:
    """Distinct words that are no names by themselves: mostly in lower case where a capital would mean something.

    The capital of a word that opens a sentence, or is a piece of a name, may come from that.
    """
    tokens, size = read.tokens, len(read.tokens.vocabulary)
    capital = (tokens.shape & CAPITAL) != 0
    upper = np.bincount(tokens.word[read.is_prose & capital & ~(read.starts | read.pieces)], minlength=size)
    is_quoted = (tokens.gap & QUOTE) != 0  # `tidemark sync` says nothing of how Tidemark is written
    lower = np.bincount(tokens.word[read.is_prose & ~capital & ~is_quoted], minlength=size)
    closed = np.fromiter(map(_CLOSED_CLASS.__contains__, tokens.folded), dtype=np.bool_, count=size)
    identifier = np.fromiter((bool(_IDENTIFIER.fullmatch(word)) for word in tokens.folded), dtype=np.bool_, count=size)
    common: Flags = closed | ((lower > upper) & ~identifier)
    return common


def _propose(read: TextReadings, common: Flags) -> _NameProposals:
    """The names that texts propose, less spans that owe their first capital to the start of a sentence.

    An example of such a span is "Director John Huston".
    """
    spans, tokens = read.spans, read.tokens
    accident = ((spans.mark & int(Mark.INITIAL)) != 0) & common[tokens.word[spans.first]]
    meant = np.flatnonzero(~accident)
    first, last, mark = spans.first[meant], spans.last[meant], spans.mark[meant]
    identity, which = np.unique(read.identity[meant], return_inverse=True)
    size = len(identity)
    example = np.zeros(size, dtype=np.int64)
    example[which[::-1]] = np.arange(len(which) - 1, -1, -1)
    defined, joined = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    defined[which[(mark & int(Mark.DEFINED)) != 0]] = True
    joined[which[(mark & int(Mark.JOINED)) != 0]] = True
    codes = which.astype(np.int64) * read.n_texts + tokens.text[first]

    def count_texts(kind: Mark) -> Ints:
        pairs = np.unique(codes[(mark & int(kind)) != 0])
        return np.bincount(pairs // max(1, read.n_texts), minlength=size).astype(np.int32)

    place = Place(tokens, identity, first[example], last[example])
    count = np.bincount(which, minlength=size)
    of_word = np.bincount(tokens.word[read.is_prose], minlength=len(tokens.vocabulary))
    return _NameProposals(place, count_texts(Mark.NAME), count_texts(Mark.TERM), defined, joined, count, of_word)


def _origin_of(proposed: _NameProposals, common: Flags, n_texts: int) -> Ints:
    """Why each proposed name is known, 0 where it is not."""
    place = proposed.place
    cap = max(_MAX_TEXTS, int(_MAX_SHARE * n_texts))
    ordinary = (place.last - place.first == 1) & common[place.tokens.word[place.first]]
    named = (proposed.named > 0) & (proposed.named <= cap) & ~(ordinary & ~proposed.defined)
    rare = named & (proposed.named < _MIN_TEXTS) & ~proposed.defined
    ands = running(place.tokens.among(_AND))
    is_sum = rare & proposed.joined & (ands[place.last] > ands[place.first])
    named, rare = named & ~is_sum, rare & ~is_sum
    termed = (proposed.termed >= _TERM_MIN_TEXTS) & (proposed.termed <= cap)
    termed &= _association(proposed) >= _TERM_MIN_ASSOCIATION
    # A term that begins with a proper noun must be that noun's usual company: Markov chain, not German composer.
    tokens, head = place.tokens, place.first
    termed &= (proposed.count >= _TERM_MIN_SHARE * proposed.of_word[tokens.word[head]]) | (
        (tokens.shape[head] & CAPITAL) == 0
    )
    lower = proposed.defined & ~place.any_capital()
    termed |= lower & (proposed.named <= cap)
    written = place.any_capital() | (place.last - place.first == 1)
    origin = np.where(named & ~lower, Origin.NAME, 0) | np.where(named & ~lower & written, Origin.CAPITAL, 0)
    origin |= np.where(rare & ~termed, Origin.RARE, 0) | np.where(termed, Origin.TERM, 0)
    return origin.astype(np.int32)


def _association(proposed: _NameProposals) -> NDArray[np.float64]:
    """Normalised pointwise mutual information of a term's first and last word, by occurrences over all words."""
    tokens = proposed.place.tokens
    total = max(2, int(proposed.of_word.sum()))
    word = proposed.of_word / total
    together = np.minimum(proposed.count / total, 0.5)
    apart = word[tokens.word[proposed.place.first]] * word[tokens.word[proposed.place.last - 1]]
    score: NDArray[np.float64] = np.log(together / apart) / -np.log(together)
    return score


def _ways_to_seek(names: Names, common: frozenset[str]) -> Bits:
    """How each name is sought: names worth looking for say how they must be written to be meant."""
    known = zip(names.plain, names.origin.tolist(), strict=True)
    how = [_way_to_seek(words, why, common) for words, why in known]
    for row in np.flatnonzero(~names.has(Origin.STATED | Origin.TERM)).tolist():
        if how[row] & SOUGHT and _is_sum(names, names.plain[row]):
            how[row] = 0
    return np.array(how, dtype=np.uint8)


def _way_to_seek(words: tuple[str, ...], why: int, common: frozenset[str]) -> int:
    if why & Origin.RARE:
        return RARE
    if why & Origin.PHRASE or len(words) > LONGEST_SOUGHT or all(len(word) == 1 or word.isdigit() for word in words):
        return 0
    ordinary, is_capital = common.issuperset(words), bool(why & Origin.CAPITAL)
    if len(words) > 1:
        return SOUGHT | (INSIDE_SENTENCE if ordinary and is_capital and not why & Origin.TERM else ANY_CASE)
    word, is_marked = words[0], "_" in words[0] or words[0].startswith("--")
    if word in _NO_NAMES or (not is_capital and (ordinary or not is_marked)):
        return 0
    if ordinary:
        return SOUGHT | INSIDE_SENTENCE
    return SOUGHT | (ANY_CASE if is_marked or len(word) >= _CASE_FREE_LETTERS else CAPITALISED)


def _is_sum(names: Names, words: tuple[str, ...]) -> bool:
    """Whether a name only joins two known ones, as "India and Pakistan" does."""
    return any(
        words[place] in WEAK_CONNECTORS and names.find(words[:place]) >= 0 and names.find(words[place + 1 :]) >= 0
        for place in range(1, len(words) - 1)
    )
