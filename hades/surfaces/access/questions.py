"""Questions asked through a service: limited to online caps, answered from the cache where possible, logged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hades.ports.clock import utc_now
from hades.retrieval.turn.answers import Answers
from hades.retrieval.turn.plan import clamp
from hades.retrieval.turn.query_log import log_of
from hades.surfaces.access.answer_cache import AnswerCache, CachedAnswer
from hades.surfaces.access.turn_log import TurnLog
from hades.surfaces.capabilities.capability import JsonReply
from hades.surfaces.capabilities.query import QueryRequest, turn_arguments
from schemas.ids import content_key
from schemas.intervals import iso
from schemas.plan import Plan, Profile, Reason
from schemas.record import canonical_json
from schemas.retrieval import Retrieval

OFFERED = (Profile.ONLINE, Profile.AGENT, Profile.PATHS)  # the others are for builds and evaluation
LIVE = "live"  # the snapshot id of a graph that is read in place


class Questions:
    """Answers the questions of a service; `on_turn` receives each answer that was computed."""

    def __init__(
        self,
        answers: Answers,
        turns: TurnLog,
        cache: AnswerCache,
        on_turn: Callable[[Retrieval], None] = lambda answer: None,
    ) -> None:
        self.answers, self.turns, self.cache, self._on_turn = answers, turns, cache, on_turn

    def ask(self, request: QueryRequest) -> JsonReply:
        """The answer, from the cache or computed."""
        key = canonical_json(request.arguments())
        return self._from_cache(key) or self._compute(request, key)

    def _from_cache(self, key: str) -> JsonReply | None:
        """A cached answer with a query id of its own, so that each turn can be explained and judged."""
        info = self.answers.ready()
        if info is None or not info.is_local or info.degraded_from is not None:
            return None
        cached = self.cache.find(info.snapshot, key)
        if cached is None:
            return None
        at = utc_now()
        before, new = cached.log.key, content_key("q", cached.log.key, iso(at))
        self.turns.add(cached.log.model_copy(update={"key": new, "at": at}))
        return JsonReply(cached.text.replace(before.encode(), new.encode(), 1), new, is_cached=True)

    def _compute(self, request: QueryRequest, key: str) -> JsonReply:
        plan = None if request.plan is None else limit_plan(request.plan)
        answer = self.answers.retrieve(request.query, plan=plan, **turn_arguments(request))
        text, log = answer.model_dump_json().encode(), log_of(answer, utc_now())
        self.turns.add(log)
        self._on_turn(answer)
        if answer.snapshot != LIVE:
            self.cache.keep(key, CachedAnswer(log, text))
        return JsonReply(text, answer.query_id)


def limit_plan(plan: Mapping[str, Any]) -> Plan:
    """The plan within the caps that a service offers; a larger profile is lowered to the online one."""
    given = {name: part for name, part in plan.items() if name != "reasons"}  # reasons are the service's to give
    profile = given.get("profile", Profile.ONLINE)
    if profile in OFFERED or profile not in list(Profile):
        return clamp(given)
    return clamp({**given, "reasons": (Reason.PLAN_CLAMPED,)}, Profile.ONLINE)
