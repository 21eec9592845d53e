"""Which names are known: what titles and sources state, and what texts propose often enough but not
too often.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hades.ingest.entities.candidates import Mark, TextReadings
from hades.text.word_lists import CALENDAR, FUNCTION_WORDS, NEUTRAL_TITLES, OPENERS, WEAK_CONNECTORS
from hades.text.words import CAPITAL, QUOTE, Bits, Hashes, Tokens, running, span_hashes, tokenize
from models.arrays import Flags, Floats, Ints, Longs

_CLOSED_CLASS = FUNCTION_WORDS | CALENDAR | OPENERS
_AND = frozenset(("and",))
_IDENTIFIER = re.compile(r"--.+|[a-z]{2,}(?:_[a-z]{2,})+")
_NO_NAMES = _CLOSED_CLASS | NEUTRAL_TITLES
ANY_CASE, CAPITALISED, INSIDE_SENTENCE, SOUGHT, RARE = 0, 1, 2, 4, 8  # how a name is sought
LONGEST_SOUGHT = 16  # words; longer titles are entities but nobody repeats them in running text
# Texts are chunks. A capitalised name proposed in fewer texts is a mention where it stands, but is
# not searched for elsewhere.
_MIN_TEXTS = 2
_MAX_TEXTS = 200  # a name in more texts does not distinguish them ...
_MAX_SHARE = 0.005  # ... unless that is no larger share of the corpus than this
_TERM_MIN_TEXTS = 3
_TERM_MIN_ASSOCIATION = 0.25  # normalised pointwise mutual information of a term's halves
# What one text repeats, or the heading of a section says as well, is a term of fewer texts when its
# first and last word seldom stand apart: the share of their occurrences.
_REPEATED_MIN_SHARE = 0.2
_TERM_MIN_SHARE = 0.1  # of a proper noun's occurrences that a term beginning with it must hold
_CASE_FREE_LETTERS = 10  # a single word at least this long is found in any case


class Origin:
    """Why a name is known, as bits of a plain number, because they are read for hundreds of
    thousands of names.
    """

    TITLE = 1
    GIVEN = 2
    SYMBOL = 4
    NAME = 8
    TERM = 16
    CAPITAL = 32  # somewhere it is written with a capital
    RARE = 64  # in one text only: a mention where it stands, not searched for elsewhere
    PHRASE = 128  # only an end of a stated triple: an entity, but not searched for in texts
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

    def has(self, reasons: int) -> Flags:
        """Which names are known for one of these reasons."""
        known: Flags = (self.origin & reasons) != 0
        return known

    def where(self, holds: Callable[[tuple[str, ...]], bool]) -> Flags:
        """Which names satisfy a test of their words."""
        return np.fromiter(map(holds, self.plain), dtype=np.bool_, count=len(self.plain))

    def only(self, rows: Longs, texts: Ints) -> Names:
        """Some of the names, in the same order, with the number of texts that hold each."""
        return Names(
            self.identity[rows],
            [self.plain[row] for row in rows.tolist()],
            self.origin[rows],
            texts,
        )


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
        return [tuple(map(folded.__getitem__, word[first:last].tolist())) for first, last in spans]

    def any_capital(self) -> Flags:
        """Which names are written with a capital there."""
        counts = running((self.tokens.shape & CAPITAL) != 0)
        capital: Flags = counts[self.last] > counts[self.first]
        return capital


def read_whole(names: Sequence[str]) -> tuple[Place, Longs]:
    """Each given string as one name, and which string it is; strings without a letter or digit are
    left out.
    """
    tokens = tokenize(list(names))
    string_row, first = np.unique(tokens.text, return_index=True)
    last = np.append(first[1:], len(tokens))[: len(first)]
    return Place(tokens, span_hashes(tokens, first, last), first, last), string_row.astype(np.int64)


@dataclass(frozen=True)
class Gazetteer:
    """The known names, how each is sought, and the words that are no names by themselves."""

    names: Names
    how: Bits  # 0: not sought; else SOUGHT and how it must be written, or RARE
    common: frozenset[str]
    # the row of each stated name, in the order given; -1 for one without a letter
    stated: tuple[int, ...]


@dataclass(frozen=True)
class _NameProposals:
    """Distinct names the texts propose, with one place each and how many texts propose them."""

    place: Place
    name_texts: Ints  # texts that propose it as a name
    term_texts: Ints  # and as a term
    defined: Flags
    joined: Flags
    repeated: Flags  # as a term: in one text, or in a heading and elsewhere
    count: Longs
    of_word: Longs  # how often each word of the vocabulary stands in prose


def build_gazetteer(readings: TextReadings, stated: Sequence[tuple[str, int]]) -> Gazetteer:
    """Decides over the whole corpus which names are known; the order of texts and of stated names
    does not matter.
    """
    tokens = readings.tokens
    common = _common_words(readings)
    proposed = _propose(readings, common)
    origin = _origin_of(proposed, common, readings.n_texts)
    keep = np.flatnonzero(origin)
    place = proposed.place
    proposed_place = Place(tokens, place.identity[keep], place.first[keep], place.last[keep])
    stated_place, string_rows = read_whole([name for name, _ in stated])
    stated_origin = np.array([reason for _, reason in stated], dtype=np.int32)[string_rows]
    stated_origin |= np.where(stated_place.any_capital(), Origin.CAPITAL, 0).astype(np.int32)
    identity = np.unique(np.concatenate([proposed_place.identity, stated_place.identity]))
    proposed_rows = np.searchsorted(identity, proposed_place.identity)
    stated_rows = np.searchsorted(identity, stated_place.identity)
    merged = np.zeros(len(identity), dtype=np.int32)
    merged[proposed_rows] = origin[keep]
    texts = np.zeros(len(identity), dtype=np.int32)
    texts[proposed_rows] = np.maximum(proposed.name_texts, proposed.term_texts)[keep]
    np.bitwise_or.at(merged, stated_rows, stated_origin)
    merged[(merged & Origin.STATED) != 0] &= ~Origin.RARE
    merged[(merged & (Origin.STATED | Origin.NAME | Origin.TERM)) != 0] &= ~Origin.PHRASE
    plain: list[tuple[str, ...]] = [()] * len(identity)
    for spelled, rows in ((proposed_place, proposed_rows), (stated_place, stated_rows)):
        for row, words in zip(rows.tolist(), spelled.spell(), strict=True):
            plain[row] = words
    names = Names(identity, plain, merged, texts)
    ordinary = frozenset(tokens.folded[index] for index in np.flatnonzero(common).tolist())
    rows = np.full(len(stated), -1, dtype=np.int64)
    rows[string_rows] = stated_rows
    return Gazetteer(names, _ways_to_seek(names, ordinary), ordinary, tuple(rows.tolist()))


def _common_words(readings: TextReadings) -> Flags:
    """Distinct words that are no names by themselves: mostly in lower case where a capital would
    mean something.

    The capital of a word that opens a sentence, or is a piece of a name, may come from that.
    """
    tokens, size = readings.tokens, len(readings.tokens.vocabulary)
    capital = (tokens.shape & CAPITAL) != 0
    upper = np.bincount(
        tokens.word[readings.is_prose & capital & ~(readings.starts | readings.pieces)],
        minlength=size,
    )
    is_quoted = (tokens.gap & QUOTE) != 0  # `tidemark sync` says nothing of how Tidemark is written
    lower = np.bincount(tokens.word[readings.is_prose & ~capital & ~is_quoted], minlength=size)
    closed = np.fromiter(map(_CLOSED_CLASS.__contains__, tokens.folded), dtype=np.bool_, count=size)
    identifier = np.fromiter(
        (bool(_IDENTIFIER.fullmatch(word)) for word in tokens.folded), dtype=np.bool_, count=size
    )
    common: Flags = closed | ((lower > upper) & ~identifier)
    return common


def _propose(readings: TextReadings, common: Flags) -> _NameProposals:
    """The names that texts propose, less spans that owe their first capital to the start of a
    sentence.

    An example of such a span is "Director John Huston".
    """
    spans, tokens = readings.spans, readings.tokens
    accident = ((spans.mark & int(Mark.INITIAL)) != 0) & common[tokens.word[spans.first]]
    deliberate = np.flatnonzero(~accident)
    first, last, mark = spans.first[deliberate], spans.last[deliberate], spans.mark[deliberate]
    identity, proposal = np.unique(readings.identity[deliberate], return_inverse=True)
    size = len(identity)
    example = np.zeros(size, dtype=np.int64)
    example[proposal[::-1]] = np.arange(len(proposal) - 1, -1, -1)
    defined, joined = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    defined[proposal[(mark & int(Mark.DEFINED)) != 0]] = True
    joined[proposal[(mark & int(Mark.JOINED)) != 0]] = True
    codes = proposal.astype(np.int64) * readings.n_texts + tokens.text[first]

    def count_texts(kind: Mark) -> Ints:
        pairs = np.unique(codes[(mark & int(kind)) != 0])
        return np.bincount(pairs // max(1, readings.n_texts), minlength=size).astype(np.int32)

    place = Place(tokens, identity, first[example], last[example])
    repeated = np.zeros(size, dtype=np.bool_)
    pairs, times = np.unique(codes[(mark & int(Mark.TERM)) != 0], return_counts=True)
    repeated[pairs[times > 1] // max(1, readings.n_texts)] = True
    is_heading = (mark & int(Mark.TERM)) != 0
    is_heading &= (mark & int(Mark.HEADING)) != 0
    count = np.bincount(proposal, minlength=size)
    repeated[proposal[is_heading & (count[proposal] > 1)]] = True
    of_word = np.bincount(tokens.word[readings.is_prose], minlength=len(tokens.vocabulary))
    return _NameProposals(
        place=place,
        name_texts=count_texts(Mark.NAME),
        term_texts=count_texts(Mark.TERM),
        defined=defined,
        joined=joined,
        repeated=repeated,
        count=count,
        of_word=of_word,
    )


def _origin_of(proposed: _NameProposals, common: Flags, n_texts: int) -> Ints:
    """Why each proposed name is known, 0 where it is not."""
    place = proposed.place
    cap = max(_MAX_TEXTS, int(_MAX_SHARE * n_texts))
    ordinary = (place.last - place.first == 1) & common[place.tokens.word[place.first]]
    is_frequent_enough = (proposed.name_texts > 0) & (proposed.name_texts <= cap)
    is_name = is_frequent_enough & ~(ordinary & ~proposed.defined)
    rare = is_name & (proposed.name_texts < _MIN_TEXTS) & ~proposed.defined
    ands = running(place.tokens.among(_AND))
    is_sum = rare & proposed.joined & (ands[place.last] > ands[place.first])
    is_name, rare = is_name & ~is_sum, rare & ~is_sum
    is_frequent = proposed.term_texts >= _TERM_MIN_TEXTS
    odd = running(~common[place.tokens.word])
    is_ordinary = odd[place.last] == odd[place.first]  # no word of it is a name by itself
    is_repeated = proposed.repeated & is_ordinary
    is_frequent |= is_repeated & (_share_together(proposed) >= _REPEATED_MIN_SHARE)
    is_term = is_frequent & (proposed.term_texts <= cap)
    is_term &= _association(proposed) >= _TERM_MIN_ASSOCIATION
    # A term that begins with a proper noun must be that noun's usual company: Markov chain, not
    # German composer.
    tokens, head = place.tokens, place.first
    is_usual = proposed.count >= _TERM_MIN_SHARE * proposed.of_word[tokens.word[head]]
    is_term &= is_usual | ((tokens.shape[head] & CAPITAL) == 0)
    lower = proposed.defined & ~place.any_capital()
    is_term |= lower & (proposed.name_texts <= cap)
    written = place.any_capital() | (place.last - place.first == 1)
    origin = np.where(is_name & ~lower, Origin.NAME, 0)
    origin |= np.where(is_name & ~lower & written, Origin.CAPITAL, 0)
    origin |= np.where(rare & ~is_term, Origin.RARE, 0)
    origin |= np.where(is_term, Origin.TERM, 0)
    return origin.astype(np.int32)


def _share_together(proposed: _NameProposals) -> Floats:
    """Of the occurrences of a term's first and last word, the share in which both stand in it."""
    word, place = proposed.place.tokens.word, proposed.place
    apart = proposed.of_word[word[place.first]] + proposed.of_word[word[place.last - 1]]
    share: Floats = 2.0 * proposed.count / apart
    return share


