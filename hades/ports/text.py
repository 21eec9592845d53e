"""What HADES asks of text models: vectors, token counts, completions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hades.errors import HadesError

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class EmbeddingModel:
    """Which model made a vector. Vectors with different tags are never compared."""

    id: str
    version: str
    dimension: int

    @property
    def tag(self) -> str:
        """The mark that is stored with each vector; a new tag means everything is embedded again."""
        return f"{self.id}@{self.version}/{self.dimension}"


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def model(self) -> EmbeddingModel:
        """The model that answers, for the tag of its vectors."""

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        """(n_texts, dimension) float32, rows unit length, in the order of the texts.

        A blank text has no meaning to place: it raises ValueError naming the row, on every embedder.
        `progress` is called with (texts done, texts in all).
        """


@runtime_checkable
class LoadsModel(Protocol):
    """An embedder, a tokenizer or a memory that takes time to load; a turn loads it before its clock runs."""

    def load(self) -> None:
        """Load now instead of with the first text; safe to repeat."""


class Tokenizer(Protocol):
    """Counts and cuts text the way a model reads it."""

    def count(self, text: str) -> int:
        """Number of tokens in the text."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens in each text; much faster than one by one."""

    def truncate(self, text: str, tokens: int) -> str:
        """The longest prefix of the text that ends with a token and holds at most `tokens` of them."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character offsets [start, end) of each token."""

    def word_ends(self, text: str, most: int | None = None) -> tuple[list[int], list[int]]:
        """Where words end, and how many tokens the text holds up to each end; a place to cut without splitting one.

        `most` is how many words are looked at; each holds at least one token.
        """


@dataclass(frozen=True)
class Completion:
    """What a language model wrote, and what it cost."""

    text: str
    prompt_tokens: int
    completion_tokens: int


class LanguageModel(Protocol):
    """Writes text for a prompt."""

    @property
    def model(self) -> str:
        """Name of the model that answers."""

    def complete(self, prompt: str, *, max_tokens: int) -> Completion:
        """Continue the prompt with at most `max_tokens` tokens."""

    def stream(self, prompt: str, *, max_tokens: int) -> Iterator[str]:
        """The same, piece by piece as it is written; ends after a bounded time and length whatever the server sends."""


class ProviderError(HadesError, RuntimeError):
    """A model that could not be loaded or did not answer as it must. Never holds a credential."""


def check_texts(texts: Sequence[str]) -> None:
    """Refuse blank texts before any work is done, so that all embedders agree on them."""
    if isinstance(texts, str):
        raise TypeError("embed takes a sequence of texts; wrap the one text in a list")
    for row, text in enumerate(texts):
        if not text.strip():
            raise ValueError(f"text at row {row} of {len(texts)} is blank; drop it or give it its title")
