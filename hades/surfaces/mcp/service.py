"""What the tools work with, opened once for the life of the process: caches outlive calls and sessions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from hades.ports.store import GraphStore, Mode
from hades.ports.text import Embedder
from hades.retrieval.turn.answers import Answers
from hades.settings import Settings
from hades.surfaces.access.answer_cache import AnswerCache
from hades.surfaces.access.callers import Door
from hades.surfaces.access.limits import Limits
from hades.surfaces.access.questions import Questions
from hades.surfaces.access.rate_limit import Rates
from hades.surfaces.access.tokens import Tokens
from hades.surfaces.access.turn_log import TurnLog
from hades.surfaces.mcp.logged import LoggedAnswers
from hades.telemetry.audit import Audit
from hades.wiring import open_answers, open_embedder, open_store

if TYPE_CHECKING:
    from hades.memory.service import Memory
    from hades.memory_enhanced_pathrag import MemoryEnhancedPathRAG


@dataclass
class Service:
    """Everything behind the tools. `writable` is None in a service that only reads."""

    settings: Settings
    door: Door
    limits: Limits
    embedder: Embedder
    answers: Answers
    readable: GraphStore
    writable: GraphStore | None
    questions: Questions
    tokens: Tokens
    audit: Audit
    rates: Rates

    @cached_property
    def limiter(self) -> anyio.CapacityLimiter:
        """How many calls are answered at once; the others stand in line."""
        return anyio.CapacityLimiter(self.limits.answering)

    @cached_property
    def pathrag(self) -> MemoryEnhancedPathRAG:
        """Paths through the tiers of memory; one for all calls and sessions (X-24)."""
        from hades.memory_enhanced_pathrag import MemoryEnhancedPathRAG

        return MemoryEnhancedPathRAG(settings=self.settings, answers=LoggedAnswers(self.answers, self.questions.turns))

    @cached_property
    def memory(self) -> Memory:
        """The memory, opened when it is first asked for."""
        from hades.memory.service import Memory

        return Memory(self.writable or self.readable, self.embedder)

    def close(self) -> None:
        """Finish what was begun and give everything back."""
        if "pathrag" in self.__dict__:
            self.pathrag.close()
        self.questions.turns.close()
        self.answers.close()
        self.readable.close()
        if self.writable is not None:
            self.writable.close()


def open_service(settings: Settings, door: Door, limits: Limits = Limits()) -> Service:
    """Open what a service behind this door needs: one that only reads never holds a handle that could write."""
    embedder = open_embedder(settings)
    readable = open_store(settings, Mode.READ_ONLY)
    writable = None if door.mode is Mode.READ_ONLY else open_store(settings, Mode.READ_WRITE)
    answers = open_answers(settings, embedder)
    return Service(
        settings=settings,
        door=door,
        limits=limits,
        embedder=embedder,
        answers=answers,
        readable=readable,
        writable=writable,
        questions=Questions(answers, TurnLog(readable, writable), AnswerCache(limits.cache_bytes)),
        tokens=Tokens(settings.home),
        audit=Audit(settings.home / "logs"),
        rates=Rates(limits.per_second, limits.burst),
    )