def _association(proposed: _NameProposals) -> Floats:
    """Normalised pointwise mutual information of a term's first and last word, by occurrences over
    all words.
    """
    tokens = proposed.place.tokens
    total = max(2, int(proposed.of_word.sum()))
    word = proposed.of_word / total
    together = np.minimum(proposed.count / total, 0.5)
    apart = word[tokens.word[proposed.place.first]] * word[tokens.word[proposed.place.last - 1]]
    score: Floats = np.log(together / apart) / -np.log(together)
    return score


def _ways_to_seek(names: Names, common: frozenset[str]) -> Bits:
    """How each name is sought: names worth looking for say how they must be written to be meant."""
    known = zip(names.plain, names.origin.tolist(), strict=True)
    how = [_way_to_seek(words, origin, common) for words, origin in known]
    for row in np.flatnonzero(~names.has(Origin.STATED | Origin.TERM)).tolist():
        if how[row] & SOUGHT and _is_sum(names, names.plain[row]):
            how[row] = 0
    return np.array(how, dtype=np.uint8)


def _way_to_seek(words: tuple[str, ...], origin: int, common: frozenset[str]) -> int:
    if origin & Origin.RARE:
        return RARE
    if (
        origin & Origin.PHRASE
        or len(words) > LONGEST_SOUGHT
        or all(len(word) == 1 or word.isdigit() for word in words)
    ):
        return 0
    ordinary, is_capital = common.issuperset(words), bool(origin & Origin.CAPITAL)
    if len(words) > 1:
        needs_capital = ordinary and is_capital and not origin & Origin.TERM
        return SOUGHT | (INSIDE_SENTENCE if needs_capital else ANY_CASE)
    word, is_marked = words[0], "_" in words[0] or words[0].startswith("--")
    if origin & Origin.TERM and not is_capital:
        return SOUGHT | ANY_CASE
    if word in _NO_NAMES or (not is_capital and (ordinary or not is_marked)):
        return 0
    if ordinary:
        return SOUGHT | INSIDE_SENTENCE
    return SOUGHT | (ANY_CASE if is_marked or len(word) >= _CASE_FREE_LETTERS else CAPITALISED)


def _is_sum(names: Names, words: tuple[str, ...]) -> bool:
    """Whether a name only joins two known ones, as "India and Pakistan" does."""
    for place in range(1, len(words) - 1):
        parts = (words[:place], words[place + 1 :])
        if words[place] in WEAK_CONNECTORS and all(names.find(part) >= 0 for part in parts):
            return True
    return False
