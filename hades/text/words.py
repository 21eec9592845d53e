"""Letters, tokens, stems, identifiers, key words."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TypeVar

import numpy as np
import pyarrow as pa
import Stemmer
from numpy.typing import NDArray

from hades.text.languages import detect_language, language_words

# Small array helpers and the names of array types; nothing here knows what the numbers mean.


Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Bits = NDArray[np.uint8]
Gaps = NDArray[np.uint16]
Flags = NDArray[np.bool_]
T = TypeVar("T", np.int64, np.uint64)


def encode(hashes: Hashes) -> tuple[Ints, Hashes]:
    """Small numbers for hashes and the hash of each number, numbered in sorted order of the hashes."""
    table = pa.array(hashes).dictionary_encode()
    distinct: Hashes = table.dictionary.to_numpy(zero_copy_only=False)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank[table.indices.to_numpy(zero_copy_only=False)], distinct[order]


def distinct(values: NDArray[T]) -> NDArray[T]:
    """The different values in order; by sorting, which is faster than hashing for what is nearly sorted."""
    ordered = np.sort(values)
    fresh = np.ones(len(ordered), dtype=np.bool_)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


def place_in_run(values: Longs) -> Longs:
    """For each place how many equal values stand right before it."""
    changes = np.ones(len(values), dtype=np.bool_)
    changes[1:] = values[1:] != values[:-1]
    here = np.arange(len(values))
    return here - np.maximum.accumulate(np.where(changes, here, 0)) if len(values) else here


def running(flags: Flags) -> Ints:
    """How many flags are set before each place and before the end, so that a difference counts those in a span."""
    counts = np.zeros(len(flags) + 1, dtype=np.int32)
    np.cumsum(flags, out=counts[1:])
    return counts


# What single characters are: letters and how they fold, and the kinds of mark that part words. Folding is letter by
# letter, so that a folded text has the length of the text and offsets mean the same in both.


LETTER, UPPER, DIGIT, UNDERSCORE = 1, 2, 4, 8
# What may stand between a word and the one before it.
SPACE, LINK, DOT, COMMA, OPEN, CLOSE, QUOTE, STOP, NEWLINE = 1, 2, 4, 8, 16, 32, 64, 128, 256
_KNOWN_CODES = 0x3000  # beyond these code points letters are asked for one by one
_UNDECOMPOSED = {"ł": "l", "ø": "o", "đ": "d", "ı": "i", "ð": "d", "þ": "t", "æ": "a", "œ": "o", "ß": "s"}
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


def fold_letters(text: str) -> str:
    """Lower case without diacritics, letter by letter, as words are compared."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def letter_columns(codes: NDArray[np.uint32]) -> tuple[Bits, Hashes]:
    """For each character its class and the hash value of its folded letter."""
    classes, values, _ = _tables()
    index = codes.astype(np.intp)
    columns = classes.take(index, mode="clip"), values.take(index, mode="clip")
    far = np.flatnonzero(codes >= _KNOWN_CODES)
    if len(far):
        rare, which = np.unique(codes[far], return_inverse=True)
        kinds = np.array([_class_of(chr(code)) for code in rare.tolist()], dtype=np.uint8)
        folded = np.array([ord(_fold_char(chr(code))) for code in rare.tolist()], dtype=np.uint64)
        columns[0][far] = kinds[which]
        columns[1][far] = _mix(folded)[which]
    return columns


def gap_bits(codes: NDArray[np.uint32]) -> Gaps:
    """The bit each character sets in the gap it stands in."""
    gaps = _tables()[2]
    return np.where(codes < _KNOWN_CODES, gaps[np.minimum(codes, _KNOWN_CODES - 1)], np.uint16(STOP))


@cache
def _tables() -> tuple[Bits, Hashes, Gaps]:
    """By code point: class of character, hash value of its folded letter, and the bit it sets in a gap."""
    chars = [chr(code) for code in range(_KNOWN_CODES)]
    classes = np.array([_class_of(char) for char in chars], dtype=np.uint8)
    folded = np.array([ord(_fold_char(char)) for char in chars], dtype=np.uint64)
    gaps = np.full(_KNOWN_CODES, STOP, dtype=np.uint16)
    for bit, members in _GAPS.items():
        for char in members:
            gaps[ord(char)] = bit
    return classes, _mix(folded), gaps


