"""Which names are known: what titles and sources state, and what the texts propose often enough but not too often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hades.ingest.entities.candidates import Mark
from hades.ingest.entities.mentions import ANY_CASE, CAPITALISED, INSIDE_SENTENCE, Trie, build_trie
from hades.ingest.entities.names import Names, Origin, Place, spell, whole
from hades.ingest.entities.rules import EntityRules
from hades.ingest.readings.text_readings import TextReadings, find_ranges
from hades.text.arrays import Bits, Flags, Hashes, Ints, Longs, distinct, encode, running
from hades.text.tokens import CAPITAL, Words
from hades.text.word_lists import CALENDAR, FUNCTION_WORDS, NEUTRAL_TITLES, WEAK_CONNECTORS

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
