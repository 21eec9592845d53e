"""The context window: three levels of priority, a token budget that holds after every step, best things at the ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from hades.retrieval.answer.path_text import WrittenPath, describe, reliability_of
from hades.retrieval.answer.token_bound import CEILING, TokenCounter
from hades.text.sentences import first_sentence

LEVELS = ("high", "medium", "low")
_BETWEEN = "\n\n"


@runtime_checkable
class Summarizer(Protocol):
    """A model that can shorten a text."""

    def summarize(self, text: str) -> str:
        """The text in fewer words."""
        ...


@dataclass(frozen=True)
class WindowSize:
    """The context window of a reader: its tokens, and those reserved for its answer."""

    max_tokens: int = 4096
    reserve_tokens: int = 512


@dataclass(frozen=True)
class WindowItem:
    """A path in the window. `tokens` include what parts it from the next one."""

    text: str
    tokens: int
    reliability: float
    metadata: Mapping[str, Any] = field(default_factory=dict)


class ContextWindowManager:
    """Holds what a model will read. Nothing makes it exceed `available_tokens`, and a refused path changes nothing."""

    def __init__(
        self, max_tokens: int = 4096, reserve_tokens: int = 512, tokenizer: TokenCounter | None = None
    ) -> None:
        if not 0 <= reserve_tokens <= max_tokens:
            raise ValueError(f"reserve_tokens is {reserve_tokens}; it must lie between 0 and max_tokens ({max_tokens})")
        self.max_tokens = max_tokens
        self.reserve_tokens = reserve_tokens
        self.available_tokens = max_tokens - reserve_tokens
        self.context: dict[str, list[WindowItem]] = {level: [] for level in LEVELS}
        self._counter = tokenizer or CEILING

    @property
    def current_token_count(self) -> int:
        """Tokens in use."""
        return sum(item.tokens for items in self.context.values() for item in items)

    def add_path(self, path: Mapping[str, Any] | WrittenPath, priority: str = "medium") -> bool:
        """Take a path in, in place of less important ones if need be; False, and no change, when it cannot fit.

        Only what is missing is made free: from the lowest level up to the path's own, the least reliable first, among
        equals the oldest.
        """
        level = _level(priority)
        held = self._hold(path)
        leaving = self._leaving(held.tokens - (self.available_tokens - self.current_token_count), level)
        if leaving is None:
            return False
        for name, items in self.context.items():
            self.context[name] = [item for item in items if id(item) not in leaving]
        self.context[level].append(held)
        return True

    def fits(self, text: str) -> bool:
        """Whether a text would fit without anything leaving."""
        return self.current_token_count + self._counter.count(text + _BETWEEN) <= self.available_tokens

    def get_formatted_context(self) -> str:
        """All of it: the lesser half of the high level, then medium and low, then the better half of high, best last.

        Models attend to both ends of a long context and lose its middle.
        """
        high = sorted(self.context["high"], key=lambda item: item.reliability)
        half = len(high) // 2
        items = [*high[:half], *self.context["medium"], *self.context["low"], *high[half:]]
        return _BETWEEN.join(item.text for item in items)

    def summarize_context(self, model_processor: object = None) -> str:
        """The context in fewer words, by a model if it can `summarize`; never longer than the context itself.

        Without a model: the high level in full, the first sentence of each medium item, how many low ones there are.
        """
        full = self.get_formatted_context()
        summary = model_processor.summarize(full) if isinstance(model_processor, Summarizer) else self._in_short()
        shorter = len(summary) <= len(full) and self._counter.count(summary) <= self._counter.count(full)
        return summary if shorter and summary.strip() else full

    def _in_short(self) -> str:
        parts = [item.text for item in self.context["high"]]
        parts += [first_sentence(item.text) for item in self.context["medium"]]
        if number := len(self.context["low"]):
            parts.append(f"Additional {number} background context items available.")
        return _BETWEEN.join(parts)

    def _hold(self, path: Mapping[str, Any] | WrittenPath) -> WindowItem:
        text = describe(path)
        metadata = path.get("metadata") or {} if isinstance(path, Mapping) else {}
        return WindowItem(text, self._counter.count(text + _BETWEEN), reliability_of(path), metadata)

    def _leaving(self, missing: int, level: str) -> set[int] | None:
        """The items that must go so that `missing` tokens are free; None when there are not enough of them."""
        leaving: set[int] = set()
        for name in reversed(LEVELS[LEVELS.index(level) :]):
            for item in sorted(self.context[name], key=lambda item: item.reliability):
                if missing <= 0:
                    return leaving
                leaving.add(id(item))
                missing -= item.tokens
        return leaving if missing <= 0 else None


def _level(priority: str) -> str:
    """A level by its name, `high` or `high_priority`; an unknown one is medium."""
    level = priority.removesuffix("_priority")
    return level if level in LEVELS else "medium"
