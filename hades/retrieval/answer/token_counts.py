"""Token counts by the word: packing counts hundreds of short texts a turn, mostly of words it has met before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from hades.ports.text import Tokenizer


class QuickCounts:
    """A `TokenCounter` over a tokenizer's memory of words; its counts are the tokenizer's own.

    Made for one turn: a line that is weighed, fitted and added is counted once.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        """Number of tokens in the text."""
        number = self._known.get(text)
        if number is None:
            number = self._known[text] = self._tokenizer.count_many([text])[0]
        return number

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens in each text."""
        return [self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """As many whole words as fit; only a word that is too long by itself is cut inside."""
        ends, counts = self._tokenizer.word_ends(text, max(0, tokens) + 1)
        if counts and counts[-1] <= tokens:
            return text
        fitting = bisect_right(counts, tokens)
        return text[: ends[fitting - 1]] if fitting else self._tokenizer.truncate(text, tokens)
