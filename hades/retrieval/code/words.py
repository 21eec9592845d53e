"""Terms of code and of paths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers
from hades.text.words import stem

CODE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]{3,}")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_LITERAL = re.compile(
    r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`]*`",
    re.S,
)
_LITERAL_WORD = re.compile(r"[a-z]{2,}")
_SHORTEST_LITERAL = 10
_LONGEST_WORD = 80
_COMMON = frozenset(
    """
        a an and are as at be been but by can could did do does for from had has have how i if in
        into is it its just me my no not of on or our should so some than that the their them then
        there these they this to was we were what when where which while who why will with would you
        your self cls def return import none true false elif else except raise try class lambda
        yield pass print async await const let var function new null undefined public private static
        void int str please like also get
    """.split()  # noqa: SIM905
)


def code_terms(text: str) -> list[str]:
    """The terms of a text in order: each identifier in parts, stemmed, and whole where it has
    several parts.
    """
    return list(chain.from_iterable(map(split_identifier, CODE_WORD.findall(text))))


@lru_cache(1 << 17)
def split_identifier(word: str) -> tuple[str, ...]:
    """`parseHTTPHeader` gives pars, http, header and parsehttpheader. Common words give nothing."""
    if len(word) > _LONGEST_WORD:
        return ()

    parts = [part.lower() for part in _PART.findall(word)]
    terms = []
    for part in parts:
        if len(part) > 1 and part not in _COMMON:
            terms.append(stem(part))

    whole = word.strip("_").lower()
    if len(parts) > 1 and len(whole) > 1:
        terms.append(whole)

    return tuple(terms)


def literal_words(text: str) -> list[str]:
    """The words of a sentence or literal in lower case; words join across numbers and
    placeholders.
    """
    return _LITERAL_WORD.findall(text.lower())


_NAME_BOOST = 3.0  # a word of the symbol's own name counts as often as this many in its body
_SHORTEST_NAME = 3
_WORD_BITS = 21  # three words of a phrase fit into one number of 63 bits
_MOST_WORDS = 1 << _WORD_BITS


@dataclass(frozen=True, eq=False)
class UnitWords:
    """What the index keeps of a text: terms with their counts, phrases as codes (sorted), and the
    names it uses.
    """

    term: Numbers
    times: NDArray[np.float64]
    phrase: Numbers
    uses: frozenset[str]


class Vocabulary(dict[str, int]):
    """Words numbered in the order in which they first come."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def numbers(self, words: Iterable[str]) -> list[int]:
        """The numbers of words in their order; a new word gets the next one."""
        return [self[word] for word in words]


@dataclass(eq=False)
class Words:
    """Vocabularies, and the words of units read before, so that the next build reads only what
    changed.
    """

    terms: Vocabulary = field(default_factory=Vocabulary)
    phrase_words: Vocabulary = field(default_factory=Vocabulary)
    known: dict[tuple[str, str], UnitWords] = field(default_factory=dict)
    _numbers: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)  # words that may be the name of a symbol

    def read(self, symbol: str, text: str) -> UnitWords:
        """The words of a unit; the same symbol and text are read once."""
        key = (symbol, text)
        if key in self.known:
            return self.known[key]

        word_counts = Counter(CODE_WORD.findall(text))
        term_counts = self._count(word_counts)
        symbol_terms = sorted(set(self.terms.numbers(code_terms(symbol))))
        boosts = [_NAME_BOOST] * len(symbol_terms)
        unit_words = self.known[key] = UnitWords(
            term=np.array([*term_counts, *symbol_terms], np.int64),
            times=np.array([*term_counts.values(), *boosts], np.float64),
            phrase=self._read_phrases(text),
            uses=frozenset(self._names.intersection(word_counts)),
        )
        return unit_words

    def known_runs(self, texts: Iterable[str]) -> Numbers:
        """Codes of the runs of three words of texts; runs with a word that no literal holds are
        left out.
        """
        vocabulary = self.phrase_words

        codes: set[int] = set()
        for text in texts:
            numbers = []
            for word in literal_words(text):
                numbers.append(vocabulary.get(word, -1))

            runs = zip(numbers, numbers[1:], numbers[2:], strict=False)
            codes.update(_code(*run) for run in runs if min(run) >= 0)

        return np.array(sorted(codes), np.int64)

    def _count(self, counts: Counter[str]) -> dict[int, int]:
        """How often each term stands in a text; a word that was met before is neither split nor
        judged again.
        """
        numbers = self._numbers

        total: dict[int, int] = {}
        for word, count in counts.items():
            parts = numbers.get(word)
            if parts is None:
                parts = self._number(word)

            for part in parts:
                total[part] = total.get(part, 0) + count

        return total

    def _number(self, word: str) -> tuple[int, ...]:
        if len(word) >= _SHORTEST_NAME and not word[0].isdigit():
            self._names.add(word)

        parts = self._numbers[word] = tuple(self.terms.numbers(split_identifier(word)))
        return parts

    def _read_phrases(self, text: str) -> Numbers:
        """Runs of three words inside the string literals of code; words beyond the vocabulary's
        bound make none.
        """
        vocabulary = self.phrase_words

        codes: set[int] = set()
        for literal in _LITERAL.findall(text):
            if len(literal) < _SHORTEST_LITERAL:
                continue

            numbers = vocabulary.numbers(literal_words(literal))
            runs = zip(numbers, numbers[1:], numbers[2:], strict=False)
            codes.update([_code(*run) for run in runs])

            if len(vocabulary) >= _MOST_WORDS:
                return np.empty(0, np.int64)

        return np.array(sorted(codes), np.int64)


def _code(first: int, second: int, third: int) -> int:
    return first << 2 * _WORD_BITS | second << _WORD_BITS | third


_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|spec|specs|conftest\.py)(?:/|$)|(?:^|/)(?:test_[^/]*"
    r"|[^/]*_test|[^/]*[._]spec|[^/]*\.test)\.\w+$|(?:^|/)conftest\.py$",
    re.I,
)
_ASIDE = re.compile(
    r"(?:^|/)(?:docs?|examples?|benchmarks?|asv_bench|build_tools|scripts?|tools?|util(?:s"
    r"|ities)?_scripts|vendor|third_party|plugins|tutorials?|doc|\.github|ci)(?:/)|(?:^|/)(?:setup"
    r"|conf|versioneer|_version|noxfile|tasks)\.py$",
    re.I,
)
_CODE = re.compile(
    r"\.(?:pyi?|pyx|[cm]?[jt]sx?|java|kt|scala|go|rs|cc?|cpp|cxx|hh?|hpp|cs|rb|php|swift|lua|jl"
    r"|sql|sh|vue)$",
    re.I,
)
_PACKAGE = ("__init__.py", "index.js", "index.ts", "mod.rs")


def describe_paths(paths: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """What a path says of its file: columns of 0 and 1, a row for each path."""
    columns = {
        "is_test": [_TEST.search(path) is not None for path in paths],
        "is_aside": [_ASIDE.search(path) is not None for path in paths],
        "is_text": [_CODE.search(path) is None for path in paths],
        "is_package": [path.endswith(_PACKAGE) for path in paths],
    }
    return {name: np.array(column, np.float64) for name, column in columns.items()}
