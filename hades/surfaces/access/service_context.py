"""The context of one call of a service: what the service keeps open, and who calls."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hades.ports.store import GraphStore, Mode
from hades.ports.text import Embedder
from hades.retrieval.answer.context_window import WindowSize
from hades.retrieval.turn.answers import Answers
from hades.settings import Settings
from hades.surfaces.access.questions import Questions
from hades.surfaces.capabilities.capability import JsonReply
from hades.surfaces.capabilities.query import QueryRequest
from schemas.telemetry import QueryLog

if TYPE_CHECKING:
    from hades.api import Hades
    from hades.memory.service import Memory


@dataclass
class ServiceContext:
    """See `CallContext`. A call that only reads never gets a handle that could write."""

    settings: Settings
    who: str
    mode: Mode
    answers: Answers
    readable: GraphStore
    writable_store: GraphStore | None
    questions: Questions

    @property
    def embedder(self) -> Embedder:
        """See `CallContext.embedder`."""
        embedder = self.answers.tools.embedder
        assert embedder is not None
        return embedder

    @property
    def writable(self) -> GraphStore:
        """See `CallContext.writable`."""
        assert self.writable_store is not None
        return self.writable_store

    @cached_property
    def memory(self) -> Memory:
        """See `CallContext.memory`."""
        from hades.memory.service import Memory
        from hades.wiring import open_language_model

        reads = self.mode is Mode.READ_ONLY
        return Memory(
            self.readable if reads else self.writable,
            self.answers.tools.embedder,
            language_model=None if reads else open_language_model(self.settings),
            tokenizer=self.answers.tools.tokenizer,
            home=self.settings.home,
        )

    def open_hades(self) -> AbstractContextManager[Hades]:
        """See `CallContext.open_hades`."""
        from hades.wiring import open_hades

        return open_hades(self.settings)

    def ask(self, request: QueryRequest, version: str | None = None, window: WindowSize | None = None) -> JsonReply:
        """See `CallContext.ask`."""
        return self.questions.ask(request, version, window)

    def find_turn(self, query_id: str) -> QueryLog:
        """See `CallContext.find_turn`."""
        return self.questions.turns.find(query_id)

    def flush_turns(self) -> None:
        """See `CallContext.flush_turns`."""
        self.questions.turns.flush()
