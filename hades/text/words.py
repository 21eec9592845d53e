"""Letters, tokens, stems, identifiers, key words."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hades.text.languages import detect_language, language_words, stemmer_named
from hades.text.word_lists import FUNCTION_WORDS, word_set
from models.arrays import Flags, Floats, Ints, Longs
from schemas.ids import Span

Hashes = NDArray[np.uint64]
Bits = NDArray[np.uint8]
Gaps = NDArray[np.uint16]


def strongest(
    first_ends: Longs,
    right: Longs,
    worth: Floats,
    most: int,
) -> Flags:
    """Which pairs are among the `most` strongest of both their ends; ties go to the smaller
    partner.
    """
    end = np.concatenate([first_ends, right])
    partner = np.concatenate([right, first_ends])
    order = np.lexsort((partner, -np.concatenate([worth, worth]), end))
    rank = np.empty(len(end), np.int64)
    rank[order] = np.arange(len(end)) - np.searchsorted(end[order], end[order])
    strong: Flags = rank < most
    of_first, of_right = np.split(strong, 2)
    return of_first & of_right


def running(flags: Flags) -> Ints:
    """How many flags are set before each place and before the end, so that a difference counts
    those in a span.
    """
    counts = np.zeros(len(flags) + 1, np.int32)
    np.cumsum(flags, out=counts[1:])
    return counts


# How letters fold, and the kinds of mark that part words. Folding is letter by letter, so that a
# folded text has the length of the text and offsets mean the same in both.

# What may stand between a word and the one before it.
SPACE, LINK, DOT, COMMA, OPEN, CLOSE, QUOTE, STOP, NEWLINE = 1, 2, 4, 8, 16, 32, 64, 128, 256
_UNDECOMPOSED = dict(zip("łøđıðþæœß", "lodidtaos", strict=True))
_GAPS = {
    SPACE: " \t\u00a0\u2009\u202f",
    LINK: "-'’‘&/–‐‑+",
    DOT: ".",
    COMMA: ",:",
    OPEN: "([{",
    CLOSE: ")]}",
    QUOTE: '"“”«»`„',
    NEWLINE: "\n\r",
}
_GAP_BITS: dict[str, int] = {}
for _bit, _signs in _GAPS.items():
    _GAP_BITS |= dict.fromkeys(_signs, _bit)


def fold_letters(text: str) -> str:
    """Lower case without diacritics, letter by letter, as words are compared."""
    if text.isascii():
        return text.lower()
    return text.translate(_FOLDING)


class _Folding(dict[int, str]):
    """The folded letter of each code point, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code).lower()[:1])[:1] or chr(code)
        self[code] = folded = _UNDECOMPOSED.get(plain, plain)
        return folded


_FOLDING = _Folding()

# Words of many texts as arrays: where each stands, how it is written, and what parts it from the
# word before; every later step works on these columns. A word is a maximal run of letters, digits
# and underscores, or an option such as
# `--no-create`; folding drops case and diacritics, so punctuation, hyphens, apostrophes and
# possessives cannot keep two spellings of a name apart. Word identity is a 64-bit hash of the
# folded letters.

# How a word is written.
CAPITAL, ALL_CAPS, DIGIT_FIRST, CODE_LIKE, SINGLE = 1, 2, 4, 8, 16
_WIDEST_GAP = 8
_PLAIN = "|".join(
    map(re.escape, sorted(FUNCTION_WORDS))
)  # behind a dash that is written "--" in prose
_TOKEN = re.compile(
    rf"(?<![\w-])--(?!(?:{_PLAIN})(?![\w-]))[a-z][a-z0-9]+(?:-[a-z0-9]+)*(?![\w-])|\w+"
)
WORD_BASE = 0xD6E8FEB86659FD93


