"""Which names are known: what titles and sources state, and what texts propose often enough but not
too often.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, count

import numpy as np

from hades.ingest.entities.candidates import Mark, TextReadings
from hades.text.word_lists import CALENDAR, FUNCTION_WORDS, NEUTRAL_TITLES, OPENERS, WEAK_CONNECTORS
from hades.text.words import CAPITAL, QUOTE, Bits, Hashes, Tokens, running, span_hashes, tokenize
from models.arrays import Flags, Floats, Ints, Longs, rows_of

_CLOSED_CLASS = FUNCTION_WORDS | CALENDAR | OPENERS
_AND = frozenset({"and"})
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
        return np.fromiter(
            map(len, self.plain),
            np.int64,
            count=len(self.plain),
        )

    @cached_property
    def _row_of(self) -> dict[tuple[str, ...], int]:
        return dict(zip(self.plain, count()))

    def find(self, words: tuple[str, ...]) -> int:
        """The row of the name with these folded words, -1 where it is not known."""
        return self._row_of.get(words, -1)

    def numbers(self, identity: Hashes) -> Longs:
        """The row of each name by its identity, -1 where it is not known."""
        if not len(self.identity):
            return np.full(len(identity), -1)

        place = np.minimum(np.searchsorted(self.identity, identity), len(self.identity) - 1)
        return np.where(
            self.identity[place] == identity,
            place,
            -1,
        )

    def has(self, reasons: int) -> Flags:
        """Which names are known for one of these reasons."""
        known: Flags = (self.origin & reasons) != 0
        return known

    def may_be_people(self) -> Flags:
        """Which names may be those of people: stated or found, in capitals, no terms."""
        is_name = self.has(Origin.NAME | Origin.STATED)
        return is_name & self.has(Origin.CAPITAL) & ~self.has(Origin.TERM)

    def where(self, holds: Callable[[tuple[str, ...]], bool]) -> Flags:
        """Which names satisfy a test of their words."""
        return np.fromiter(
            map(holds, self.plain),
            np.bool_,
            count=len(self.plain),
        )

    def only(self, rows: Longs, texts: Ints) -> Names:
        """Some of the names, in the same order, with the number of texts that hold each."""
        plain = [self.plain[row] for row in rows.tolist()]
        return Names(
            self.identity[rows],
            plain,
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
        names = []
        for first, last in rows_of(self.first, self.last):
            words = self.tokens.word[first:last].tolist()
            names.append(tuple(map(self.tokens.folded.__getitem__, words)))

        return names

    def any_capital(self) -> Flags:
        """Which names are written with a capital there."""
        counts = running(self.tokens.written(CAPITAL))
        capital: Flags = counts[self.last] > counts[self.first]
        return capital

    def is_single(self) -> Flags:
        """Which names are one word."""
        single: Flags = self.last - self.first == 1
        return single

    def only(self, rows: Longs) -> Place:
        """Some of the names, in this order."""
        return Place(
            self.tokens,
            self.identity[rows],
            self.first[rows],
            self.last[rows],
        )


def read_whole(names: Sequence[str]) -> tuple[Place, Longs]:
    """Each given string as one name, and which string it is; strings without a letter or digit are
    left out.
    """
    tokens = tokenize(list(names))
    string_row, first = np.unique(tokens.text, return_index=True)
    last = np.append(first[1:], len(tokens))[: len(first)]
    return Place(
        tokens,
        span_hashes(tokens, first, last),
        first,
        last,
    ), string_row.astype(np.int64)


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


def build_gazetteer(
    readings: TextReadings,
    stated: Sequence[tuple[str, int]],
) -> Gazetteer:
    """Decides over the whole corpus which names are known; the order of texts and of stated names
    does not matter.
    """
    tokens = readings.tokens
    common = _common_words(readings)
    proposed = _propose(readings, common)
    origin = _origin_of(proposed, common, readings.n_texts)
    keep = np.flatnonzero(origin)
    proposed_place = proposed.place.only(keep)
    stated_place, string_rows = read_whole([name for name, _ in stated])
    stated_origin = np.array([reason for _, reason in stated], np.int32)[string_rows]
    stated_origin[stated_place.any_capital()] |= Origin.CAPITAL
    identity = np.union1d(proposed_place.identity, stated_place.identity)
    proposed_rows = np.searchsorted(identity, proposed_place.identity)
    stated_rows = np.searchsorted(identity, stated_place.identity)
    merged, texts = np.zeros((2, len(identity)), np.int32)
    merged[proposed_rows] = origin[keep]
    texts[proposed_rows] = np.maximum(proposed.name_texts, proposed.term_texts)[keep]
    np.bitwise_or.at(merged, stated_rows, stated_origin)
    merged[(merged & Origin.STATED) != 0] &= ~Origin.RARE
    merged[(merged & (Origin.STATED | Origin.NAME | Origin.TERM)) != 0] &= ~Origin.PHRASE
    plain = dict(zip(proposed_rows.tolist(), proposed_place.spell(), strict=True))
    plain |= zip(stated_rows.tolist(), stated_place.spell(), strict=True)
    names = Names(
        identity,
        [plain[row] for row in range(len(identity))],
        merged,
        texts,
    )
    ordinary = frozenset(compress(tokens.folded, common))
    rows = np.full(len(stated), -1)
    rows[string_rows] = stated_rows
    return Gazetteer(
        names,
        _ways_to_seek(names, ordinary),
        ordinary,
        tuple(rows.tolist()),
    )


def _common_words(readings: TextReadings) -> Flags:
    """Distinct words that are no names by themselves: mostly in lower case where a capital would
    mean something.

    The capital of a word that opens a sentence, or is a piece of a name, may come from that.
    """
    tokens, is_capital = readings.tokens, readings.tokens.written(CAPITAL)
    is_by_choice = readings.is_prose & is_capital & ~(readings.starts | readings.pieces)
    upper = tokens.count_words(is_by_choice)
    # `tidemark sync` says nothing of how Tidemark is written.
    lower = tokens.count_words(readings.is_prose & ~is_capital & ~tokens.parted(QUOTE))
    closed = np.array([word in _CLOSED_CLASS for word in tokens.folded], np.bool_)
    identifier = np.array(
        [bool(_IDENTIFIER.fullmatch(word)) for word in tokens.folded],
        np.bool_,
    )
    common: Flags = closed | ((lower > upper) & ~identifier)
    return common


def _propose(readings: TextReadings, common: Flags) -> _NameProposals:
    """The names that texts propose, less spans that owe their first capital to the start of a
    sentence.

    An example of such a span is "Director John Huston".
    """
    spans = readings.spans
    tokens = readings.tokens
    is_accident = spans.marked(Mark.INITIAL) & common[tokens.word[spans.first]]
    deliberate = np.flatnonzero(~is_accident)
    spans = spans.only(deliberate)
    identity, example, proposal, count = np.unique(
        readings.identity[deliberate],
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    size = len(identity)
    n_texts = max(1, readings.n_texts)
    defined, joined, repeated = np.zeros((3, size), np.bool_)
    defined[proposal[spans.marked(Mark.DEFINED)]] = True
    joined[proposal[spans.marked(Mark.JOINED)]] = True
    codes = proposal.astype(np.int64) * n_texts + tokens.text[spans.first]
    is_term = spans.marked(Mark.TERM)
    named = np.unique(codes[spans.marked(Mark.NAME)]) // n_texts
    pairs, times = np.unique(codes[is_term], return_counts=True)
    repeated[pairs[times > 1] // n_texts] = True
    repeated[proposal[is_term & spans.marked(Mark.HEADING) & (count[proposal] > 1)]] = True
    return _NameProposals(
        place=Place(
            tokens,
            identity,
            spans.first[example],
            spans.last[example],
        ),
        name_texts=np.bincount(named, minlength=size).astype(np.int32),
        term_texts=np.bincount(pairs // n_texts, minlength=size).astype(np.int32),
        defined=defined,
        joined=joined,
        repeated=repeated,
        count=count,
        of_word=tokens.count_words(readings.is_prose),
    )


def _origin_of(
    proposed: _NameProposals,
    common: Flags,
    n_texts: int,
) -> Ints:
    """Why each proposed name is known, 0 where it is not."""
    place, tokens, texts = proposed.place, proposed.place.tokens, proposed.name_texts
    cap = max(_MAX_TEXTS, int(_MAX_SHARE * n_texts))
    head = tokens.word[place.first]
    ordinary = place.is_single() & common[head] & ~proposed.defined
    is_name = (texts > 0) & (texts <= cap) & ~ordinary
    rare = is_name & (texts < _MIN_TEXTS) & ~proposed.defined
    ands = running(tokens.among(_AND))
    is_sum = rare & proposed.joined & (ands[place.last] > ands[place.first])
    is_name = is_name & ~is_sum
    rare = rare & ~is_sum
    odd = running(~common[tokens.word])
    is_ordinary = odd[place.last] == odd[place.first]  # no word of it is a name by itself
    is_frequent = proposed.term_texts >= _TERM_MIN_TEXTS
    is_together = _share_together(proposed) >= _REPEATED_MIN_SHARE
    is_frequent |= proposed.repeated & is_ordinary & is_together
    is_term = is_frequent & (proposed.term_texts <= cap)
    is_term &= _association(proposed) >= _TERM_MIN_ASSOCIATION
    # A term that begins with a proper noun must be that noun's usual company: Markov chain, not
    # German composer.
    is_usual = proposed.count >= _TERM_MIN_SHARE * proposed.of_word[head]
    is_term &= is_usual | ~tokens.written(CAPITAL)[place.first]
    lower = proposed.defined & ~place.any_capital()
    is_term |= lower & (texts <= cap)
    is_name &= ~lower
    origin = np.zeros(len(texts), np.int32)
    origin[is_name] |= Origin.NAME
    origin[is_name & (place.any_capital() | place.is_single())] |= Origin.CAPITAL
    origin[rare & ~is_term] |= Origin.RARE
    origin[is_term] |= Origin.TERM
    return origin


def _share_together(proposed: _NameProposals) -> Floats:
    """Of the occurrences of a term's first and last word, the share in which both stand in it."""
    word = proposed.place.tokens.word
    place = proposed.place
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
    how = np.zeros(len(names), np.uint8)
    may_be_sum = ~names.has(Origin.STATED | Origin.TERM)

    for row, (words, origin) in enumerate(zip(names.plain, names.origin.tolist(), strict=True)):
        how[row] = _way_to_seek(words, origin, common)
        if how[row] & SOUGHT and may_be_sum[row] and _is_sum(names, words):
            how[row] = 0

    return how


def _way_to_seek(
    words: tuple[str, ...],
    origin: int,
    common: frozenset[str],
) -> int:
    if origin & Origin.RARE:
        return RARE

    says_nothing = all(len(word) == 1 or word.isdigit() for word in words)
    if origin & Origin.PHRASE or len(words) > LONGEST_SOUGHT or says_nothing:
        return 0

    ordinary = common.issuperset(words)
    is_capital = bool(origin & Origin.CAPITAL)
    if len(words) > 1:
        needs_capital = ordinary and is_capital and not origin & Origin.TERM
        return SOUGHT | (INSIDE_SENTENCE if needs_capital else ANY_CASE)

    word = words[0]
    is_marked = "_" in words[0] or words[0].startswith("--")
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
        if words[place] in WEAK_CONNECTORS:
            left = names.find(words[:place])
            right = names.find(words[place + 1 :])
            if left >= 0 and right >= 0:
                return True

    return False