def _mix(values: Hashes) -> Hashes:
    """A well-spread 64-bit number for each code point (the finaliser of splitmix64)."""
    mixed = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _class_of(char: str) -> int:
    if char == "_":
        return LETTER | UNDERSCORE
    if not char.isalnum():
        return 0
    return LETTER | (UPPER if char.isupper() else 0) | (DIGIT if char.isdigit() else 0)


class _Folding(dict[int, str]):
    """The folded letter of each code point, worked out when it is first met."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold_char(chr(code))
        return folded


_FOLDING = _Folding()


def _fold_char(char: str) -> str:
    lower = char.lower()[:1]
    plain = unicodedata.normalize("NFKD", lower)[:1] or char
    return _UNDECOMPOSED.get(plain, plain)


# Words of many texts as arrays: where each stands, how it is written, and what parts it from the word before. A
# corpus is read in blocks, with no Python loop over words; every later step works on these columns. A word is
# a maximal run of letters, digits and underscores, or an option such as `--no-create`; folding drops case and
# diacritics, so punctuation, hyphens, apostrophes and possessives cannot keep two spellings of a name apart. Word
# identity is a 64-bit polynomial hash of the folded letters.


# How a word is written.
CAPITAL, ALL_CAPS, DIGIT_FIRST, CODE_LIKE, SINGLE = 1, 2, 4, 8, 16
_BLOCK_CHARS = 1 << 18  # columns of a block fit into the cache of a core
_WIDEST_GAP = 8
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9]+(?:-[a-z0-9]+)*(?![\w-])")
CHAR_BASE = 0x9E3779B97F4A7C15  # of the hash of a word; odd, so it has an inverse modulo 2**64
WORD_BASE = 0xD6E8FEB86659FD93


@dataclass(frozen=True)
class Tokens:
    """Words of a list of texts, in order: one row a word, and each distinct word's hash and folded letters."""

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
        """Which rows hold a word that satisfies the test, given in its folded form; asked once a distinct word."""
        answers = np.fromiter(map(holds, self.folded), dtype=np.bool_, count=len(self.folded))
        return answers[self.word]

    def only(self, kept: Flags) -> Tokens:
        """These words; what is left out before a word parts it from the one before, and ends a sentence if it did."""
        rows = np.flatnonzero(kept)
        gap = np.bitwise_or.reduceat(self.gap, np.append(0, rows[:-1] + 1)) if len(rows) else self.gap[rows]
        gap[np.diff(rows, prepend=-1) > 1] |= COMMA
        return Tokens(
            self.text[rows],
            self.start[rows],
            self.end[rows],
            self.word[rows],
            self.shape[rows],
            gap,
            self.vocabulary,
            self.folded,
        )


def tokenize(texts: Sequence[str]) -> Tokens:
    """The words of every text; the same text always gives the same rows."""
    blocks = [_tokenize_block(texts[first:last], first) for first, last in _blocks(texts)]
    columns = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    text, start, end, hashes, shape, gap = columns
    word, vocabulary = encode(hashes)
    sample = np.zeros(len(vocabulary), dtype=np.int64)
    sample[word[::-1]] = np.arange(len(word) - 1, -1, -1)
    rows = zip(text[sample].tolist(), start[sample].tolist(), end[sample].tolist(), strict=True)
    folded = tuple(fold_letters(texts[index][begin:stop]) for index, begin, stop in rows)
    return Tokens(text, start, end, word, shape, gap, vocabulary, folded)


def span_hashes(tokens: Tokens, first: Longs, last: Longs) -> Hashes:
    """One hash for each run of words [first, last); equal runs of folded words have equal hashes."""
    hashes, sums = tokens.vocabulary, np.zeros(len(first), dtype=np.uint64)
    width = int((last - first).max(initial=0))
    power = 1
    for step in range(width):
        here = first + step
        inside = here < last
        sums[inside] += hashes[tokens.word[here[inside]]] * np.uint64(power)
        power = power * WORD_BASE & 0xFFFFFFFFFFFFFFFF
    return sums ^ (sums >> np.uint64(31))


