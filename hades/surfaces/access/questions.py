"""Questions asked through a service: limited to online caps, answered from the cache where possible, logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hades.cache.tier import MIB
from hades.cache.tiers import TieredMemoryManager
from hades.ports.store import Mode
from hades.retrieval.answer.context_window import WindowSize
from hades.retrieval.cached_answers import CachedAnswers
from hades.retrieval.turn.answers import Answers
from hades.retrieval.turn.plan import clamp
from hades.retrieval.turn.turn_log import TurnLog
from hades.settings import Settings
from hades.surfaces.capabilities.capability import JsonReply
from hades.surfaces.capabilities.query import QueryRequest, turn_arguments
from schemas.plan import Plan, Profile, Reason
from schemas.retrieval import Retrieval

OFFERED = (Profile.ONLINE, Profile.AGENT, Profile.PATHS)  # the others are for builds and evaluation


class Questions:
    """Answers the questions of a service through its cache."""

    def __init__(self, cached: CachedAnswers, turns: TurnLog) -> None:
        self.cached, self.turns = cached, turns

    def ask(self, request: QueryRequest, version: str | None = None, window: WindowSize | None = None) -> JsonReply:
        """The answer, from the cache or computed."""
        plan = None if request.plan is None else limit_plan(request.plan)
        turn = self.cached.ask(request.query, version=version, plan=plan, window=window, **turn_arguments(request))
        return JsonReply(turn.text, turn.query_id, tier=turn.tier.name)

    def close(self) -> None:
        """Write what is left of the log and the cache."""
        self.turns.close()
        self.cached.close()


def open_questions(
    settings: Settings,
    mode: Mode,
    answers: Answers,
    turns: TurnLog,
    cache_bytes: int,
    on_answer: Callable[[Retrieval], None] = lambda answer: None,
) -> Questions:
    """The questions of a service with its own cache in RAM; a read-only service writes no cache to disk."""
    tiers = settings.cache.model_copy(update={"ram_cache_size_mb": cache_bytes / MIB})
    memory = TieredMemoryManager(tiers, home=settings.home, uses_disk=mode is not Mode.READ_ONLY)
    cached = CachedAnswers(
        answers,
        memory if settings.pathrag.enable_caching else None,
        tenant=settings.tenant or "",
        max_cache_paths=settings.pathrag.max_cache_paths,
        log=turns.add,
        on_answer=on_answer,
    )
    return Questions(cached, turns)


def limit_plan(plan: Mapping[str, Any]) -> Plan:
    """The plan within the caps that a service offers; a larger profile is lowered to the online one."""
    given = {name: part for name, part in plan.items() if name != "reasons"}  # reasons are the service's to give
    profile = given.get("profile", Profile.ONLINE)
    if profile in OFFERED or profile not in list(Profile):
        return clamp(given)
    return clamp({**given, "reasons": (Reason.PLAN_CLAMPED,)}, Profile.ONLINE)
