"""What packing asks of a tokenizer, and the ceiling that stands in where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

BYTES_PER_TOKEN = 3


class TokenCounter(Protocol):
    """The part of a `Tokenizer` that budgets need."""

    def count(self, text: str) -> int:
        """Number of tokens in the text."""
        ...

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens in each text."""
        ...

    def truncate(self, text: str, tokens: int) -> str:
        """The longest prefix of the text within a number of tokens."""
        ...


class ByteCeiling:
    """Three bytes to a token, rounded up: more than English and code need, so a budget held here holds anywhere."""

    def count(self, text: str) -> int:
        """Bytes over three, rounded up; only the empty text is free."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Each by itself."""
        return [self.count(text) for text in texts]

    def truncate(self, text: str, tokens: int) -> str:
        """The prefix that fits, never half a character."""
        kept = text.encode("utf-8", "surrogatepass")[: BYTES_PER_TOKEN * max(tokens, 0)]
        while True:
            try:
                return kept.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                kept = kept[:-1]


CEILING = ByteCeiling()


def shorten(counter: TokenCounter, text: str, tokens: int) -> str:
    """The text, or as many whole words of it as fit with an ellipsis behind them; empty when none does."""
    if counter.count_many([text])[0] <= tokens:
        return text
    for room in range(tokens - 1, 0, -1):
        prefix = counter.truncate(text, room)
        if not text[len(prefix) : len(prefix) + 1].isspace():
            prefix = prefix.rpartition(" ")[0] or prefix  # one long word is cut inside
        cut = prefix.rstrip(" ,;:.") + "…"
        if len(cut) > 1 and counter.count(cut) <= tokens:
            return cut
    return ""


def shares(wanted: Sequence[int], room: int) -> list[int]:
    """How much each may have of a room: all it wants while that fits, else the longest are levelled first."""
    given = [0] * len(wanted)
    left = max(0, room)
    order = sorted(range(len(wanted)), key=lambda place: (wanted[place], place))
    for served, place in enumerate(order):
        given[place] = min(wanted[place], left // (len(order) - served))
        left -= given[place]
    return given