@dataclass(frozen=True)
class Tokens:
    """Words of a list of texts, in order: one row a word, and each distinct word's hash and folded
    letters.
    """

    text: Ints  # index of the text
    start: Ints  # [start, end) in characters of that text
    end: Ints
    word: Ints
    shape: Bits
    gap: Gaps  # what stands before the word; STOP at the start of a text
    vocabulary: Hashes  # sorted; `word` points into it
    folded: tuple[str, ...]  # beside `vocabulary`

    def __len__(self) -> int:
        return len(self.word)

    def among(self, words: frozenset[str]) -> Flags:
        """Which rows hold one of these words."""
        return self.where(words.__contains__)

    def where(self, holds: Callable[[str], bool]) -> Flags:
        """Which rows hold a word that satisfies the test, given in its folded form; asked once a
        distinct word.
        """
        answers = np.fromiter(
            map(holds, self.folded),
            np.bool_,
            count=len(self.folded),
        )
        return answers[self.word]

    def count_words(self, chosen: Flags) -> Longs:
        """How often each word of the vocabulary stands in the chosen rows."""
        return np.bincount(self.word[chosen], minlength=len(self.vocabulary))

    def written(self, ways: int) -> Flags:
        """Which rows hold a word that is written in one of these ways."""
        flags: Flags = (self.shape & ways) != 0
        return flags

    def parted(self, kinds: int | np.uint16) -> Flags:
        """Before which rows stands one of these kinds of sign."""
        flags: Flags = (self.gap & kinds) != 0
        return flags

    def only(self, is_kept: Flags) -> Tokens:
        """These words; what is left out before a word parts it from the one before, and ends a
        sentence if it did.
        """
        rows = np.flatnonzero(is_kept)
        gap = self.gap[rows]

        if len(rows):
            gap = np.bitwise_or.reduceat(self.gap, np.append(0, rows[:-1] + 1))

        gap[np.diff(rows, prepend=-1) > 1] |= COMMA
        return replace(
            self,
            text=self.text[rows],
            start=self.start[rows],
            end=self.end[rows],
            word=self.word[rows],
            shape=self.shape[rows],
            gap=gap,
        )


def tokenize(texts: Sequence[str]) -> Tokens:
    """The words of every text; the same text always gives the same rows."""
    numbers: dict[str, int] = {}  # of words as they are written
    owner = array("i")
    starts = array("i")
    ends = array("i")
    words = array("i")
    shapes = array("B")
    gaps = array("H")

    for index, text in enumerate(texts):
        end = -1
        is_code = False
        for match in _TOKEN.finditer(text):
            word = match.group()
            start = match.start()
            shape = _shape(word)
            was_code = is_code
            is_code = word[0] == "-" or "_" in word[1:]

            if end < 0:
                gap = STOP
            else:
                gap = _gap(text[end : min(start, end + _WIDEST_GAP + 1)], shape)

            if is_code or was_code:  # code is no part of the name beside it
                gap |= COMMA

            end = match.end()
            owner.append(index)
            starts.append(start)
            ends.append(end)
            words.append(numbers.setdefault(word, len(numbers)))
            shapes.append(shape)
            gaps.append(gap)

    folded = [fold_letters(word) for word in numbers]
    digests = b"".join(
        blake2b(word.encode("utf-8", "replace"), digest_size=8).digest() for word in folded
    )
    vocabulary, place = np.unique(np.frombuffer(digests, "<u8"), return_inverse=True)
    spelled = dict(zip(place.tolist(), folded, strict=True))
    return Tokens(
        text=np.array(owner, np.int32),
        start=np.array(starts, np.int32),
        end=np.array(ends, np.int32),
        word=place.astype(np.int32)[words],
        shape=np.array(shapes, np.uint8),
        gap=np.array(gaps, np.uint16),
        vocabulary=vocabulary,
        folded=tuple(spelled[number] for number in range(len(vocabulary))),
    )


def span_hashes(
    tokens: Tokens,
    first: Longs,
    last: Longs,
) -> Hashes:
    """One hash for each run of words [first, last); equal runs of folded words have equal
    hashes.
    """
    hashes = tokens.vocabulary
    sums = np.zeros(len(first), np.uint64)
    width = int((last - first).max(initial=0))
    power = 1

    for step in range(width):
        rows = first + step
        inside = rows < last
        sums[inside] += hashes[tokens.word[rows[inside]]] * np.uint64(power)
        power = power * WORD_BASE & 0xFFFFFFFFFFFFFFFF

    return sums ^ (sums >> np.uint64(31))


@lru_cache(1 << 16)
def _shape(word: str) -> int:
    """How a word is written: bits for capital first, all capitals, digit first, mixed like code,
    one letter.
    """
    inner = sum(map(str.isupper, word[1:]))
    is_capital = word[0].isupper()
    is_full = is_capital and inner == len(word) - 1 > 0
    is_code = word[0] in "-_" or "_" in word[1:] or (inner and not is_full)
    ways = (
        (is_capital, CAPITAL),
        (is_full, ALL_CAPS),
        (is_code, CODE_LIKE),
        (word[0].isdigit(), DIGIT_FIRST),
        (len(word) == 1, SINGLE),
    )
    return sum(way for holds, way in ways if holds)


@lru_cache(1 << 12)
def _gap(between: str, shape: int) -> int:
    """The kinds of character before a word of this shape: the first of them, and a stop where they
    are many.
    """
    bits = STOP if len(between) > _WIDEST_GAP else 0
    for sign in between[:_WIDEST_GAP]:
        bits |= _GAP_BITS.get(sign, STOP)

    if not bits & NEWLINE:
        return bits

    # A wrapped line goes on in lower case; anything else on a new line is a new sentence.
    return STOP if shape & CAPITAL else (bits ^ NEWLINE) | SPACE


