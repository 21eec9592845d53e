"""What an answer asks of memory: states that are near to a question, as they hold at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hades.ports.text import Vectors
from schemas.intervals import Mask


@dataclass(frozen=True)
class MemoryHit:
    """A remembered state: its id, its topic, what it says, since when; how near it is to the question.

    `similarity` compares states of one search; `cosine` is that of the vectors, None without one of the same model.
    """

    id: str
    topic: str
    text: str
    since: str
    similarity: float
    cosine: float | None


class MemorySearch(Protocol):
    """Searches what was remembered beside the documents."""

    def search(self, text: str, vector: Vectors | None, model: str, mask: Mask, limit: int) -> Sequence[MemoryHit]:
        """The topics nearest to a question, best first, each as it holds at the mask; nothing where memory is empty."""
        ...

    def note_shown(self, ids: Sequence[str]) -> None:
        """Note that these states were shown in an answer; costs nothing that an answer waits for."""
        ...

    def version(self) -> str:
        """Changes with every act on memory, so that answers that were cached before it are not given again."""
        ...
