"""Asking through a service: held to online caps, answered from what is kept where it can be, remembered for later."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from hades.ports.clock import utc_now
from hades.retrieval.turn.answers import Answers
from hades.retrieval.turn.plan import clamp
from hades.retrieval.turn.query_log import log_of
from hades.retrieval.turn.recipes import DEFAULT, MODES
from hades.surfaces.access.answer_cache import Kept, KeptAnswers
from hades.surfaces.access.turn_log import TurnLog
from schemas.ids import content_key
from schemas.intervals import iso
from schemas.plan import Plan, Profile, Reason
from schemas.record import canonical_json
from schemas.retrieval import Retrieval

_BODIES, _BODY_BYTES = 8192, 2048
OFFERED = (Profile.ONLINE, Profile.AGENT, Profile.PATHS)  # the others are for builds and evaluation


@dataclass(frozen=True)
class Asked:
    """A question as a caller puts it."""

    query: str
    recipe: str = DEFAULT
    plan: Mapping[str, Any] | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    max_paths: int | None = None
    mode: str = MODES[0]
    near: tuple[str, ...] = ()
    domain: str | None = None


@dataclass(frozen=True)
class Answered:
    """An answer as JSON text, its id, and whether it was kept from before."""

    query_id: str
    text: bytes
    was_kept: bool

    @cached_property
    def answer(self) -> Retrieval:
        """The answer as a record."""
        return Retrieval.model_validate_json(self.text)


class Questions:
    """Answers the questions of a service; `told` hears of each turn that was worked out."""

    def __init__(
        self,
        answers: Answers,
        turns: TurnLog,
        kept: KeptAnswers,
        told: Callable[[Retrieval], None] = lambda answer: None,
    ) -> None:
        self.answers, self.turns, self.kept, self._told = answers, turns, kept, told
        self._bodies: OrderedDict[bytes, str] = OrderedDict()

    def ask(self, asked: Asked, body: bytes = b"") -> Answered:
        """The answer. `body` is how a caller put the question, so that the same body is known `again`."""
        key = canonical_json(asdict(asked))
        if body and len(body) <= _BODY_BYTES:
            self._bodies[body] = key
            while len(self._bodies) > _BODIES:
                self._bodies.popitem(last=False)
        return self._kept(key) or self._afresh(asked, key)

    def again(self, body: bytes) -> Answered | None:
        """The answer to a body that was asked before, if the snapshot still serves; cheap enough for an event loop."""
        key = self._bodies.get(body)
        return None if key is None else self._kept(key)

    def _kept(self, key: str) -> Answered | None:
        """A kept answer with an id of its own: each turn can be explained and judged by itself."""
        info = self.answers.ready()
        if info is None or not info.is_local or info.degraded_from is not None:
            return None
        kept = self.kept.find(info.snapshot, key)
        if kept is None:
            return None
        at = utc_now()
        before, fresh = kept.log.key, content_key("q", kept.log.key, iso(at))
        self.turns.add(kept.log.model_copy(update={"key": fresh, "at": at}))
        return Answered(fresh, kept.text.replace(before.encode(), fresh.encode(), 1), True)

    def _afresh(self, asked: Asked, key: str) -> Answered:
        answer = self.answers.retrieve(
            asked.query,
            recipe=asked.recipe,
            plan=None if asked.plan is None else offered_plan(asked.plan),
            as_of=asked.as_of,
            known_at=asked.known_at,
            max_paths=asked.max_paths,
            mode=asked.mode,
            near=asked.near,
            domain=asked.domain,
        )
        text, log = answer.model_dump_json().encode(), log_of(answer, utc_now())
        self.turns.add(log)
        self._told(answer)
        if answer.snapshot != LIVE:
            self.kept.keep(key, Kept(log, text))
        return Answered(answer.query_id, text, False)


LIVE = "live"  # what a graph that is read in place calls itself


def offered_plan(plan: Mapping[str, Any]) -> Plan:
    """The plan within the caps that a service offers; a larger profile is held to the online one."""
    asked = {name: part for name, part in plan.items() if name != "reasons"}  # reasons are ours to give
    profile = asked.get("profile", Profile.ONLINE)
    if profile in OFFERED or profile not in list(Profile):
        return clamp(asked)
    return clamp({**asked, "reasons": (Reason.PLAN_CLAMPED,)}, Profile.ONLINE)