def _blocks(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Ranges of texts of about a quarter of a million characters, so that memory does not follow the corpus."""
    cuts, size = [0], 0
    for index, text in enumerate(texts):
        if size and size + len(text) + 1 > _BLOCK_CHARS:
            cuts.append(index)
            size = 0
        size += len(text) + 1
    return list(zip(cuts, [*cuts[1:], len(texts)], strict=True))


def _tokenize_block(texts: Sequence[str], offset: int) -> tuple[Ints, Ints, Ints, Hashes, Bits, Gaps]:
    joined = "\n".join(texts) + "\n"
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    classes, values = letter_columns(codes)
    if "--" in joined:
        for found in _OPTION.finditer(joined):
            classes[found.start() : found.end()] |= LETTER | UNDERSCORE
    inside = classes != 0
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    if inside[0]:
        edges = np.concatenate([np.zeros(1, dtype=edges.dtype), edges])
    starts, ends = edges[0::2], edges[1::2]
    lengths = np.fromiter((len(text) + 1 for text in texts), dtype=np.int64, count=len(texts))
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    of_text = np.repeat(np.arange(len(texts)), np.diff(np.searchsorted(starts, bounds)))
    powers, inverses = _powers(max(12, len(codes).bit_length()))
    prefix = np.zeros(len(codes) + 1, dtype=np.uint64)
    np.multiply(values, powers[: len(codes)], out=values)
    np.cumsum(values, out=prefix[1:])
    words = (prefix[ends] - prefix[starts]) * inverses[starts]
    shapes = _shapes(classes, starts, ends)
    gaps = _gaps(codes, starts, ends, shapes, of_text)
    is_code = (codes[starts] == ord("-")) | (_inner_count(classes, UNDERSCORE, starts) > 0)
    gaps[is_code] |= COMMA  # an option or an identifier is no part of the name beside it
    gaps[1:][is_code[:-1]] |= COMMA
    begin = bounds[of_text]
    return (
        (of_text + offset).astype(np.int32),
        (starts - begin).astype(np.int32),
        (ends - begin).astype(np.int32),
        words,
        shapes,
        gaps,
    )


def _shapes(classes: Bits, starts: Longs, ends: Longs) -> Bits:
    """How each word is written: bits for capital first, all capitals, digit first, mixed like code, one letter."""
    head, size = classes[starts], ends - starts
    inner = _inner_count(classes, UPPER, starts)
    shape = np.where((head & UPPER) != 0, CAPITAL, 0).astype(np.uint8)
    full = (shape != 0) & (inner == size - 1) & (size > 1)
    shape[full] |= ALL_CAPS
    shape[(inner > 0) & ~full] |= CODE_LIKE
    shape[((head & UNDERSCORE) != 0) | (_inner_count(classes, UNDERSCORE, starts) > 0)] |= CODE_LIKE
    shape[(head & DIGIT) != 0] |= DIGIT_FIRST
    shape[size == 1] |= SINGLE
    return shape


def _inner_count(classes: Bits, kind: int, starts: Longs) -> Longs:
    """How many characters of a kind each word holds after its first; such characters are few."""
    places = np.flatnonzero(((classes[1:] & kind) != 0) & (classes[:-1] != 0)) + 1
    return np.bincount(np.searchsorted(starts, places, side="right") - 1, minlength=len(starts))


def _gaps(codes: NDArray[np.uint32], starts: Longs, ends: Longs, shapes: Bits, of_text: Longs) -> Gaps:
    """The kinds of character before each word: nearly always one space, so only longer gaps are looked at again."""
    bits = np.full(len(starts), STOP, dtype=np.uint16)
    if len(starts) < 2:
        return bits
    size = starts[1:] - ends[:-1]
    bits[1:] = gap_bits(codes[ends[:-1]])
    long = np.flatnonzero(size > 1)
    for step in range(1, _WIDEST_GAP):
        long = long[size[long] > step]
        bits[long + 1] |= gap_bits(codes[ends[long] + step])
    bits[1:][size > _WIDEST_GAP] |= STOP
    # A wrapped line goes on in lower case; anything else on a new line is a new sentence.
    broken = (bits & NEWLINE) != 0
    bits[broken] = np.where(shapes[broken] & CAPITAL, STOP, (bits[broken] ^ NEWLINE) | SPACE)
    bits[1:][of_text[1:] != of_text[:-1]] = STOP
    return bits


@cache
def _powers(bits: int) -> tuple[Hashes, Hashes]:
    """Powers of the base and of its inverse modulo 2**64, so that any slice of a running sum becomes a word's hash."""
    tables = [np.full(1 << bits, base, dtype=np.uint64) for base in (CHAR_BASE, pow(CHAR_BASE, -1, 1 << 64))]
    for table in tables:
        table[0] = 1
        np.cumprod(table, out=table)
    return tables[0], tables[1]


# The English stem of a word by Snowball 2 ("Porter2"), the algorithm and version of ArangoDB's text analyzers.


_local = threading.local()  # a Snowball stemmer is not safe across threads


def stem(word: str) -> str:
    """The stem of one word in lower case."""
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:
        stemmer = _local.stemmer = Stemmer.Stemmer("english", 0)  # no cache of its own: callers keep their words
    found: str = stemmer.stemWord(word)
    return found


# How text becomes terms, the same for what is searched and for what is asked.


_WORD = re.compile(r"[\w\u0300-\u036f]+")
_CACHED_WORDS = 1 << 20
# What the pattern does, for ASCII, several times faster: letters in lower case, blanks for what is in no word.
_ASCII = bytes(ord(c.lower()) if c.isalnum() or c == "_" else 32 for c in map(chr, range(128))).ljust(256)


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


def spans(text: str) -> list[tuple[int, int]]:
    """Where the words of a text stand, in characters of it as written."""
    return [match.span() for match in _WORD.finditer(text)]


def terms(text: str) -> list[str]:
    """The distinct stems of a text, in order of appearance."""
    return list(dict.fromkeys(map(stem_word, words(text))))


stem_word = lru_cache(1 << 16)(stem)  # the stem of a folded word; words come back


class Vocabulary(dict[str, int]):
    """Word to term number, filled as words are met; the words are a bounded cache, the terms are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.terms: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        number = self.terms.setdefault(stem(word), len(self.terms))
        if len(self) >= _CACHED_WORDS:
            self.clear()
        self[word] = number
        return number

    def numbers(self, text: str) -> list[int]:
        """The term of each word of a text."""
        return [self[word] for word in words(text)]


# Identifiers as words: `maxRetries`, `max_retries` and `http.Client` are found by their parts and as a whole. One
# rule serves what is stored and what is asked, so that every store finds the same. Words that texts hold anyway are
# not repeated: only the parts of compound names and the joined form of dotted ones are given.


_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_COMPOUND = re.compile(r"[a-z\d][A-Z]|[A-Z]{2}[a-z]|[^_]_+[^_]|[^\W\d_]\d|\w\.\w")
_PART = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_RECEIVERS = frozenset({"self", "cls", "this", "super"})
_SHORTEST = 2  # of a part; a single letter finds everything
_MAX_NAME = 200  # longer runs are data


def identifier_words(text: str) -> list[str]:
    """Parts of the compound names in a text, in order, and each dotted name joined by underscores, once."""
    if not _COMPOUND.search(text):
        return []
    seen: set[str] = set()
    found: list[str] = []
    for name in _NAME.findall(text):
        joined, parts = _words_of_name(name)
        if name not in seen:
            seen.add(name)
            found += joined
        found += parts
    return found


def split_identifier(name: str) -> list[str]:
    """The parts of a compound name in lower case; none for a plain word.

    A capitalised word of two parts whose first has at most two letters is a surname (`McDonald`), not an identifier.
    """
    if not _COMPOUND.search(name):
        return []
    parts = _PART.findall(name)
    if len(parts) < 2 or (len(parts) == 2 and len(parts[0]) <= 2 and parts[0].istitle() and parts[1].istitle()):
        return []
    return [part.lower() for part in parts if len(part) >= _SHORTEST]


def with_search_words(text: str) -> str:
    """A question with the parts of its identifiers and the words of its language behind it."""
    further = [*identifier_words(text), *language_words(text, detect_language(text))]
    return " ".join([text, *dict.fromkeys(further)])


@lru_cache(1 << 16)
def _words_of_name(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a dotted name adds as a whole, and the parts of its components; nothing for a plain word."""
    if len(name) > _MAX_NAME:
        return (), ()
    components = name.split(".")
    joined = tuple(_join_dotted(components)) if len(components) > 1 else ()
    return joined, tuple(part for one in components for part in split_identifier(one))


def _join_dotted(components: list[str]) -> Iterator[str]:
    """The joined form of a dotted name, without the receiver, and its components."""
    kept = [one.strip("_").lower() for one in components if one not in _RECEIVERS]
    kept = [one for one in kept if len(one) >= _SHORTEST]
    if len(kept) > 1:
        yield "_".join(kept)
    yield from kept