def stem(word: str) -> str:
    """The stem of one word in lower case: Snowball 2 ("Porter2"), as ArangoDB's text analyzers have
    it.
    """
    stemmed: str = stemmer_named("english").stemWord(word)
    return stemmed


_WORD = re.compile(r"[\w\u0300-\u036f]+")
_CACHED_WORDS = 1 << 20
# What the pattern does, for ASCII, several times faster: letters in lower case, blanks for what is
# in no word.
_ASCII = bytes(
    ord(c.lower()) if c.isalnum() or c == "_" else 32 for c in map(chr, range(128))
).ljust(256)


def fold(text: str) -> str:
    """Lower case without accents."""
    if text.isascii():
        return text.lower()

    plain = unicodedata.normalize("NFKD", text.lower())
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def words(text: str) -> list[str]:
    """The words of a text, folded, in order."""
    if text.isascii():
        return text.encode().translate(_ASCII).decode().split()
    return _WORD.findall(fold(text))


def spans(text: str) -> list[Span]:
    """Where the words of a text stand, in characters of it as written."""
    return match_spans(_WORD, text)


def match_spans(pattern: re.Pattern[str], text: str) -> list[Span]:
    """Where a pattern stands in a text."""
    return [match.span() for match in pattern.finditer(text)]


def terms(text: str) -> list[str]:
    """The distinct stems of a text, in order of appearance."""
    return list(dict.fromkeys(map(stem_word, words(text))))


stem_word = lru_cache(1 << 16)(stem)  # the stem of a folded word; words come back


class Vocabulary(dict[str, int]):
    """Word to term number, filled as words are met; the words are a bounded cache, the terms are
    kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self.terms: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        number = self.terms.setdefault(stem_word(word), len(self.terms))
        if len(self) >= _CACHED_WORDS:
            self.clear()

        self[word] = number
        return number

    def numbers(self, text: str) -> list[int]:
        """The term of each word of a text."""
        return [self[word] for word in words(text)]


# Identifiers as words: `maxRetries`, `max_retries` and `http.Client` are found by their parts and
# as a whole. One rule serves what is stored and what is asked, so that every store finds the same.
# Words that texts hold anyway are not repeated: only the parts of compound names and the joined
# form of dotted ones are given.
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_COMPOUND = re.compile(r"[a-z\d][A-Z]|[A-Z]{2}[a-z]|[^_]_+[^_]|[^\W\d_]\d|\w\.\w")
_PART = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_RECEIVERS = word_set("self cls this super")
_SHORTEST = 2  # of a part; a single letter finds everything
_MAX_NAME = 200  # longer runs are data


def identifier_words(text: str) -> list[str]:
    """Parts of the compound names in a text, in order, and each dotted name joined by underscores,
    once.
    """
    if not _COMPOUND.search(text):
        return []

    seen_names: set[str] = set()
    found_words: list[str] = []
    for name in _NAME.findall(text):
        joined, parts = _words_of_name(name)
        if name not in seen_names:
            seen_names.add(name)
            found_words += joined

        found_words += parts

    return found_words


def split_identifier(name: str) -> list[str]:
    """The parts of a compound name in lower case; none for a plain word.

    A capitalised word of two parts whose first has at most two letters is a surname (`McDonald`),
    not an identifier.
    """
    if not _COMPOUND.search(name):
        return []

    parts = _PART.findall(name)
    if len(parts) < 2 or (
        len(parts) == 2 and len(parts[0]) <= 2 and parts[0].istitle() and parts[1].istitle()
    ):
        return []

    return [part.lower() for part in parts if len(part) >= _SHORTEST]


def with_search_words(text: str) -> str:
    """A question with the parts of its identifiers and the words of its language behind it."""
    further = [*identifier_words(text), *language_words(text, detect_language(text))]
    return " ".join([text, *dict.fromkeys(further)])


@lru_cache(1 << 16)
def _words_of_name(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a dotted name adds as a whole, and the parts of its components; nothing for a plain
    word.
    """
    if len(name) > _MAX_NAME:
        return (), ()

    components = name.split(".")
    parts = tuple(chain.from_iterable(map(split_identifier, components)))
    if len(components) == 1:
        return (), parts

    names = []
    for component in components:
        name = component.strip("_").lower()
        if component not in _RECEIVERS and len(name) >= _SHORTEST:
            names.append(name)

    if len(names) > 1:
        names.insert(0, "_".join(names))

    return tuple(names), parts
