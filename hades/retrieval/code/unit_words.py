"""The words of code units as numbers; a unit that was read before is not read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import Numbers
from hades.retrieval.code.words import CODE_WORD, code_terms, literal_words, literals, split_identifier

_NAME_BOOST = 3.0  # a word of the symbol's own name counts as often as this many in its body
_SHORTEST_NAME = 3
_WORD_BITS = 21  # three words of a phrase fit into one number of 63 bits
_MOST_WORDS = 1 << _WORD_BITS


@dataclass(frozen=True, eq=False)
class UnitWords:
    """What the index keeps of a text: terms with their counts, phrases as codes (sorted), and the names it uses."""

    term: Numbers
    times: NDArray[np.float64]
    phrase: Numbers
    uses: frozenset[str]


class Vocabulary(dict[str, int]):
    """Words numbered in the order in which they are met."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


@dataclass(eq=False)
class Words:
    """Vocabularies, and the words of units read before, so that the next build reads only what changed."""

    terms: Vocabulary = field(default_factory=Vocabulary)
    phrase_words: Vocabulary = field(default_factory=Vocabulary)
    known: dict[tuple[str, str], UnitWords] = field(default_factory=dict)
    _numbers: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)  # words that may be the name of a symbol

    def read(self, symbol: str, text: str) -> UnitWords:
        """The words of a unit; the same symbol and text are read once."""
        key = (symbol, text)
        found = self.known.get(key)
        if found is None:
            counts = Counter(CODE_WORD.findall(text))
            total = self._count(counts)
            own = sorted({self.terms[word] for word in code_terms(symbol)})
            found = self.known[key] = UnitWords(
                np.array([*total, *own], np.int64),
                np.array([*total.values(), *[_NAME_BOOST] * len(own)], np.float64),
                self._read_phrases(text),
                frozenset(self._names.intersection(counts)),
            )
        return found

    def known_runs(self, texts: Iterable[str]) -> Numbers:
        """Codes of the runs of three words of texts; runs with a word that no literal holds are left out."""
        held = self.phrase_words
        codes: set[int] = set()
        for text in texts:
            numbers = [held.get(word, -1) for word in literal_words(text)]
            runs = zip(numbers, numbers[1:], numbers[2:], strict=False)
            codes.update(_code(*run) for run in runs if min(run) >= 0)
        return np.array(sorted(codes), np.int64)

    def _count(self, counts: Counter[str]) -> dict[int, int]:
        """How often each term stands in a text; a word that was met before is neither split nor judged again."""
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
        parts = self._numbers[word] = tuple([self.terms[part] for part in split_identifier(word)])
        return parts

    def _read_phrases(self, text: str) -> Numbers:
        """Runs of three words inside the string literals of code; words beyond the vocabulary's bound make none."""
        held = self.phrase_words
        codes: set[int] = set()
        for literal in literals(text):
            numbers = [held[word] for word in literal_words(literal)]
            codes.update([_code(*run) for run in zip(numbers, numbers[1:], numbers[2:], strict=False)])
            if len(held) >= _MOST_WORDS:
                return np.empty(0, np.int64)
        return np.array(sorted(codes), np.int64)


def _code(first: int, second: int, third: int) -> int:
    return first << 2 * _WORD_BITS | second << _WORD_BITS | third
