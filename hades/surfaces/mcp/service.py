"""What the tools work with, opened once for the life of the process and shared by all sessions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import anyio

from hades.ports.store import GraphStore, Mode
from hades.ports.text import Embedder
from hades.retrieval.turn.answers import Answers
from hades.retrieval.turn.turn_log import TurnLog
from hades.settings import Settings
from hades.surfaces.access.callers import Caller, Door
from hades.surfaces.access.limits import Limits
from hades.surfaces.access.questions import Questions, open_questions
from hades.surfaces.access.rate_limit import Rates
from hades.surfaces.access.service_context import ServiceContext
from hades.surfaces.access.tokens import Tokens
from hades.telemetry.audit import Audit
from hades.wiring import open_answers, open_embedder, open_store


@dataclass
class Service:
    """Everything behind the tools. `writable` is None in a read-only service."""

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
        """How many calls run at the same time; the others wait."""
        return anyio.CapacityLimiter(self.limits.answering)

    def context(self, caller: Caller, mode: Mode) -> ServiceContext:
        """The context of one call that needs this mode."""
        return ServiceContext(
            self.settings, f"mcp:{caller.name}", mode, self.answers, self.readable, self.writable, self.questions
        )

    def close(self) -> None:
        """Finish running calls and close everything."""
        self.questions.close()
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
        questions=open_questions(settings, door.mode, answers, TurnLog(readable, writable), limits.cache_bytes),
        tokens=Tokens(settings.home),
        audit=Audit(settings.home / "logs"),
        rates=Rates(limits.per_second, limits.burst),
    )
