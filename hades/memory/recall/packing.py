"""Packing texts into a number of tokens: sections with shares of their own, and a total that holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hades.ports.text import Tokenizer

_WORTH_CUTTING = 24  # tokens; less of a text tells nothing


@dataclass(frozen=True)
class Entry:
    """One text of a context, and the version it shows."""

    id: str
    text: str
    tokens: int
    cut: bool = False


@dataclass
class Packer:
    """Takes texts while they fit; never more than `room` tokens in all, headings and line ends counted."""

    tokenizer: Tokenizer
    room: int
    sections: dict[str, list[Entry]] = field(default_factory=dict)
    used: int = 0
    left_out: int = 0

    @property
    def left(self) -> int:
        """Tokens that may still be taken; never below 0."""
        return max(0, self.room - self.used)

    @property
    def ids(self) -> set[str]:
        """What is in already."""
        return {entry.id for entries in self.sections.values() for entry in entries}

    def fill(self, section: str, texts: Sequence[tuple[str, str]], share: int, *, must: bool = False) -> int:
        """Take (id, text) pairs in order while the section's share lasts; how many tokens it took.

        One that does not fit is passed over. With `must` the first is cut to fit rather than passed over.
        """
        share = min(share, self.left)
        heading = self._cost(f"## {section}")
        spent = 0
        costs = [count + 1 for count in self.tokenizer.count_many([text for _, text in texts])]  # 1: the line end
        for (name, text), cost in zip(texts, costs, strict=True):
            entries = self.sections.get(section, [])
            free = share - spent - (0 if entries else heading)
            is_cut = False
            if cost > free and must and not entries and free > 1:
                text, is_cut = self.tokenizer.truncate(text, free - 1), True
                cost = self._cost(text)
            if cost > free or not text or (is_cut and cost < min(_WORTH_CUTTING, free)):
                self.left_out += 1
                continue
            spent += cost + (0 if entries else heading)
            self.sections.setdefault(section, []).append(Entry(name, text, cost, is_cut))
        self.used += spent
        return spent

    def text(self) -> str:
        """Everything that was taken, under its headings."""
        parts = [
            "\n".join([f"## {name}", *(entry.text for entry in entries)]) for name, entries in self.sections.items()
        ]
        return "\n".join(parts)

    def checked(self) -> tuple[str, int]:
        """The text and its tokens, counted as a whole. Where counting parts fell short, the last texts go."""
        text = self.text()
        tokens = self.tokenizer.count(text)
        while tokens > self.room and self.sections:
            last = list(self.sections)[-1]
            self.sections[last].pop()
            self.left_out += 1
            if not self.sections[last]:
                del self.sections[last]
            text = self.text()
            tokens = self.tokenizer.count(text)
        assert tokens <= self.room
        return text, tokens

    def _cost(self, text: str) -> int:
        return self.tokenizer.count_many([text])[0] + 1
